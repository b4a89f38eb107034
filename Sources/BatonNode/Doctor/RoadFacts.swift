// SPDX-License-Identifier: Apache-2.0

import BatonAccount
package import BatonDiscovery
package import BatonEventLoop
package import BatonMessages
package import BatonProtocol

/// The facts that the doctor found out on the road to one device. ``findings`` judges them.
package struct RoadFacts: Sendable {
    let id: DeviceID
    let name: String
    /// Whether a revocation list of this device names it.
    let isRevoked: Bool
    /// The ids of revoked devices if their lists were signed apart; else empty.
    let apartRevocations: [String]
    let addresses: [IPAddress]
    /// What the ear heard, at the interfaces that matter.
    let heard: MulticastEar.Report
    /// The devices that were heard; nil if the account cannot be read.
    let devices: HeardDevices?
    /// The way to each address that has one.
    var routes: [IPAddress: Route] = [:]
    /// The addresses at which the link knows a machine (true) or none (false). An address of another link has no entry.
    var neighbours: [IPAddress: Bool] = [:]
    /// The answer of the node here, or why there is none.
    let answered: Measured<WireExamineResponse>
    /// Whether the node dialled what the device announces now. Its port and what its gate lets in change every 15
    /// minutes, so that a refusal of an older port or by an older key says nothing.
    let isFresh: Bool

    package struct Route: Sendable, Hashable {
        /// The interface that packets take.
        let interface: String
        /// The interface whose network has the address; nil if it is of another network.
        let expected: String?
    }

    package init(
        id: DeviceID, name: String, isRevoked: Bool, apartRevocations: [String], addresses: [IPAddress],
        heard: MulticastEar.Report, devices: HeardDevices?, answered: Measured<WireExamineResponse>, isFresh: Bool
    ) {
        self.id = id
        self.name = name
        self.isRevoked = isRevoked
        self.apartRevocations = apartRevocations
        self.addresses = addresses
        self.heard = heard
        self.devices = devices
        self.answered = answered
        self.isFresh = isFresh
    }

    /// Looks up the routes, and what the kernel has learned of the neighbours: after the node has connected.
    package mutating func lookUp(_ own: [InterfaceAddress]) {
        for address in addresses {
            guard let source = try? InterfaceAddress.source(towards: address),
                let interface = own.first(where: { $0.address == source })
            else { continue }
            // Two interfaces may be in one network: then either is right.
            let expected = own.filter { $0.isOnLink(address) }.map(\.interfaceName)
            let isRight = expected.contains(interface.interfaceName)
            routes[address] = Route(
                interface: interface.interfaceName, expected: isRight ? interface.interfaceName : expected.first)
        }
        neighbours = Self.neighbours(in: SocketTable.read("/proc/net/arp")).filter { addresses.contains($0.key) }
    }

    /// Reads the ARP table (proc_net(5)): flag 2 is a complete entry.
    static func neighbours(in table: String) -> [IPAddress: Bool] {
        var found: [IPAddress: Bool] = [:]
        for line in table.split(separator: "\n").dropFirst() {
            let fields = line.split(separator: " ")
            guard fields.count > 2, let address = IPAddress(fields[0]), fields[2].hasPrefix("0x"),
                let flags = UInt32(fields[2].dropFirst(2), radix: 16)
            else { continue }
            found[address] = flags & 2 != 0
        }
        return found
    }
}

/// A fact, or the reason why it is missing.
package enum Measured<Value: Sendable>: Sendable {
    case value(Value)
    case missing(String)

    package var value: Value? {
        if case .value(let value) = self { value } else { nil }
    }
}
