// SPDX-License-Identifier: Apache-2.0

import CLinux
import Crypto
import Glibc

/// HKDF (RFC 5869) with SHA-256 that leaves no copy of a secret in memory.
///
/// swift-crypto's HKDF keeps the key, and blocks derived from it, in arrays that are freed without being wiped.
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
            // Intermediate values stay on the stack, which is wiped. Pages of their own would cost more than all the
            // hashing, and a joining device derives 64 keys for each forged record.
            withWipedStack {
                hash(key, 0x36, message, into: target)
                hash(key, 0x5c, UnsafeRawBufferPointer(target), into: target)
            }
        }
    }

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

/// Runs a function that handles a secret, then wipes 32 KiB of the stack below it. That covers local copies of a
/// library, which no other code can reach. The function must not suspend.
func withWipedStack<Value, Failure: Error>(_ body: () throws(Failure) -> Value) throws(Failure) -> Value {
    defer { baton_wipe_stack() }
    return try runBelow(body)
}

/// Runs in a frame of its own, so that the frame that wipes lies above everything `body` leaves.
@inline(never)
private func runBelow<Value, Failure: Error>(_ body: () throws(Failure) -> Value) throws(Failure) -> Value {
    try body()
}

/// Keeps the memory of a process that holds secrets from the other programs of its user, and off the disk.
package enum ProcessSecrecy {
    /// Keeps this process from dumping core, and its memory and environment from every reader but root.
    ///
    /// Other programs of the same user are shut out as well (`ptrace`, `/proc/PID/mem`). After a crash the Swift
    /// runtime would print registers, and the memory that they point to; this switches that off.
    ///
    /// Call it before the first secret is read. It has no failure to report, since Linux refuses neither request. The
    /// limit on cores is inherited by programs that are started later; the rest is not.
    package static func protect() {
        _ = baton_forbid_dumping()
        // This is enough if /proc/sys/kernel/core_pattern names a file; the line above is enough if it names a pipe.
        var none = rlimit(rlim_cur: 0, rlim_max: 0)
        _ = setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &none)
        // Those that the runtime's backtracer handles (swift/docs/Backtracing.rst).
        for crash in [SIGQUIT, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP] { signal(crash, SIG_DFL) }
    }
}
