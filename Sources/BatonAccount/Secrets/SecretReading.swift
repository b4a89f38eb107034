// SPDX-License-Identifier: Apache-2.0

package import SystemPackage

/// Why a secret could not be read from a descriptor.
package enum SecretReadingError: Error, Equatable, CustomStringConvertible {
    /// There is more than the limit allows; nothing was kept.
    case tooLong(limit: Int)
    /// The descriptor ended before its first byte.
    case nothingToRead
    /// The system refused to read.
    case failed(Errno)

    /// One sentence for the person who typed the input.
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
        /// At the end of the input.
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
