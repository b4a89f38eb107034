// SPDX-License-Identifier: Apache-2.0

/// The signatures of what the other device has, made to be looked up: which of its bytes are these?
///
/// At most `PieceSignature.limit` entries, for which it grows with what came up to ``memoryBound``. The other device
/// chooses the digests, and a dictionary's places depend on a random number of this process too: nobody can make all of
/// them collide. A value; copies share their memory.
package struct SignatureIndex: Sendable {
    /// A run of bytes in one of the other device's files.
    package struct Match: Sendable, Hashable {
        /// The number of the file, counted from 0 in the order in which signatures came.
        package let basis: Int
        /// Where the bytes begin in it.
        package let offset: UInt64
    }

    private struct Place: Sendable {
        let offset: UInt64
        let length: UInt32
        let basis: UInt32
    }

    /// The most bytes that an index takes, where a dictionary has room for twice as many entries: 4 MiB.
    package static let memoryBound =
        2 * PieceSignature.limit * (MemoryLayout<PieceDigest>.stride + MemoryLayout<Place>.stride)

    /// How the other device cut its files.
    package let size: PieceSize
    /// Signatures that came so far; the same piece twice counts twice.
    package private(set) var signatureCount = 0

    private var places: [PieceDigest: Place] = [:]
    private var basis = 0
    private var offset: UInt64 = 0
    /// Whether the last piece was one that only the end of a file can be.
    private var isAtEnd = false

    /// An index of nothing.
    package init(size: PieceSize) {
        self.size = size
    }

    /// Whether nothing can be found.
    package var isEmpty: Bool { places.isEmpty }

    /// Takes more signatures of the file `basis`, in their wire form; they go on where the last ones of it ended.
    ///
    /// A piece that is there already is left out: the first place is as good. Two pieces with one digest are one.
    ///
    /// - Parameter basis: 0 at first, then the same as before or a larger one (a file without a piece may be left out).
    /// - Throws: for a part of a signature, more than `PieceSignature.limit` of them, files that do not rise, and a
    ///   piece that has no bytes, is too large, or is too small and not the last of its file. The index is then of no
    ///   more use.
    package mutating func append(_ batch: UnsafeRawBufferPointer, basis: Int) throws(DeltaError) {
        guard batch.count.isMultiple(of: PieceSignature.byteCount) else { throw DeltaError() }
        let count = batch.count / PieceSignature.byteCount
        guard count <= PieceSignature.limit - signatureCount else { throw DeltaError() }
        guard basis >= self.basis, basis <= Int(UInt32.max) else { throw DeltaError() }
        if basis > self.basis {
            self.basis = basis
            offset = 0
            isAtEnd = false
        }
        for number in 0..<count {
            let start = number * PieceSignature.byteCount
            try append(
                PieceSignature(wire: UnsafeRawBufferPointer(rebasing: batch[start..<start + PieceSignature.byteCount])))
        }
    }

    /// Where the other device has these bytes; nil where it has not.
    package func match(_ digest: PieceDigest, length: Int) -> Match? {
        guard let place = places[digest], Int(place.length) == length else { return nil }
        return Match(basis: Int(place.basis), offset: place.offset)
    }

    private mutating func append(_ signature: PieceSignature) throws(DeltaError) {
        let length = Int(signature.length)
        guard length > 0, length <= size.maximum, !isAtEnd else { throw DeltaError() }
        isAtEnd = length < size.minimum
        signatureCount += 1
        if places[signature.digest] == nil {
            places[signature.digest] = Place(offset: offset, length: signature.length, basis: UInt32(basis))
        }
        // Cannot overflow: 65,536 pieces of 16 MiB are 1 TiB.
        offset += UInt64(length)
    }
}
