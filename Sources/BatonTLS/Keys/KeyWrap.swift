// SPDX-License-Identifier: Apache-2.0

import COpenSSL

/// AES Key Wrap with a key of 256 bits (RFC 3394; EVP_aes_256_wrap(3)). Wrapped keys are secret without that key, and
/// unwrapping detects every change.
///
/// It works in the caller's memory, which is all that has to be wiped: OpenSSL wipes its own.
package enum KeyWrap {
    /// The size of a wrapping key, in bytes.
    package static let keySize = 32
    /// The bytes that wrapping adds.
    package static let overhead = 8

    /// Wraps keys.
    ///
    /// - Parameters:
    ///   - keys: a multiple of 8 bytes, 16 at least.
    ///   - wrapping: ``keySize`` bytes.
    ///   - target: as large as the keys and ``overhead``.
    /// - Throws: `library`, also for other sizes.
    package static func wrap(
        _ keys: UnsafeRawBufferPointer, with wrapping: UnsafeRawBufferPointer,
        into target: UnsafeMutableRawBufferPointer
    ) throws(TLSError) {
        try run(keys, wrapping, target, isWrapping: true)
    }

    /// Unwraps keys.
    ///
    /// - Parameters:
    ///   - wrapped: the result of ``wrap(_:with:into:)``.
    ///   - wrapping: the same ``keySize`` bytes.
    ///   - target: smaller by ``overhead``. Its content after an error is undefined.
    /// - Throws: `library`, if it was not wrapped with this key, was changed, or has another size.
    package static func unwrap(
        _ wrapped: UnsafeRawBufferPointer, with wrapping: UnsafeRawBufferPointer,
        into target: UnsafeMutableRawBufferPointer
    ) throws(TLSError) {
        try run(wrapped, wrapping, target, isWrapping: false)
    }

    private static func run(
        _ source: UnsafeRawBufferPointer, _ wrapping: UnsafeRawBufferPointer, _ target: UnsafeMutableRawBufferPointer,
        isWrapping: Bool
    ) throws(TLSError) {
        let doing = isWrapping ? "wrapping keys" : "unwrapping keys"
        let size = isWrapping ? source.count + overhead : source.count - overhead
        guard wrapping.count == keySize, size > 0, target.count == size else {
            throw TLSError(.library, "\(doing): \(source.count) bytes do not become \(target.count)")
        }
        ErrorQueue.clear()
        guard let context = EVP_CIPHER_CTX_new() else { throw ErrorQueue.libraryFailure(doing) }
        defer { EVP_CIPHER_CTX_free(context) }
        // Without the flag OpenSSL takes the use of these ciphers for a mistake.
        EVP_CIPHER_CTX_set_flags(context, EVP_CIPHER_CTX_FLAG_WRAP_ALLOW)
        var count: Int32 = 0
        func bytes(_ buffer: UnsafeRawBufferPointer) -> UnsafePointer<UInt8>? {
            buffer.baseAddress?.assumingMemoryBound(to: UInt8.self)
        }
        guard
            EVP_CipherInit_ex(context, EVP_aes_256_wrap(), nil, bytes(wrapping), nil, isWrapping ? 1 : 0) == 1,
            EVP_CipherUpdate(
                context, target.baseAddress?.assumingMemoryBound(to: UInt8.self), &count, bytes(source),
                Int32(source.count)) == 1,
            count == size
        else { throw ErrorQueue.libraryFailure(doing) }
    }
}
