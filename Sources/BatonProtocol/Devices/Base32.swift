// SPDX-License-Identifier: Apache-2.0

/// Base32 of RFC 4648, lower case and without padding.
package enum Base32 {
    private static let alphabet: [UInt8] = Array("abcdefghijklmnopqrstuvwxyz234567".utf8)

    /// The text of the bytes; 8 characters for each 5 bytes, the last bits filled with zeros.
    package static func encode(_ bytes: some Sequence<UInt8>) -> String {
        var text: [UInt8] = []
        var bits: UInt32 = 0
        var count: UInt32 = 0
        for byte in bytes {
            bits = (bits << 8) | UInt32(byte)
            count += 8
            while count >= 5 {
                count -= 5
                text.append(alphabet[Int((bits >> count) & 31)])
            }
            bits &= (1 << count) - 1
        }
        if count > 0 { text.append(alphabet[Int((bits << (5 - count)) & 31)]) }
        return String(decoding: text, as: UTF8.self)
    }

    /// The bytes of a text, upper or lower case; nil for another character, or when bits are left that are not zero.
    package static func decode(_ text: String) -> [UInt8]? {
        decode(text.utf8)
    }

    /// The same, of a text as it travels.
    package static func decode(_ text: some Collection<UInt8>) -> [UInt8]? {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count * 5 / 8)
        var bits: UInt32 = 0
        var count: UInt32 = 0
        for character in text {
            guard let value = value(of: character) else { return nil }
            bits = (bits << 5) | UInt32(value)
            count += 5
            if count >= 8 {
                count -= 8
                bytes.append(UInt8(truncatingIfNeeded: bits >> count))
                bits &= (1 << count) - 1
            }
        }
        // Five bits left over would be a character that carries nothing.
        return count < 5 && bits == 0 ? bytes : nil
    }

    /// The place of a character in the alphabet.
    private static func value(of character: UInt8) -> UInt8? {
        switch character {
        case UInt8(ascii: "a")...UInt8(ascii: "z"): character - UInt8(ascii: "a")
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): character - UInt8(ascii: "A")
        case UInt8(ascii: "2")...UInt8(ascii: "7"): character - UInt8(ascii: "2") + 26
        case _: nil
        }
    }
}
