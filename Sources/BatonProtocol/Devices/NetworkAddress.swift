// SPDX-License-Identifier: Apache-2.0

/// An IPv4 or IPv6 address as an advertisement carries it: bytes in network order, no port, no interface.
package struct NetworkAddress: Sendable, Hashable {
    /// Which protocol; the raw value is the byte on the wire.
    package enum Family: UInt8, Sendable {
        case ipv4 = 4
        case ipv6 = 6

        /// How many bytes an address has.
        package var byteCount: Int {
            switch self {
            case .ipv4: 4
            case .ipv6: 16
            }
        }
    }

    /// The reach of an address.
    package enum Scope: Sendable {
        /// Names no single host: unspecified, multicast, broadcast, or IPv4 written as IPv6, in whichever way.
        case invalid
        /// This host alone.
        case loopback
        /// One link alone; dialling it needs the interface it was seen on.
        case linkLocal
        /// A site: RFC 1918, RFC 6598, RFC 4193.
        case site
        /// Anywhere.
        case global
    }

    /// Which protocol.
    package let family: Family

    /// Four or sixteen bytes in network order.
    package let bytes: [UInt8]

    /// An address from its four or sixteen bytes; nil for any other count.
    package init?(bytes: some Collection<UInt8>) {
        switch bytes.count {
        case 4: self.family = .ipv4
        case 16: self.family = .ipv6
        case _: return nil
        }
        self.bytes = Array(bytes)
    }

    /// From where the address can be reached.
    package var scope: Scope {
        switch family {
        case .ipv4: ipv4Scope
        case .ipv6: ipv6Scope
        }
    }

    private var ipv4Scope: Scope {
        switch (bytes[0], bytes[1]) {
        case (0, _), (224...255, _): .invalid
        case (127, _): .loopback
        case (169, 254): .linkLocal
        case (10, _), (172, 16...31), (192, 168), (100, 64...127): .site
        case _: .global
        }
    }

    private var ipv6Scope: Scope {
        let zeros = bytes.prefix { $0 == 0 }.count
        if zeros == 16 { return .invalid }
        if zeros == 15, bytes[15] == 1 { return .loopback }
        // ::ffff:0:0/96 and ::/96: the same host has a second, shorter form; 127.0.0.1 would get through in them.
        if zeros == 10, bytes[10] == 0xff, bytes[11] == 0xff { return .invalid }
        if zeros >= 12 { return .invalid }
        switch (bytes[0], bytes[1]) {
        case (0xff, _): return .invalid
        case (0xfe, 0x80...0xbf): return .linkLocal
        case (0xfc...0xfd, _): return .site
        case _: return .global
        }
    }
}
