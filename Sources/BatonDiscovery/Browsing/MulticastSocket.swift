// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import CDNSSD
import Glibc

/// A socket for multicast DNS on one interface, in one address family. Its maker closes it.
struct MulticastSocket {
    let rawValue: Int32

    /// RFC 6762, section 3.
    static let port: UInt16 = 5353
    /// The most datagrams that one turn of the loop reads from a socket.
    static let batch = 64
    // linux/in.h and linux/in6.h, which Swift does not see.
    private static let multicastAll4: Int32 = 49
    private static let multicastAll6: Int32 = 29

    /// Bound to 224.0.0.251. Nil when the kernel refuses.
    static func ipv4(on interface: UInt32) -> MulticastSocket? {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0xE000_00FB).bigEndian
        var membership = ip_mreqn()
        membership.imr_multiaddr = address.sin_addr
        membership.imr_ifindex = Int32(bitPattern: interface)
        return make(AF_INET, address) { descriptor in
            // Only the groups of this socket, and so only this interface.
            set(descriptor, Int32(IPPROTO_IP), multicastAll4, Int32(0))
                && set(descriptor, Int32(IPPROTO_IP), IP_ADD_MEMBERSHIP, membership)
        }
    }

    /// Bound to ff02::fb. Nil when the kernel refuses.
    static func ipv6(on interface: UInt32) -> MulticastSocket? {
        var address = sockaddr_in6()
        address.sin6_family = sa_family_t(AF_INET6)
        address.sin6_port = port.bigEndian
        address.sin6_scope_id = interface
        withUnsafeMutableBytes(of: &address.sin6_addr) { bytes in
            (bytes[0], bytes[1], bytes[15]) = (0xFF, 0x02, 0xFB)
        }
        var membership = ipv6_mreq()
        membership.ipv6mr_multiaddr = address.sin6_addr
        membership.ipv6mr_interface = interface
        return make(AF_INET6, address) { descriptor in
            set(descriptor, Int32(IPPROTO_IPV6), IPV6_V6ONLY, Int32(1))
                && set(descriptor, Int32(IPPROTO_IPV6), multicastAll6, Int32(0))
                && set(descriptor, Int32(IPPROTO_IPV6), IPV6_JOIN_GROUP, membership)
        }
    }

    /// A source that reads the socket, and closes it when it is cancelled. Nil if the process has no descriptor left.
    ///
    /// - Parameters:
    ///   - refused: called if the port of a ``connected(to:)`` socket is closed there.
    ///   - handler: gets each datagram and the address that it comes from, on the loop.
    func source(
        on loop: EventLoop, refused: @escaping @Sendable () -> Void = {},
        handler: @escaping @Sendable (UnsafeRawBufferPointer, IPAddress) -> Void
    ) -> ReadinessSource? {
        try? ReadinessSource(reading: OwnedDescriptor(takingOwnershipOf: rawValue), on: loop) { [rawValue] in
            withUnsafeTemporaryAllocation(byteCount: AnnouncedText.maximumPacket, alignment: 8) { buffer in
                var source = sockaddr_storage()
                for _ in 0..<Self.batch {
                    guard let count = Self.receive(rawValue, into: buffer, from: &source) else {
                        guard errno == ECONNREFUSED else { return }
                        refused()
                        continue
                    }
                    guard let address = SocketAddress(source)?.ipAddress else { continue }
                    handler(UnsafeRawBufferPointer(rebasing: buffer[..<count]), address)
                }
            }
        }
    }

    /// Has the kernel drop everything that is not an announcement of the type. Without it each packet of the link would
    /// wake the process, and be passed over.
    func keepAnnouncements(of type: String) {
        let label = type.utf8.prefix { $0 != UInt8(ascii: ".") }
        let beginning = ([UInt8(truncatingIfNeeded: label.count)] + label).prefix(4)
        let word = beginning.reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
        _ = cdnssd_keep_announcements(rawValue, word)
    }

    /// Lets the socket send to the group on an interface, as multicast DNS asks (RFC 6762, section 11: with 255 hops).
    func setSending(on interface: UInt32, isIPv4: Bool) {
        if isIPv4 {
            var sending = ip_mreqn()
            sending.imr_ifindex = Int32(bitPattern: interface)
            _ = Self.set(rawValue, Int32(IPPROTO_IP), IP_MULTICAST_IF, sending)
            _ = Self.set(rawValue, Int32(IPPROTO_IP), IP_MULTICAST_TTL, Int32(255))
        } else {
            _ = Self.set(rawValue, Int32(IPPROTO_IPV6), IPV6_MULTICAST_IF, Int32(bitPattern: interface))
            _ = Self.set(rawValue, Int32(IPPROTO_IPV6), IPV6_MULTICAST_HOPS, Int32(255))
        }
    }

    /// A UDP socket that leads to one machine, from a port of its own. Nil if there is no route or no descriptor. Its
    /// maker closes it.
    static func connected(to address: SocketAddress) -> MulticastSocket? {
        let kind = Int32(SOCK_DGRAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        let descriptor = socket(address.ipAddress?.isIPv4 == true ? AF_INET : AF_INET6, kind, 0)
        guard descriptor >= 0 else { return nil }
        let isConnected = (try? address.withSystemAddress { connect(descriptor, $0, $1) }) == 0
        guard isConnected else {
            close(descriptor)
            return nil
        }
        return MulticastSocket(rawValue: descriptor)
    }

    /// Takes the next datagram, and tells where it came from. Nil when none waits. A response has to come from the port
    /// of multicast DNS (RFC 6762, section 6). Any other datagram counts as empty, so that it counts for a caller's
    /// bound.
    private static func receive(
        _ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer, from source: inout sockaddr_storage
    ) -> Int? {
        while true {
            var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
            let count = withUnsafeMutablePointer(to: &source) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    recvfrom(
                        descriptor, buffer.baseAddress, buffer.count, Int32(truncatingIfNeeded: MSG_TRUNC), $0, &length)
                }
            }
            guard count >= 0 else {
                if errno == EINTR { continue }
                return nil
            }
            // Both families have the port behind the family.
            let port = withUnsafeBytes(of: source) { UInt16(bigEndian: $0.load(fromByteOffset: 2, as: UInt16.self)) }
            return port == Self.port && count <= buffer.count ? count : 0
        }
    }

    private static func make<Address>(
        _ family: Int32, _ address: Address, _ prepare: (Int32) -> Bool
    ) -> MulticastSocket? {
        let kind = Int32(SOCK_DGRAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        let descriptor = socket(family, kind, 0)
        guard descriptor >= 0 else { return nil }
        let isBound = withUnsafeBytes(of: address) { bytes in
            set(descriptor, SOL_SOCKET, SO_REUSEADDR, Int32(1)) && prepare(descriptor)
                && bytes.baseAddress.map {
                    bind(descriptor, $0.assumingMemoryBound(to: sockaddr.self), socklen_t(bytes.count)) == 0
                } == true
        }
        guard isBound else {
            close(descriptor)
            return nil
        }
        return MulticastSocket(rawValue: descriptor)
    }

    private static func set<Value>(_ descriptor: Int32, _ level: Int32, _ name: Int32, _ value: Value) -> Bool {
        withUnsafeBytes(of: value) { setsockopt(descriptor, level, name, $0.baseAddress, socklen_t($0.count)) == 0 }
    }
}
