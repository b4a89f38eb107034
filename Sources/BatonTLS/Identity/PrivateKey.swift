// SPDX-License-Identifier: Apache-2.0

import COpenSSL

/// One EVP_PKEY with a private key.
///
/// OpenSSL wipes the key with the last reference (`OPENSSL_secure_clear_free` for Ed25519, `BN_clear_free` for P-256).
/// Swift code makes no copy of it, and no other code copies a key in DER.
final class PrivateKey: @unchecked Sendable {  // reason: unchanged after init; OpenSSL counts atomically
    let pointer: OpaquePointer

    /// Reads a private key, DER (PKCS #8 or SEC 1) or PEM, without a passphrase.
    init(_ bytes: UnsafeRawBufferPointer) throws(TLSError) {
        ErrorQueue.clear()
        let key: OpaquePointer?
        switch Encoding(of: bytes) {
        case .pem:
            guard let bio = Encoding.reader(of: bytes) else { throw Encoding.unreadable("private key") }
            defer { BIO_free(bio) }
            // The callback answers "no passphrase". Without it OpenSSL would ask the terminal for one.
            key = PEM_read_bio_PrivateKey(bio, nil, { _, _, _, _ in -1 }, nil)
        case .der:
            // Straight from the caller's bytes, because a BIO would make a copy.
            var cursor = bytes.bindMemory(to: UInt8.self).baseAddress
            key = d2i_AutoPrivateKey(nil, &cursor, bytes.count)
        }
        guard let key else { throw Encoding.unreadable("private key") }
        pointer = key
    }

    deinit {
        EVP_PKEY_free(pointer)
    }
}

/// The encoding of a certificate or key, which its first byte shows.
enum Encoding {
    case pem, der

    /// PEM begins with text (RFC 7468). Every structure here begins with a SEQUENCE, 0x30, in DER.
    init(of bytes: UnsafeRawBufferPointer) {
        self = bytes.first == 0x30 ? .der : .pem
    }

    /// A reader of the caller's bytes without a copy (`BIO_new_mem_buf` is read-only and borrows).
    static func reader(of bytes: UnsafeRawBufferPointer) -> OpaquePointer? {
        guard let base = bytes.baseAddress, let count = Int32(exactly: bytes.count), count > 0 else { return nil }
        return BIO_new_mem_buf(base, count)
    }

    static func unreadable(_ what: String) -> TLSError {
        TLSError(
            .invalidIdentity, "The \(what) is neither DER nor PEM that OpenSSL can read.",
            reason: ErrorQueue.drain().text)
    }
}
