import Glibc
import SystemPackage

/// An address that one of this machine's network interfaces has now.
public struct InterfaceAddress: Sendable, Hashable {
    /// The name of the interface, such as `eth0`.
    public let interfaceName: String
    /// The index of the interface; see ``IPAddress/scopeID``.
    public let interfaceIndex: UInt32
    /// The address. A link-local IPv6 address carries the index of its interface as scope.
    public let address: IPAddress
    /// The first so many bits are the same for all that can be reached on the interface without a router: 0 to 128.
    public let prefixLength: Int

    /// Whether an address is on the interface's own network.
    public func isOnLink(_ other: IPAddress) -> Bool {
        // A link-local one is on the link of its interface, and on no other that has the same prefix.
        guard other.scopeID == address.scopeID, other.isIPv4 == address.isIPv4, prefixLength > 0 else { return false }
        return other.hasPrefix(of: address, length: prefixLength)
    }

    /// How many addresses ``current(includingLoopback:)`` returns at most.
    ///
    /// A machine with hundreds of container bridges is still listed in bounded memory, about 64 KiB.
    public static let limit = 512

    /// The addresses of this machine, of interfaces that are up and have a carrier, in the kernel's order.
    ///
    /// It asks the kernel through a socket of its own, some tens of microseconds. See ``NetworkMonitor`` to be told of
    /// changes.
    ///
    /// - Parameter includingLoopback: whether 127.0.0.1 and ::1 are wanted too.
    /// - Returns: at most ``limit`` addresses, each once.
    /// - Throws: `outOfResources` where no descriptor or memory is free.
    public static func current(includingLoopback: Bool = false) throws(SocketError) -> [InterfaceAddress] {
        var list: UnsafeMutablePointer<ifaddrs>?
        guard getifaddrs(&list) == 0 else {
            throw SocketError(Errno(rawValue: errno), while: "listing the addresses of this machine")
        }
        defer { freeifaddrs(list) }

        var addresses: [InterfaceAddress] = []
        var seen: Set<InterfaceAddress> = []
        // To ask for one takes a socket.
        var indices: [String: UInt32] = [:]
        var next = list
        while let entry = next?.pointee, addresses.count < limit {
            next = entry.ifa_next
            let flags = Int(entry.ifa_flags)
            guard flags & IFF_UP != 0, flags & IFF_RUNNING != 0,
                includingLoopback || flags & IFF_LOOPBACK == 0,
                let pointer = entry.ifa_addr, let address = SocketAddress(pointer)?.ipAddress,
                includingLoopback || !address.isLoopback
            else { continue }
            let name = String(cString: entry.ifa_name)
            let index = indices[name] ?? if_nametoindex(entry.ifa_name)
            indices[name] = index
            let found = InterfaceAddress(
                interfaceName: name, interfaceIndex: index, address: address,
                prefixLength: prefixLength(of: entry.ifa_netmask))
            if seen.insert(found).inserted { addresses.append(found) }
        }
        return addresses
    }

    /// The bits of a network mask; 0 without one.
    private static func prefixLength(of mask: UnsafeMutablePointer<sockaddr>?) -> Int {
        guard let mask, let address = SocketAddress(mask)?.ipAddress else { return 0 }
        return address.bytes.reduce(0) { $0 + $1.nonzeroBitCount }
    }

    /// The name of the interface with that index, nil when there is none (any more).
    public static func interfaceName(_ index: UInt32) -> String? {
        var name = [CChar](repeating: 0, count: Int(IF_NAMESIZE))
        guard if_indextoname(index, &name) != nil else { return nil }
        return String(decoding: name.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }
}
