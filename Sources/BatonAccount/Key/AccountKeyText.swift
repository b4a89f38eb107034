// SPDX-License-Identifier: Apache-2.0

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

    /// Parses lower-case text without separators.
    private static func parse(compact text: UnsafeRawBufferPointer) throws(AccountKeyError) -> SecretBytes {
        guard !text.isEmpty else { throw .empty }
        let start = prefix.count + 1
        guard text.starts(with: prefix + [UInt8(ascii: "1")]) else { throw .wrongPrefix }
        let data = UnsafeRawBufferPointer(rebasing: text[start...])
        // Looking at more would be work for a text that cannot be a key of any version.
        guard text.count <= Bech32m.maximumCount else {
            throw .wrongLength(found: data.count, expected: dataCount)
        }
        let values = try SecretBytes(count: data.count) { values throws(AccountKeyError) in
            for (index, character) in data.enumerated() {
                guard let value = Bech32m.value(of: character) else {
                    throw .invalidCharacter(group: index / AccountKey.groupSize + 1)
                }
                values[index] = value
            }
        }
        return try values.withUnsafeBytes { values throws(AccountKeyError) in
            guard values.count > Bech32m.checksumCount, Bech32m.isValid(prefix: prefix, values: values) else {
                guard values.count == dataCount else {
                    throw .wrongLength(found: values.count, expected: dataCount)
                }
                let index = Bech32m.indexOfSingleError(prefix: prefix, values: values)
                throw .mistyped(group: index.map { $0 / AccountKey.groupSize + 1 })
            }
            // The version comes first: a later version may well be longer.
            guard values[0] == version else { throw .unknownVersion(values[0]) }
            guard values.count == dataCount else {
                throw .wrongLength(found: values.count, expected: dataCount)
            }
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
