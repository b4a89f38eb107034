// SPDX-License-Identifier: Apache-2.0

/// The key that a person's devices share: 160 random bits, made once and typed on each further device.
///
/// All secrets that the devices have in common are derived from it (see ``AccountSecrets``). The key is enough to add a
/// device to the account. It is never made from a passphrase, and it is wiped when the last reference goes away.
package struct AccountKey: Sendable, Equatable {
    package static let secretCount = 20
    static let prefix: [UInt8] = Array("baton".utf8)

    /// The version of the text form that this code writes, and the only one it reads.
    static let version: UInt8 = 0

    /// Characters behind `baton1`: one for the version, 32 for the secret, six for the checksum.
    static let dataCount = 1 + secretCount * 8 / 5 + Bech32m.checksumCount

    /// Characters of a group, between dashes: four.
    static let groupSize = 4
    /// Groups of a whole key; the last one has three characters.
    static let groupCount = (dataCount + groupSize - 1) / groupSize
    let secret: SecretBytes

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

extension AccountKey {
    /// The most bytes that are looked at when a key is parsed: the key with a separator behind every character, and
    /// room for a careless paste.
    package static let maximumTextCount = 256

    /// The key as text, in ASCII: `baton1`, then groups of four characters with dashes between (55 bytes).
    package func formatted() -> SecretBytes {
        SecretBytes(count: Self.prefix.count + 1 + Self.dataCount + Self.groupCount) { text in
            var position = 0
            func append(_ byte: UInt8) {
                text[position] = byte
                position += 1
            }
            for byte in Self.prefix { append(byte) }
            append(UInt8(ascii: "1"))
            withDataValues { values in
                for (index, value) in values.enumerated() {
                    if index % Self.groupSize == 0 { append(UInt8(ascii: "-")) }
                    append(Bech32m.alphabet[Int(value)])
                }
            }
        }
    }

    /// Reads a key as a person typed it. Case, spaces, line ends and dashes do not matter.
    ///
    /// BIP 350 refuses mixed case. It is tolerated here, because phones and editors capitalise on their own and the
    /// checksum finds every real mistake.
    package init(parsing text: SecretBytes) throws(AccountKeyError) {
        var count = 0
        let compact = SecretBytes(count: text.count) { target in
            text.withUnsafeBytes { source in
                for byte in source {
                    switch byte {
                    case UInt8(ascii: " "), UInt8(ascii: "-"), 9...13: continue
                    case UInt8(ascii: "A")...UInt8(ascii: "Z"): target[count] = byte | 0x20
                    case _: target[count] = byte
                    }
                    count += 1
                }
            }
        }
        let secret = try compact.withUnsafeBytes { bytes throws(AccountKeyError) in
            try Self.parse(compact: UnsafeRawBufferPointer(rebasing: bytes[..<count]))
        }
        self.secret = secret
    }

    private static func parse(compact text: UnsafeRawBufferPointer) throws(AccountKeyError) -> SecretBytes {
        guard !text.isEmpty else { throw .empty }
        let start = prefix.count + 1
        guard text.starts(with: prefix + [UInt8(ascii: "1")]) else { throw .wrongPrefix }
        let data = UnsafeRawBufferPointer(rebasing: text[start...])
        // Looking at more would be work for a text that cannot be a key of any version.
        guard text.count <= Bech32m.maximumCount else { throw .mistyped }
        let values = try SecretBytes(count: data.count) { values throws(AccountKeyError) in
            for (index, character) in data.enumerated() {
                guard let value = Bech32m.value(of: character) else { throw .mistyped }
                values[index] = value
            }
        }
        return try values.withUnsafeBytes { values throws(AccountKeyError) in
            guard values.count > Bech32m.checksumCount, Bech32m.isValid(prefix: prefix, values: values) else {
                throw .mistyped
            }
            // The version comes first: a later version may well be longer.
            guard values[0] == version else { throw .unknownVersion(values[0]) }
            guard values.count == dataCount else { throw .mistyped }
            return secret(from: UnsafeRawBufferPointer(rebasing: values[1..<(values.count - Bech32m.checksumCount)]))
        }
    }

    /// Packs 32 values of five bits into 20 bytes; 160 is a multiple of five, so that nothing is padded.
    private static func secret(from values: UnsafeRawBufferPointer) -> SecretBytes {
        SecretBytes(count: secretCount) { target in
            for (index, value) in values.enumerated() {
                for bit in 0..<5 where value & (16 >> UInt8(bit)) != 0 {
                    let position = index * 5 + bit
                    target[position / 8] |= 128 >> UInt8(position % 8)
                }
            }
        }
    }

    /// Calls `body` with the 39 values behind `baton1`: version, secret, checksum.
    private func withDataValues(_ body: (UnsafeRawBufferPointer) -> Void) {
        let values = SecretBytes(count: Self.dataCount) { target in
            target[0] = Self.version
            secret.withUnsafeBytes { secret in
                for position in 0..<(secret.count * 8) where secret[position / 8] & (128 >> UInt8(position % 8)) != 0 {
                    target[1 + position / 5] |= 16 >> UInt8(position % 5)
                }
            }
            let end = Self.dataCount - Bech32m.checksumCount
            let sum = Bech32m.checksum(prefix: Self.prefix, values: target[..<end])
            target[end...].copyBytes(from: sum)
        }
        values.withUnsafeBytes(body)
    }
}

/// A mistake in a text that should be an account key.
///
/// No case carries a character of the key, or says where the mistake is.
package enum AccountKeyError: Error, Equatable, CustomStringConvertible {
    case empty
    case wrongPrefix
    /// The checksum does not fit, a character is missing, or one is none of a key's.
    case mistyped
    case unknownVersion(UInt8)

    package var description: String {
        switch self {
        case .empty:
            "no account key was given; it begins with baton1, and `baton account create` printed it on your first"
                + " device"
        case .wrongPrefix:
            "this is not an account key: one begins with baton1, as `baton account create` printed it"
        case .mistyped:
            "mistyped: compare it with the original, which has \(AccountKey.dataCount) characters behind baton1 and"
                + " no b, i, o or 1 among them"
        case .unknownVersion(let version):
            "this account key has version \(version), which this program does not know; install a newer Baton here"
        }
    }
}
