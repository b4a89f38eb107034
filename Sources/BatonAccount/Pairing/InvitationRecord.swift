// SPDX-License-Identifier: Apache-2.0

/// What an invitation announces on the network: where the inviter listens, and no name of a host, a user or an account.
///
/// Its TXT record (RFC 6763, section 6) has the strings
///
///     "v=1"
///     "a=" | u16 port | u8 count | count times: u8 family | address
///
/// Port and addresses are in the record because discovery reads nothing else.
package struct InvitationRecord: Sendable, Equatable {
    /// The DNS-SD service type of invitations.
    package static let serviceType = "_baton-pair._tcp"

    private static let version = Array("v=1".utf8)
    private static let key = Array("a=".utf8)

    /// The TCP port: 1024 or above.
    package let port: UInt16
    /// The addresses, the preferred one first: at most ``AdvertisementContent/maximumAddressCount``.
    package let addresses: [NetworkAddress]

    /// A record of the addresses that fit: see ``AdvertisementContent/fitting(_:)``.
    package init(port: UInt16, addresses: [NetworkAddress]) {
        self.port = port
        self.addresses = AdvertisementContent.fitting(addresses)
    }

    /// Reads the strings of a record; nil for another version, and for strings that no inviter writes. Strings behind
    /// the second are left for later versions.
    package init?(decoding strings: [[UInt8]]) {
        guard strings.count >= 2, strings[0] == Self.version, strings[1].starts(with: Self.key) else { return nil }
        var rest = strings[1].dropFirst(Self.key.count)
        guard rest.count >= 3 else { return nil }
        let port = UInt16(rest.removeFirst()) << 8 | UInt16(rest.removeFirst())
        var addresses: [NetworkAddress] = []
        for _ in 0..<rest.removeFirst() {
            guard let family = rest.popFirst().flatMap(NetworkAddress.Family.init(rawValue:)),
                let address = NetworkAddress(bytes: rest.prefix(family.byteCount))
            else { return nil }
            addresses.append(address)
            rest = rest.dropFirst(family.byteCount)
        }
        self.init(port: port, addresses: addresses)
        guard rest.isEmpty, port >= Advertisement.minimumPort, !addresses.isEmpty, self.addresses == addresses else {
            return nil
        }
    }

    /// The strings of the record.
    package var strings: [[UInt8]] {
        let header = Self.key + [UInt8(port >> 8), UInt8(truncatingIfNeeded: port), UInt8(addresses.count)]
        return [Self.version, addresses.reduce(header) { $0 + [$1.family.rawValue] + $1.bytes }]
    }

    /// The characters by which users tell invitations apart: the first four of the instance's name.
    package static func tag(of instance: String) -> String { String(instance.prefix(4)) }
}
