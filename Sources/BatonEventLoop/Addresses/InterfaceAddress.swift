// SPDX-License-Identifier: Apache-2.0

import Glibc
import SystemPackage

/// An address that one of this machine's network interfaces has now.
package struct InterfaceAddress: Sendable, Hashable {
    /// The name of the interface, such as `eth0`.
    package let interfaceName: String
    /// The index of the interface; see ``IPAddress/scopeID``.
    package let interfaceIndex: UInt32
    /// The address. A link-local IPv6 address carries the index of its interface as scope.
    package let address: IPAddress
    /// The number of bits that the addresses of the same link have in common.
    package let prefixLength: Int
    /// Whether the interface carries multicast and leads to more than one other machine. A tunnel does not.
    package let isMulticast: Bool

    /// The greatest number of addresses that ``current(includingLoopback:)`` returns.
    ///
    /// It bounds the memory for a machine with hundreds of container bridges to about 64 KiB.
    package static let limit = 512

    /// The addresses of this machine, of interfaces that are up and have a carrier, in the kernel's order.
    ///
    /// It asks the kernel through a socket of its own, which takes some tens of microseconds. ``NetworkMonitor``
    /// reports changes.
    ///
    /// - Parameters:
    ///   - includingLoopback: whether 127.0.0.1 and ::1 are included.
    ///   - includingIdle: whether addresses of interfaces without a carrier are included, such as those of the bridge
    ///     of containers that do not run. They lead to this machine, and other machines may have the same.
    /// - Returns: at most ``limit`` addresses, each once.
    /// - Throws: `outOfResources` if no descriptor or memory is free.
    package static func current(
        includingLoopback: Bool = false, includingIdle: Bool = false
    ) throws(SocketError) -> [InterfaceAddress] {
        var list: UnsafeMutablePointer<ifaddrs>?
        guard getifaddrs(&list) == 0 else {
            throw SocketError(Errno(rawValue: errno), while: "listing the addresses of this machine")
        }
        defer { freeifaddrs(list) }

        var addresses: [InterfaceAddress] = []
        var seen: Set<InterfaceAddress> = []
        // Each look-up of an index opens a socket, so it is done once for each interface.
        var indices: [String: UInt32] = [:]
        var next = list
        while let entry = next?.pointee, addresses.count < limit {
            next = entry.ifa_next
            let flags = Int(entry.ifa_flags)
            guard flags & IFF_UP != 0, includingIdle || flags & IFF_RUNNING != 0,
                includingLoopback || flags & IFF_LOOPBACK == 0,
                let pointer = entry.ifa_addr, let address = SocketAddress(pointer)?.ipAddress,
                includingLoopback || !address.isLoopback
            else { continue }
            let name = String(cString: entry.ifa_name)
            let index = indices[name] ?? if_nametoindex(entry.ifa_name)
            indices[name] = index
            let mask = entry.ifa_netmask.flatMap { SocketAddress($0)?.ipAddress }
            let found = InterfaceAddress(
                interfaceName: name, interfaceIndex: index, address: address,
                prefixLength: mask?.bytes.reduce(0) { $0 + $1.nonzeroBitCount } ?? address.bytes.count * 8,
                isMulticast: flags & IFF_MULTICAST != 0 && flags & IFF_POINTOPOINT == 0)
            if seen.insert(found).inserted { addresses.append(found) }
        }
        return addresses
    }

    /// The source address that this machine would use towards another one. Nothing is sent: connect(2) of a datagram
    /// socket looks up the route.
    ///
    /// - Throws: `unreachable` and others if there is no route.
    package static func source(towards other: IPAddress) throws(SocketError) -> IPAddress? {
        let number = socket(
            other.isIPv4 ? AF_INET : AF_INET6, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard number >= 0 else { throw SocketError(Errno(rawValue: errno), while: "looking for the way to \(other)") }
        let descriptor = OwnedDescriptor(takingOwnershipOf: number)
        // The port does not matter, because nothing is sent.
        let connected = try SocketAddress.ip(other, port: 9).withSystemAddress { connect(descriptor.rawValue, $0, $1) }
        guard connected == 0 else {
            throw SocketError(Errno(rawValue: errno), while: "looking for the way to \(other)")
        }
        return try SocketAddress.of(descriptor.rawValue) { getsockname($0, $1, $2) }.ipAddress
    }

    /// Whether an address is on the link of this interface, as far as the prefix says. Every link-local address is on
    /// the link of its scope.
    package func isOnLink(_ other: IPAddress) -> Bool {
        other.scopeID == 0 ? other.hasPrefix(of: address, length: prefixLength) : other.scopeID == interfaceIndex
    }

    /// The name of the interface with that index, nil if there is none.
    package static func interfaceName(_ index: UInt32) -> String? {
        var name = [CChar](repeating: 0, count: Int(IF_NAMESIZE))
        guard if_indextoname(index, &name) != nil else { return nil }
        return String(decoding: name.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }
}
