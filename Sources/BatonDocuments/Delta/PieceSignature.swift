// SPDX-License-Identifier: Apache-2.0

import Crypto

/// The signature of a piece of a file: enough for the other to recognise the same bytes.
///
/// On the wire 20 bytes: the length (4 bytes, big endian), then the digest. The pieces of a file follow one another in
/// its order without a gap, so that the offset is not told.
package struct PieceSignature: Sendable, Hashable {
    /// The most signatures of one request, all files together: 65,536. Their memory is documented at
    /// ``SignatureIndex``; with pieces of 4 MiB they are good for 256 GiB.
    package static let limit = 1 << 16
    /// Bytes of one signature on the wire.
    package static let byteCount = 20

    /// Bytes of the piece, 1 to `PieceSize.maximum`.
    package let length: UInt32
    package let digest: PieceDigest

    /// The signature of a piece of this length and digest.
    package init(length: UInt32, digest: PieceDigest) {
        self.length = length
        self.digest = digest
    }

    /// The signature that stands at `bytes`. There have to be 20 bytes.
    init(wire bytes: UnsafeRawBufferPointer) {
        length = UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: 0, as: UInt32.self))
        digest = PieceDigest(
            high: UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 4, as: UInt64.self)),
            low: UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 12, as: UInt64.self)))
    }

    /// Appends the 20 bytes of the wire form.
    package func append(to batch: inout [UInt8]) {
        withUnsafeBytes(of: length.bigEndian) { batch.append(contentsOf: $0) }
        withUnsafeBytes(of: digest.high.bigEndian) { batch.append(contentsOf: $0) }
        withUnsafeBytes(of: digest.low.bigEndian) { batch.append(contentsOf: $0) }
    }
}

/// The first half of a piece's SHA-256.
///
/// 128 bits find the piece; a pair of pieces with the same would take 2^64 attempts to make, and is noticed by the
/// SHA-256 of the whole chunk (``ContentDigest``).
package struct PieceDigest: Sendable, Hashable {
    /// The first 8 bytes, big endian.
    package let high: UInt64
    /// The next 8 bytes.
    package let low: UInt64

    package init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    package init(of bytes: UnsafeRawBufferPointer) {
        var hash = PieceHash()
        hash.update(bytes)
        self = hash.finish()
    }
}

/// The digest of a piece that comes in slices. The state is one object of some 200 bytes on the heap.
struct PieceHash {
    private var hash = SHA256()

    mutating func update(_ bytes: UnsafeRawBufferPointer) {
        hash.update(bufferPointer: bytes)
    }

    /// The digest of all bytes since the start, or since the last call.
    mutating func finish() -> PieceDigest {
        let digest = hash.finalize().withUnsafeBytes { bytes in
            PieceDigest(
                high: UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 0, as: UInt64.self)),
                low: UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self)))
        }
        hash = SHA256()
        return digest
    }
}

/// The SHA-256 of a chunk's content, which follows a delta on the wire.
///
/// Copies are found by half a digest of what another device says that it has, and put together from files that may have
/// changed since: this is what tells that the result is the origin's content.
package struct ContentDigest: Sendable, Hashable {
    /// Bytes on the wire.
    package static let byteCount = 32

    private let words: SIMD4<UInt64>

    package init(of bytes: UnsafeRawBufferPointer) {
        var hash = SHA256()
        hash.update(bufferPointer: bytes)
        self = hash.finalize().withUnsafeBytes { ContentDigest(wire: $0) }
    }

    /// The digest that stands at `bytes`. There have to be 32 bytes.
    package init(wire bytes: UnsafeRawBufferPointer) {
        words = bytes.loadUnaligned(as: SIMD4<UInt64>.self)
    }

    /// Writes the digest to the first 32 bytes of `bytes`.
    package func write(to bytes: UnsafeMutableRawBufferPointer) {
        let place = UnsafeMutableRawBufferPointer(rebasing: bytes[..<Self.byteCount])
        withUnsafeBytes(of: words) { place.copyMemory(from: $0) }
    }
}

/// How large the pieces are that a file is cut into by its content, on average: a power of two, 16 KiB to 4 MiB.
///
/// Both devices have to use the same one. It depends on what the receiver has: see `forBases`.
package struct PieceSize: Sendable, Hashable {
    /// The smallest average: 16 KiB.
    package static let smallest = PieceSize(exponent: 14)
    /// The largest average: 4 MiB.
    package static let largest = PieceSize(exponent: 22)

    /// The average's logarithm to the base of two, 14 to 22.
    let exponent: Int

    /// The average in bytes: what is named on the wire.
    package var average: Int { 1 << exponent }
    /// Bytes of the smallest piece, but for the last one of a file: a quarter of the average.
    package var minimum: Int { average / 4 }
    /// Bytes of the largest piece: four times the average.
    package var maximum: Int { average * 4 }

    /// The size with this average in bytes, as it came over the wire.
    ///
    /// - Returns: nil for what is not a power of two from 16 KiB to 4 MiB.
    package init?(average: UInt64) {
        guard average.nonzeroBitCount == 1 else { return nil }
        let exponent = average.trailingZeroBitCount
        guard (Self.smallest.exponent...Self.largest.exponent).contains(exponent) else { return nil }
        self.exponent = exponent
    }

    private init(exponent: Int) {
        self.exponent = exponent
    }

    /// The smallest size with which files of so many bytes together have at most `PieceSignature.limit` pieces.
    ///
    /// Pieces of ordinary content are 1.1 times the average, so the limit is kept. Otherwise the last bases, which are
    /// the smallest of a folder, are not used.
    package static func forBases(totalSize: UInt64, fileCount: Int) -> PieceSize {
        let sizes = (smallest.exponent...largest.exponent).lazy.map(PieceSize.init(exponent:))
        let room = UInt64(max(0, PieceSignature.limit - max(0, fileCount)))
        return sizes.first { totalSize >> UInt64($0.exponent) < room } ?? largest
    }
}
