// SPDX-License-Identifier: Apache-2.0

import Crypto
import FoundationEssentials

/// The identity of a device: the first 20 bytes of the SHA-256 of its public key (the DER of its SubjectPublicKeyInfo).
///
/// The text form is 32 characters of base32 (RFC 4648, lower case, no padding). The device's certificate names it as
/// `<device id>.device.baton.invalid`.
package struct DeviceID: Sendable, Hashable, CustomStringConvertible {
    /// How many bytes an id has.
    package static let count = 20

    /// The suffix of the name in a device's certificate, behind the id.
    package static let certificateNameSuffix = ".device.baton.invalid"

    /// The 20 bytes.
    package let bytes: [UInt8]

    /// The id of a key, from the DER of its SubjectPublicKeyInfo.
    package init(subjectPublicKeyInfo: some Collection<UInt8>) {
        self.bytes = Array(SHA256.hash(data: Array(subjectPublicKeyInfo)).prefix(Self.count))
    }

    /// The id of an Ed25519 key, from its 32 bytes.
    package init(ed25519PublicKey key: [UInt8]) {
        self.init(subjectPublicKeyInfo: Ed25519DER.subjectPublicKeyInfo(key))
    }

    /// An id from its 20 bytes; nil for any other count.
    package init?(bytes: some Collection<UInt8>) {
        guard bytes.count == Self.count else { return nil }
        self.bytes = Array(bytes)
    }

    /// An id from its text form, upper or lower case; nil for anything else.
    package init?(_ text: String) {
        guard text.utf8.count == 32, let bytes = Base32.decode(text) else { return nil }
        self.init(bytes: bytes)
    }

    /// The 32 characters of base32.
    package var description: String { Base32.encode(bytes) }

    /// The first eight characters, enough for a person to tell devices apart.
    package var short: String { String(description.prefix(8)) }

    /// The name in the device's certificate, which a dialling TLS client expects of its peer.
    package var certificateName: String { description + Self.certificateNameSuffix }
}

/// The two fixed encodings of an Ed25519 key (RFC 8410); both are a constant in front of 32 bytes.
enum Ed25519DER {
    /// `SEQUENCE { SEQUENCE { OID 1.3.101.112 }, BIT STRING (32 bytes) }`
    static func subjectPublicKeyInfo(_ key: [UInt8]) -> [UInt8] {
        [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00] + key
    }

    /// `SEQUENCE { INTEGER 0, SEQUENCE { OID 1.3.101.112 }, OCTET STRING { OCTET STRING (32 bytes) } }`
    private static let privateKeyHeader: [UInt8] = [
        0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
    ]

    /// The PKCS#8 form of a seed.
    static func privateKey(seed: SecretBytes) -> SecretBytes {
        SecretBytes(count: privateKeyHeader.count + seed.count) { target in
            target.copyBytes(from: privateKeyHeader)
            seed.withUnsafeBytes { target[privateKeyHeader.count...].copyBytes(from: $0) }
        }
    }

    /// The seed in a PKCS#8 form as ``privateKey(seed:)`` writes it; nil for any other.
    static func seed(privateKey: SecretBytes) -> SecretBytes? {
        privateKey.withUnsafeBytes { bytes in
            guard bytes.count == privateKeyHeader.count + 32, bytes.starts(with: privateKeyHeader) else { return nil }
            return SecretBytes(copying: UnsafeRawBufferPointer(rebasing: bytes[privateKeyHeader.count...]))
        }
    }
}

/// Base32 of RFC 4648, lower case and without padding.
enum Base32 {
    private static let alphabet: [UInt8] = Array("abcdefghijklmnopqrstuvwxyz234567".utf8)

    /// The text of the bytes; 8 characters for each 5 bytes, the last bits filled with zeros.
    static func encode(_ bytes: some Sequence<UInt8>) -> String {
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
    static func decode(_ text: String) -> [UInt8]? {
        decode(text.utf8)
    }

    /// The same, of a text as it travels.
    static func decode(_ text: some Collection<UInt8>) -> [UInt8]? {
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
