// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
package import SystemPackage

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

    package convenience init(copying bytes: UnsafeRawBufferPointer) {
        self.init(count: bytes.count) { $0.copyMemory(from: bytes) }
    }

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
    package var description: String { "<secret>" }
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

package enum SecretReadingError: Error, Equatable, CustomStringConvertible {
    case tooLong(limit: Int)
    case nothingToRead
    case failed(Errno)

    package var description: String {
        switch self {
        case .tooLong(let limit): "the input is longer than \(limit) bytes"
        case .nothingToRead: "the input is empty"
        case .failed(let error): "the input cannot be read: \(error)"
        }
    }
}

extension SecretBytes {
    /// The condition that ends reading a secret from a descriptor.
    package enum ReadingEnd: Sendable {
        /// The first newline (not part of the secret), or the end of the input. Bytes behind the newline in the same
        /// read are dropped.
        case line
        case input
    }

    /// Reads a secret from a descriptor, straight into protected memory.
    ///
    /// Blocks until the end is reached, so it is not for an event loop. The caller switches a terminal's echo off.
    ///
    /// - Parameters:
    ///   - descriptor: A terminal, pipe or file; it stays open.
    ///   - limit: The most bytes of the secret, without the newline.
    ///   - end: The condition that ends reading; `.line`, the default, is right for a terminal and a pipe.
    package convenience init(
        readingFrom descriptor: FileDescriptor, limit: Int, until end: ReadingEnd = .line
    ) throws(SecretReadingError) {
        var length = 0
        // One byte more than the limit, so that a newline right behind the longest secret still fits.
        let scratch = try SecretBytes(count: limit + 1) { buffer throws(SecretReadingError) in
            length = try readSecret(from: descriptor, into: buffer, until: end)
        }
        self.init(count: length) { target in
            scratch.withUnsafeBytes { target.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[..<length])) }
        }
    }
}

/// Reads up to the end or a full buffer and says how many bytes belong to the secret.
private func readSecret(
    from descriptor: FileDescriptor, into buffer: UnsafeMutableRawBufferPointer, until end: SecretBytes.ReadingEnd
) throws(SecretReadingError) -> Int {
    var filled = 0
    while filled < buffer.count {
        let got: Int
        do {
            got = try descriptor.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[filled...]))
        } catch {
            throw .failed(error as? Errno ?? .ioError)
        }
        if got == 0 {
            if filled == 0 { throw .nothingToRead }
            return filled
        }
        switch end {
        case .line:
            if let newline = buffer[filled..<(filled + got)].firstIndex(of: UInt8(ascii: "\n")) { return newline }
        case .input:
            break
        }
        filled += got
    }
    throw .tooLong(limit: buffer.count - 1)
}
