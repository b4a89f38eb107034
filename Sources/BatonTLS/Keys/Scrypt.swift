// SPDX-License-Identifier: Apache-2.0

import COpenSSL

/// A key from a passphrase, by scrypt (RFC 7914; EVP_PBE_scrypt(3)).
///
/// It works in the caller's memory, which is all that has to be wiped: OpenSSL wipes its own.
package enum Scrypt {
    /// The cost of one derivation: 128 · r · N bytes of memory, and a time that grows with N · r · p.
    package struct Cost: Sendable, Equatable {
        /// The base-2 logarithm of N, 1 to 63.
        package let logN: UInt8
        /// The size of a block, in units of 128 bytes.
        package let r: UInt32
        /// How many mixes are made, one after the other.
        package let p: UInt32

        /// A cost from its three parameters.
        package init(logN: UInt8, r: UInt32, p: UInt32) {
            self.logN = logN
            self.r = r
            self.p = p
        }

        /// The memory of a derivation, in bytes.
        package var memory: UInt64 { 128 * UInt64(r) << UInt64(logN) }
    }

    /// Fills `target` with a key. Blocks for as long as `cost` takes.
    ///
    /// - Throws: `library`, if there is not enough memory, or for parameters that RFC 7914 forbids.
    package static func derive(
        from passphrase: UnsafeRawBufferPointer, salt: [UInt8], cost: Cost, into target: UnsafeMutableRawBufferPointer
    ) throws(TLSError) {
        ErrorQueue.clear()
        // OpenSSL counts the mixed blocks and two more blocks as well. Its default limit is 32 MiB.
        let limit = cost.memory + 128 * UInt64(cost.r) * UInt64(cost.p + 2)
        guard
            EVP_PBE_scrypt(
                passphrase.baseAddress?.assumingMemoryBound(to: CChar.self), passphrase.count, salt, salt.count,
                1 << UInt64(cost.logN), UInt64(cost.r), UInt64(cost.p), limit,
                target.baseAddress?.assumingMemoryBound(to: UInt8.self), target.count) == 1
        else { throw ErrorQueue.libraryFailure("deriving a key from a passphrase") }
    }
}
