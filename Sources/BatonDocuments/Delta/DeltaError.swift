// SPDX-License-Identifier: Apache-2.0

/// An error in signatures or in a delta from another device.
///
/// Each is the fault of the peer and ends the request that they belong to, no more than that.
package enum DeltaError: Error, Sendable, Hashable {
    /// A batch is no whole number of signatures.
    case truncatedSignature
    /// More than `PieceSignature.limit` signatures.
    case tooManySignatures
    /// A piece of 0 bytes, larger than the maximum, or smaller than the minimum and not the last one of its file.
    case badPieceLength
    /// The files of a request are not told one after the other.
    case badBasisOrder
    /// A number in a delta that ends early, is longer than it has to be, or does not fit in 64 bits.
    case badNumber
    /// More than `DeltaDecoder.operationLimit` operations.
    case tooManyOperations
    /// An operation of 0 bytes, of more than the chunk still lacks, or a literal of more than the delta still has.
    case badLength
    /// A copy from a file that there is not, or from beyond its end.
    case outsideBasis
    /// The operations end before the chunk is whole.
    case incomplete
    /// There are bytes after the operation that ends the chunk.
    case excess
}
