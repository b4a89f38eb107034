// SPDX-License-Identifier: Apache-2.0

import Glibc

/// An IPv4 or IPv6 address, with the interface of a link-local one.
///
/// Each address has one value: an IPv4 address inside IPv6 (`::ffff:192.0.2.1`) is the IPv4 address, and only a
/// link-local address keeps a scope.
package struct IPAddress: Sendable, Hashable {
    /// The first and the last 64 bits. A stored number of 128 bits crashes in closures that capture it (Swift 6.3).
    private let (high, low): (UInt64, UInt64)

    /// The index of the interface of a link-local IPv6 address; 0 for every other address.
    package let scopeID: UInt32

    private init(_ value: UInt128, scopeID: UInt32 = 0) {
        (high, low) = (UInt64(truncatingIfNeeded: value >> 64), UInt64(truncatingIfNeeded: value))
        self.scopeID = Self.isScoped(value) ? scopeID : 0
    }

    /// All 128 bits. An IPv4 address is the one inside IPv6.
    private var value: UInt128 { UInt128(high) << 64 | UInt128(low) }

    /// Makes an address of 4 or 16 bytes in network order; nil for any other count.
    ///
    /// - Parameters:
    ///   - bytes: in network order.
    ///   - scopeID: the index of the interface of a link-local IPv6 address; ignored for every other address.
    package init?(bytes: [UInt8], scopeID: UInt32 = 0) {
        guard bytes.count == 4 || bytes.count == 16 else { return nil }
        let value = bytes.reduce(0) { $0 << 8 | UInt128($1) }
        self.init(bytes.count == 4 ? Self.ipv4Any.value | value : value, scopeID: scopeID)
    }

    /// Reads an address as people write it: `192.0.2.1`, `2001:db8::1`, `fe80::1%eth0`, `fe80::1%2`. Nil for anything
    /// else, and for an interface that this machine does not have.
    package init?(_ text: some StringProtocol) {
        let parts = text.split(separator: "%", maxSplits: 1, omittingEmptySubsequences: false)
        guard let address = parts.first, text.utf8.count <= 64, !text.utf8.contains(0) else { return nil }
        var bytes = [UInt8](repeating: 0, count: 16)
        if inet_pton(AF_INET, String(address), &bytes) == 1, parts.count == 1 {
            self.init(bytes: Array(bytes.prefix(4)))
        } else if inet_pton(AF_INET6, String(address), &bytes) == 1 {
            var scope: UInt32 = 0
            if parts.count == 2 {
                scope = UInt32(parts[1]) ?? if_nametoindex(String(parts[1]))
                guard scope != 0 else { return nil }
            }
            self.init(bytes: bytes, scopeID: scope)
        } else {
            return nil
        }
    }

    /// The IPv4 loopback address, `127.0.0.1`.
    package static let ipv4Loopback = IPAddress(ipv4Any.value | 0x7f00_0001)
    /// The IPv6 loopback address, `::1`.
    package static let ipv6Loopback = IPAddress(1)
    /// Every IPv4 address of this machine, `0.0.0.0`, for listening.
    package static let ipv4Any = IPAddress(0xffff << 32)
    /// Every address of this machine, `::`, for listening on IPv6 and IPv4.
    package static let ipv6Any = IPAddress(0)

    /// The 4 or 16 bytes in network order.
    package var bytes: [UInt8] {
        withUnsafeBytes(of: value.bigEndian) { Array($0.suffix(isIPv4 ? 4 : 16)) }
    }

    /// The same address on the interface with that index. Only link-local IPv6 addresses change.
    package func scoped(to scopeID: UInt32) -> IPAddress { IPAddress(value, scopeID: scopeID) }

    /// Whether this is an IPv4 address.
    package var isIPv4: Bool { value >> 32 == 0xffff }

    /// Whether the first bits equal those of another address of the same kind. Scopes do not count.
    ///
    /// - Parameter length: the number of bits, 0 to 32 for IPv4, 0 to 128 for IPv6.
    package func hasPrefix(of other: IPAddress, length: Int) -> Bool {
        isIPv4 == other.isIPv4 && (value ^ other.value) >> max(0, (isIPv4 ? 32 : 128) - length) == 0
    }

    /// Whether the address is valid on one link only (RFC 3927: 169.254/16; RFC 4291: fe80::/10).
    package var isLinkLocal: Bool { value >> (isIPv4 ? 16 : 118) == (isIPv4 ? 0xffff_a9fe : 0x3fa) }

    /// Whether the address is this machine's loopback (127/8, ::1).
    package var isLoopback: Bool { isIPv4 ? value >> 24 == 0xffff_7f : value == 1 }

    /// Whether the address is a multicast group (224/4, ff00::/8).
    package var isMulticast: Bool { value >> (isIPv4 ? 28 : 120) == (isIPv4 ? 0xffff_e : 0xff) }

    private static func isScoped(_ value: UInt128) -> Bool {
        // fe80::/10, and multicast of interface scope and link scope (RFC 4291, 2.7).
        value >> 118 == 0x3fa || [0xff01, 0xff02].contains(value >> 112 & 0xff0f)
    }
}

extension IPAddress: CustomStringConvertible {
    /// The address as people write it, with the interface behind `%`, by name if it exists and by number otherwise.
    package var description: String {
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        inet_ntop(isIPv4 ? AF_INET : AF_INET6, bytes, &text, socklen_t(text.count))
        let address = String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
        guard scopeID != 0 else { return address }
        return address + "%" + (InterfaceAddress.interfaceName(scopeID) ?? String(scopeID))
    }
}
