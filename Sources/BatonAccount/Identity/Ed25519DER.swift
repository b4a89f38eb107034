// SPDX-License-Identifier: Apache-2.0

package import BatonProtocol
import Crypto
import FoundationEssentials

extension DeviceID {
    /// The id of a key, from the DER of its SubjectPublicKeyInfo.
    package init(subjectPublicKeyInfo: some Collection<UInt8>) {
        self.init(digest: Array(SHA256.hash(data: Array(subjectPublicKeyInfo))))
    }

    package init(ed25519PublicKey key: [UInt8]) {
        self.init(subjectPublicKeyInfo: Ed25519DER.subjectPublicKeyInfo(key))
    }
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
