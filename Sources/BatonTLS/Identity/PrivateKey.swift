// SPDX-License-Identifier: Apache-2.0

import COpenSSL

/// One EVP_PKEY with a private key.
///
/// OpenSSL wipes the key with the last reference (`OPENSSL_secure_clear_free` for Ed25519, `BN_clear_free` for P-256).
/// Swift code makes no copy of it, and no other code copies a key in DER.
final class PrivateKey: @unchecked Sendable {  // reason: unchanged after init; OpenSSL counts atomically
    let pointer: OpaquePointer

    /// Reads a private key in DER (PKCS #8 or SEC 1), straight from the caller's bytes.
    init(_ bytes: UnsafeRawBufferPointer) throws(TLSError) {
        ErrorQueue.clear()
        var cursor = bytes.bindMemory(to: UInt8.self).baseAddress
        guard !bytes.isEmpty, let key = d2i_AutoPrivateKey(nil, &cursor, bytes.count) else {
            throw ErrorQueue.unreadable("private key")
        }
        pointer = key
    }

    deinit {
        EVP_PKEY_free(pointer)
    }
}
