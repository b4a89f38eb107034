// SPDX-License-Identifier: Apache-2.0

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
    /// Pieces of ordinary content are 1.1 times the average, so the limit is kept. Content that is cut more often, more
    /// than 256 GiB, and large files beside nearly as many small ones as there can be signatures reach it before their
    /// end: the rest of the bases is then not used, which are the smallest of a folder.
    package static func forBases(totalSize: UInt64, fileCount: Int) -> PieceSize {
        let sizes = (smallest.exponent...largest.exponent).lazy.map(PieceSize.init(exponent:))
        let room = UInt64(max(0, PieceSignature.limit - max(0, fileCount)))
        return sizes.first { totalSize >> UInt64($0.exponent) < room } ?? largest
    }
}
