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
    /// The piece's digest.
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

    /// The digest of these two halves.
    package init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// The digest of these bytes.
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
