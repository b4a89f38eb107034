// SPDX-License-Identifier: Apache-2.0

/// Why a compressed chunk was refused.
///
/// Each is the fault of the peer, or damage on the way.
package enum CompressionError: Error, Sendable, Hashable {
    /// The bytes do not begin with a Zstandard frame: something else, a skippable frame, a format from before 1.0.
    case notFrame
    /// The frame needs a dictionary, or a window larger than a chunk.
    case unsuitable
    /// The frame does not tell its content's size, or tells another one than the chunk has.
    case wrongSize
    /// The frame ends early, or something follows it.
    case badLength
    /// The frame's content cannot be made.
    case damaged
    /// There is no memory for the context.
    case noMemory
}
