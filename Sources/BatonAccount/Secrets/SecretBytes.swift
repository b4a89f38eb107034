// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc

/// Bytes that must not leak: account keys, private keys, symmetric keys.
///
/// The bytes live in pages of their own. These are kept out of core dumps and, if the limit on locked memory allows,
/// out of swap. They are wiped before the pages are returned. The bytes cannot be printed and never pass through a
/// `String`. One value costs one page (4 KiB), so this is a type for keys, not for payloads.
///
/// Two copies remain possible: the cryptography libraries copy a key while they use it (they wipe their copies), and
/// the compiler may leave a word of it in a register.
///
/// Immutable after `init`, hence safe to use from any isolation.
package final class SecretBytes: @unchecked Sendable {  // reason: the memory is written only inside init
    private let base: UnsafeMutableRawPointer
    private let mapped: Int

    /// How many bytes the secret has.
    package let count: Int

    /// Makes a secret of `count` bytes, written by `fill`.
    ///
    /// The buffer passed to `fill` is zeroed and may be used only inside the closure.
    ///
    /// - Throws: the error of `fill`, after the memory is wiped.
    package init<Failure: Error>(
        count: Int, filledBy fill: (UnsafeMutableRawBufferPointer) throws(Failure) -> Void
    ) throws(Failure) {
        precondition(count >= 0, "a secret cannot have \(count) bytes")
        let page = Int(getpagesize())
        let size = max(1, (count + page - 1) / page) * page
        let flags = MAP_PRIVATE | MAP_ANONYMOUS
        guard let memory = mmap(nil, size, PROT_READ | PROT_WRITE, flags, -1, 0), memory != MAP_FAILED else {
            preconditionFailure("no memory for a secret of \(count) bytes")
        }
        // Both are best effort: a container may allow neither, and a key in ordinary memory still works.
        _ = madvise(memory, size, MADV_DONTDUMP)
        _ = mlock(memory, size)
        self.base = memory
        self.mapped = size
        self.count = count
        // All stored properties are set, so deinit runs when `fill` throws.
        try fill(UnsafeMutableRawBufferPointer(start: memory, count: count))
    }

    deinit {
        explicit_bzero(base, mapped)
        _ = munlock(base, mapped)
        munmap(base, mapped)
    }

    /// Makes a secret from bytes that the caller owns, and wipes itself.
    package convenience init(copying bytes: UnsafeRawBufferPointer) {
        self.init(count: bytes.count) { $0.copyMemory(from: bytes) }
    }

    /// Makes a secret of `count` bytes from the system's random source.
    package static func random(count: Int) -> SecretBytes {
        SecretBytes(count: count, filledBy: fillWithRandomBytes)
    }

    /// Reads the secret in place.
    ///
    /// The buffer is valid only inside `body`. Copy nothing out of it but values derived from the secret.
    package func withUnsafeBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try body(UnsafeRawBufferPointer(start: base, count: count))
    }
}

extension SecretBytes: Equatable {
    /// Compares in a time that depends on the lengths alone, never on where the first difference is.
    package static func == (left: SecretBytes, right: SecretBytes) -> Bool {
        guard left.count == right.count else { return false }
        var difference: UInt8 = 0
        left.withUnsafeBytes { left in
            right.withUnsafeBytes { right in
                for index in left.indices { difference |= left[index] ^ right[index] }
            }
        }
        return difference == 0
    }
}

extension SecretBytes: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Always `<secret>`.
    package var description: String { "<secret>" }

    /// Always `<secret>`.
    package var debugDescription: String { "<secret>" }

    /// A mirror without children, so that `dump` shows nothing either.
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// Fills the buffer from the system's random source (`getentropy(3)`, at most 256 bytes a call).
///
/// Traps when the kernel has no randomness to give: continuing would make guessable keys.
func fillWithRandomBytes(_ buffer: UnsafeMutableRawBufferPointer) {
    for start in stride(from: 0, to: buffer.count, by: 256) {
        let part = UnsafeMutableRawBufferPointer(rebasing: buffer[start..<min(start + 256, buffer.count)])
        guard let base = part.baseAddress else { return }
        precondition(getentropy(base, part.count) == 0, "the system has no random bytes")
    }
}

/// Random bytes that are no secret: nonces, salts, serial numbers.
func randomBytes(_ count: Int) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
        fillWithRandomBytes(UnsafeMutableRawBufferPointer(buffer))
        initialized = count
    }
}
