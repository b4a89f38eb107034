// SPDX-License-Identifier: Apache-2.0

/// What the signatures of a basis say: cut by content, with a digest of each piece.
package struct SignatureBatch: Sendable {
    /// The number of the basis.
    package let basis: Int
    /// Signatures in their wire form, at most 56 KiB.
    package let bytes: [UInt8]
    /// How long making them took the processor; the disk took the rest of the time.
    package let processorTime: Duration
}
