// SPDX-License-Identifier: Apache-2.0

import CLinux
import Crypto

/// HKDF (RFC 5869) with SHA-256, from secrets of which nothing may stay in memory.
///
/// swift-crypto's own keeps the key, and what it makes of it for the hash, in arrays that are freed as they are.
enum SecretDerivation {
    /// HKDF-Extract, which is HMAC with the salt as its key (section 2.2).
    static func extract(_ secret: SecretBytes, salt: [UInt8]) -> SecretBytes {
        secret.withUnsafeBytes { secret in salt.withUnsafeBytes { code(of: secret, by: $0) } }
    }

    /// HKDF-Expand to 32 bytes, the first block of the output (section 2.3).
    static func expand(_ pseudoRandomKey: SecretBytes, _ label: String) -> SecretBytes {
        let message = Array(label.utf8) + [1]
        return pseudoRandomKey.withUnsafeBytes { key in message.withUnsafeBytes { code(of: $0, by: key) } }
    }

    /// HMAC (RFC 2104) by a key of at most one block.
    private static func code(of message: UnsafeRawBufferPointer, by key: UnsafeRawBufferPointer) -> SecretBytes {
        precondition(key.count <= SHA256.blockByteCount, "a longer key would be hashed first")
        return SecretBytes(count: SHA256.byteCount) { target in
            // What is between stays on the stack: pages of their own for it would take longer than all the hashing, and
            // who joins an account derives 64 keys for each record that somebody makes up.
            withWipedStack {
                hash(key, 0x36, message, into: target)
                hash(key, 0x5c, UnsafeRawBufferPointer(target), into: target)
            }
        }
    }

    /// The hash of a masked key and of a message.
    private static func hash(
        _ key: UnsafeRawBufferPointer, _ mask: UInt8, _ message: UnsafeRawBufferPointer,
        into target: UnsafeMutableRawBufferPointer
    ) {
        var hasher = SHA256()
        withUnsafeTemporaryAllocation(byteCount: SHA256.blockByteCount, alignment: 16) { block in
            for index in block.indices { block[index] = mask ^ (index < key.count ? key[index] : 0) }
            hasher.update(bufferPointer: UnsafeRawBufferPointer(block))
        }
        hasher.update(bufferPointer: message)
        hasher.finalize().withUnsafeBytes { target.copyMemory(from: $0) }
    }
}

/// Runs something that handles a secret, and wipes what it has left on the stack, 32 KiB deep: a library's local copies
/// as well, which nobody else can reach. Not for what suspends.
func withWipedStack<Value, Failure: Error>(_ body: () throws(Failure) -> Value) throws(Failure) -> Value {
    defer { baton_wipe_stack() }
    return try runBelow(body)
}

/// Has a frame of its own, so that what `body` leaves is below the one that wipes.
@inline(never)
private func runBelow<Value, Failure: Error>(_ body: () throws(Failure) -> Value) throws(Failure) -> Value {
    try body()
}
