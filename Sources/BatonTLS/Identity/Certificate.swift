// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import COpenSSL

/// One X509, to which this object holds a reference.
final class Certificate: @unchecked Sendable {  // reason: unchanged after init; OpenSSL counts atomically
    let pointer: OpaquePointer

    /// Reads one certificate in DER.
    init(_ bytes: UnsafeRawBufferPointer) throws(TLSError) {
        ErrorQueue.clear()
        var cursor = bytes.bindMemory(to: UInt8.self).baseAddress
        guard !bytes.isEmpty, let certificate = d2i_X509(nil, &cursor, bytes.count) else {
            throw ErrorQueue.unreadable("certificate")
        }
        pointer = certificate
    }

    /// Adds a reference to a certificate of another owner.
    init(retaining certificate: OpaquePointer) {
        X509_up_ref(certificate)
        pointer = certificate
    }

    deinit {
        X509_free(pointer)
    }

    /// The certificate in DER. Empty if OpenSSL cannot encode it, which does not happen to a parsed one.
    var der: [UInt8] {
        encoded { i2d_X509(pointer, $0) }
    }

    /// The SubjectPublicKeyInfo in DER, unchanged.
    var subjectPublicKeyInfo: [UInt8] {
        encoded { i2d_X509_PUBKEY(X509_get_X509_PUBKEY(pointer), $0) }
    }

    /// The device id of this certificate's key, if the certificate fits the profile of a device.
    ///
    /// Such a certificate has a key of an accepted type and exactly one subject alternative name, the DNS name of its
    /// own key's id. OpenSSL checks the other rules of the chain.
    func deviceID() throws(TLSError) -> String {
        guard hasKeyOfProfile else {
            throw TLSError(.identityMismatch, "The certificate's key is neither Ed25519 nor P-256.")
        }
        let id = DeviceID(publicKeyInfo: subjectPublicKeyInfo)
        guard let name = onlyDNSName, name.elementsEqual(id.certificateName.utf8) else {
            throw TLSError(.identityMismatch, "The certificate does not name its own key, and only it.")
        }
        return id.description
    }

    /// Whether the key has an accepted type: Ed25519, or ECDSA on P-256.
    var hasKeyOfProfile: Bool {
        guard let key = X509_get0_pubkey(pointer) else { return false }
        switch EVP_PKEY_get_base_id(key) {
        case NID_ED25519: return true
        case NID_X9_62_id_ecPublicKey: return isP256(key)
        default: return false
        }
    }

    /// Whether the key is Ed25519.
    var hasEd25519Key: Bool {
        X509_get0_pubkey(pointer).map { EVP_PKEY_get_base_id($0) == NID_ED25519 } ?? false
    }

    /// Whether the certificate states key usage and extended key usage, and is not a CA.
    ///
    /// OpenSSL checks the purpose by these extensions, and accepts a certificate without them.
    var hasUsagesOfProfile: Bool {
        let flags = X509_get_extension_flags(pointer)
        let stated = UInt32(EXFLAG_KUSAGE | EXFLAG_XKUSAGE)
        return flags & stated == stated && flags & UInt32(EXFLAG_CA) == 0
    }

    /// Whether the key of `issuer` has signed this certificate.
    func isSigned(by issuer: Certificate) -> Bool {
        ErrorQueue.clear()
        defer { ErrorQueue.clear() }
        guard let key = X509_get0_pubkey(issuer.pointer) else { return false }
        return X509_verify(pointer, key) == 1
    }

    /// The only DNS name of the subject alternative names. Nil unless the extension exists once and has exactly one
    /// name, a DNS name.
    var onlyDNSName: [UInt8]? {
        ErrorQueue.clear()
        defer { ErrorQueue.clear() }
        guard let decoded = X509_get_ext_d2i(pointer, NID_subject_alt_name, nil, nil) else { return nil }
        let names = OpaquePointer(decoded)
        defer { GENERAL_NAMES_free(names) }
        guard shim_GENERAL_NAMES_count(names) == 1, let name = shim_GENERAL_NAMES_value(names, 0),
            name.pointee.type == GEN_DNS, let text = name.pointee.d.dNSName, let bytes = ASN1_STRING_get0_data(text)
        else { return nil }
        return Array(UnsafeBufferPointer(start: bytes, count: Int(ASN1_STRING_length(text))))
    }

    private func isP256(_ key: OpaquePointer) -> Bool {
        var name = [CChar](repeating: 0, count: 64)
        var length = 0
        guard EVP_PKEY_get_group_name(key, &name, name.count, &length) == 1 else { return false }
        let group = name.prefix(length).map { UInt8(bitPattern: $0) }
        return group.elementsEqual("prime256v1".utf8)
    }

    /// Calls an i2d function twice: for the length, then for the bytes.
    private func encoded(_ encode: (UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>?) -> Int32) -> [UInt8] {
        ErrorQueue.clear()
        let length = Int(encode(nil))
        guard length > 0 else { return [] }
        return [UInt8](unsafeUninitializedCapacity: length) { buffer, count in
            var cursor = buffer.baseAddress
            count = max(0, Int(encode(&cursor)))
        }
    }
}

extension DeviceID {
    /// The id of a public key, from its SubjectPublicKeyInfo in DER. With 160 bits, a second key with the same id
    /// cannot be found.
    init(publicKeyInfo bytes: [UInt8]) {
        var digest = [UInt8](repeating: 0, count: Int(SHA256_DIGEST_LENGTH))
        _ = SHA256(bytes, bytes.count, &digest)
        self.init(digest: digest)
    }
}
