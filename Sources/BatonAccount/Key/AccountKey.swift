// SPDX-License-Identifier: Apache-2.0

/// The key that a person's devices share: 160 random bits, made once and typed on each further device.
///
/// All secrets that the devices have in common are derived from it (see ``AccountSecrets``). The key is enough to add a
/// device to the account. It is never made from a passphrase, and it is wiped when the last reference goes away.
package struct AccountKey: Sendable, Equatable {
    /// How many bytes the secret has.
    package static let secretCount = 20

    /// The human-readable part of the text form.
    static let prefix: [UInt8] = Array("baton".utf8)

    /// The version of the text form that this code writes, and the only one it reads.
    static let version: UInt8 = 0

    /// Characters behind `baton1`: one for the version, 32 for the secret, six for the checksum.
    static let dataCount = 1 + secretCount * 8 / 5 + Bech32m.checksumCount

    /// Characters of a group, between dashes: four.
    static let groupSize = 4
    /// Groups of a whole key; the last one has three characters.
    static let groupCount = (dataCount + groupSize - 1) / groupSize

    /// The secret itself.
    let secret: SecretBytes

    /// A new account's key, from the system's random source.
    package init() {
        self.secret = .random(count: Self.secretCount)
    }

    /// A key from its 20 bytes; nil for any other count.
    init?(secret: SecretBytes) {
        guard secret.count == Self.secretCount else { return nil }
        self.secret = secret
    }
}

extension AccountKey: CustomStringConvertible {
    /// Always `<secret>`; use ``formatted()`` to show the key to its owner.
    package var description: String { "<secret>" }
}
