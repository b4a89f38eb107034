// SPDX-License-Identifier: Apache-2.0

import Crypto

/// The SHA-256 of a chunk's content, which follows a delta on the wire.
///
/// Copies are found by half a digest of what another device says that it has, and put together from files that may have
/// changed since: this is what tells that the result is the origin's content.
package struct ContentDigest: Sendable, Hashable {
    /// Bytes on the wire.
    package static let byteCount = 32

    private let words: (UInt64, UInt64, UInt64, UInt64)

    /// The digest of these bytes.
    package init(of bytes: UnsafeRawBufferPointer) {
        var hash = SHA256()
        hash.update(bufferPointer: bytes)
        self = hash.finalize().withUnsafeBytes { ContentDigest(wire: $0) }
    }

    /// The digest that stands at `bytes`. There have to be 32 bytes.
    package init(wire bytes: UnsafeRawBufferPointer) {
        words = bytes.loadUnaligned(as: (UInt64, UInt64, UInt64, UInt64).self)
    }

    /// Writes the digest to the first 32 bytes of `bytes`.
    package func write(to bytes: UnsafeMutableRawBufferPointer) {
        let place = UnsafeMutableRawBufferPointer(rebasing: bytes[..<Self.byteCount])
        withUnsafeBytes(of: words) { place.copyMemory(from: $0) }
    }

    /// Whether the two are the same.
    package static func == (left: ContentDigest, right: ContentDigest) -> Bool { left.words == right.words }

    /// Hashes the digest's first word, which is as good as all of them.
    package func hash(into hasher: inout Hasher) { hasher.combine(words.0) }
}
