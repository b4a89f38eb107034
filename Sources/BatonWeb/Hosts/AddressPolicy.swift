// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop

/// The addresses that a connection to a web host may go to.
///
/// A web page's host is named by another device, and DNS gives its address. Without this policy, a page could make this
/// device connect to services of its own machine and network.
enum AddressPolicy {
    /// The reach of an address.
    enum Reach {
        /// A host of the internet.
        case global
        /// This machine, this link, or a network of its own: only where the user's configuration says so.
        case local
        /// No host, or a group of hosts.
        case none
    }

    /// The reach of an address by the IANA special-purpose address registries (RFC 6890 and its updates).
    ///
    /// An address that contains an IPv4 address (NAT64, 6to4) has the reach of that one.
    static func reach(of address: IPAddress) -> Reach {
        let bytes = address.bytes
        return address.isIPv4 ? reach(ipv4: bytes[...]) : reach(ipv6: bytes)
    }

    private static func reach(ipv4 bytes: ArraySlice<UInt8>) -> Reach {
        let value = bytes.reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
        func isIn(_ network: UInt32, _ length: UInt32) -> Bool { (value ^ network) >> (32 - length) == 0 }
        // 0/8 "this network", 224/4 multicast, 240/4 reserved with the broadcast address.
        if isIn(0x0000_0000, 8) || isIn(0xe000_0000, 4) || isIn(0xf000_0000, 4) { return .none }
        let local =
            isIn(0x0a00_0000, 8) || isIn(0xac10_0000, 12) || isIn(0xc0a8_0000, 16)  // RFC 1918
            || isIn(0x7f00_0000, 8) || isIn(0xa9fe_0000, 16)  // loopback; link-local, where clouds keep their secrets
            || isIn(0x6440_0000, 10)  // behind a carrier's NAT (RFC 6598)
            || isIn(0xc000_0000, 24) || isIn(0xc058_6300, 24)  // protocol assignments; relays of 6to4
            || isIn(0xc612_0000, 15)  // benchmarks (RFC 2544)
            || isIn(0xc000_0200, 24) || isIn(0xc633_6400, 24) || isIn(0xcb00_7100, 24)  // documentation (RFC 5737)
        return local ? .local : .global
    }

    private static func reach(ipv6 bytes: [UInt8]) -> Reach {
        func isIn(_ prefix: [UInt8]) -> Bool { bytes.starts(with: prefix) }
        if bytes[0] == 0xff || bytes.allSatisfy({ $0 == 0 }) { return .none }
        // NAT64, 64:ff9b::/96 (RFC 6052), and 6to4, 2002::/16 (RFC 3056).
        if isIn([0x00, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0]) { return reach(ipv4: bytes[12...]) }
        if isIn([0x20, 0x02]) { return reach(ipv4: bytes[2..<6]) }
        // Of all else only 2000::/3 is given out; in it are 2001::/23 for protocols (Teredo, benchmarks) and
        // 2001:db8::/32 and 3fff::/20 for documentation.
        guard bytes[0] >> 5 == 1 else { return .local }
        let special =
            isIn([0x20, 0x01, 0x0d, 0xb8]) || (isIn([0x20, 0x01]) && bytes[2] < 0x02)
            || (isIn([0x3f, 0xff]) && bytes[2] >> 4 == 0)
        return special ? .local : .global
    }

    /// Whether a connection may go there.
    static func permits(_ address: IPAddress, allowingPrivate: Bool) -> Bool {
        switch reach(of: address) {
        case .global: true
        case .local: allowingPrivate
        case .none: false
        }
    }
}
