// SPDX-License-Identifier: Apache-2.0

import COpenSSL

/// The name of a device in its certificate, which is derived from its key.
enum CertificateName {
    /// The suffix of the certificate's DNS name. `invalid` is reserved (RFC 2606) and never resolves.
    static let suffix = ".device.baton.invalid"

    /// The characters of a device id: 20 bytes, five bits each.
    static let idLength = 32

    /// The DNS name in a device's certificate.
    static func host(of deviceID: String) -> String {
        deviceID + suffix
    }

    /// The device id of a public key: base32 (RFC 4648, lower case, no padding) of the first 20 bytes of the SHA-256 of
    /// its SubjectPublicKeyInfo. With 160 bits, a second key with the same id cannot be found.
    static func deviceID(ofSubjectPublicKeyInfo bytes: [UInt8]) -> String {
        var digest = [UInt8](repeating: 0, count: Int(SHA256_DIGEST_LENGTH))
        _ = SHA256(bytes, bytes.count, &digest)
        return base32(digest.prefix(20))
    }

    /// Whether the text has the form of a device id.
    static func isDeviceID(_ text: String) -> Bool {
        text.utf8.count == idLength && text.utf8.allSatisfy(alphabet.contains)
    }

    static func base32(_ bytes: some Sequence<UInt8>) -> String {
        var text = ""
        var bits: UInt32 = 0
        var count = 0
        for byte in bytes {
            bits = (bits << 8 | UInt32(byte)) & 0xFFFF
            count += 8
            while count >= 5 {
                count -= 5
                text.unicodeScalars.append(Unicode.Scalar(alphabet[Int(bits >> UInt32(count)) & 31]))
            }
        }
        if count > 0 {
            text.unicodeScalars.append(Unicode.Scalar(alphabet[Int(bits << UInt32(5 - count)) & 31]))
        }
        return text
    }

    private static let alphabet = Array("abcdefghijklmnopqrstuvwxyz234567".utf8)
}

extension Certificate {
    /// The device id of this certificate's key, if the certificate fits the profile of a device.
    ///
    /// Such a certificate has a key of an accepted type and exactly one subject alternative name, the DNS name of its
    /// own key's id. OpenSSL checks the other rules of the chain.
    func deviceID() throws(TLSError) -> String {
        guard hasKeyOfProfile else {
            throw TLSError(.identityMismatch, "The certificate's key is neither Ed25519 nor P-256.")
        }
        let id = CertificateName.deviceID(ofSubjectPublicKeyInfo: subjectPublicKeyInfo)
        guard let name = onlyDNSName, name.elementsEqual(CertificateName.host(of: id).utf8) else {
            throw TLSError(.identityMismatch, "The certificate does not name its own key, and only it.")
        }
        return id
    }
}
