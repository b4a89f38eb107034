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
