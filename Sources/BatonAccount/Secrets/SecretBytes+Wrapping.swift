// SPDX-License-Identifier: Apache-2.0

import BatonTLS

extension SecretBytes {
    /// Wraps the secret with a key of ``KeyWrap/keySize`` bytes (AES key wrap, RFC 3394). The result may go through
    /// memory that nobody wipes.
    ///
    /// - Throws: ``AccountError/cryptography(_:)``, also for a secret whose size is no multiple of 8 bytes.
    package func wrapped(with key: SecretBytes) throws(AccountError) -> [UInt8] {
        var wrapped = [UInt8](repeating: 0, count: count + KeyWrap.overhead)
        do {
            try wrapped.withUnsafeMutableBytes { target in
                try withUnsafeBytes { secret in
                    try key.withUnsafeBytes { try KeyWrap.wrap(secret, with: $0, into: target) }
                }
            }
        } catch {
            throw .cryptography("\(error)")
        }
        return wrapped
    }

    /// Unwraps a secret; nil if it was wrapped with another key, or changed.
    package convenience init?(unwrapping wrapped: [UInt8], with key: SecretBytes) {
        do {
            try self.init(count: max(0, wrapped.count - KeyWrap.overhead)) { target in
                try wrapped.withUnsafeBytes { wrapped in
                    try key.withUnsafeBytes { try KeyWrap.unwrap(wrapped, with: $0, into: target) }
                }
            }
        } catch {
            return nil
        }
    }
}
