// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonDiscovery
import BatonEventLoop
import BatonMessages
import BatonProtocol

/// The facts that the doctor found out on the road to one device. ``findings`` judges them.
struct RoadFacts: Sendable {
    let id: DeviceID
    let name: String
    /// Whether a revocation list of this device names it.
    let isRevoked: Bool
    /// The ids of revoked devices if their lists were signed apart; else empty.
    let apartRevocations: [String]
    let addresses: [IPAddress]
    /// The way to each address that has one.
    let routes: [IPAddress: Route]
    /// What the ear heard, at the interfaces that matter.
    let heard: MulticastEar.Report
    /// The devices that were heard; nil if the account cannot be read.
    let devices: HeardDevices?
    /// The answer of the node here, or why there is none.
    let answered: Measured<WireExamineResponse>
    /// Whether the node dialled what the device announces now. Its port and what its gate lets in change every 15
    /// minutes, so that a refusal of an older port or by an older key says nothing.
    let isFresh: Bool

    struct Route: Sendable, Hashable {
        /// The interface that packets take.
        let interface: String
        /// The interface whose network has the address; nil if it is of another network.
        let expected: String?
    }

    /// Looks up the ways that the kernel knows.
    static func routes(to addresses: [IPAddress], from own: [InterfaceAddress]) -> [IPAddress: Route] {
        var routes: [IPAddress: Route] = [:]
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
        return routes
    }
}

/// A fact, or the reason why it is missing.
enum Measured<Value: Sendable>: Sendable {
    case value(Value)
    case missing(String)

    var value: Value? {
        if case .value(let value) = self { value } else { nil }
    }
}
