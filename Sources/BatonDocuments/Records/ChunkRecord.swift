// SPDX-License-Identifier: Apache-2.0

/// The form of a chunk on the wire: a header, its content in one of several encodings, and the content's checksum.
///
/// See "Chunk record" in the wire specification.
package enum ChunkRecord {
    /// How the content is said.
    package enum Encoding: UInt8, Sendable, Hashable, CaseIterable {
        /// The content itself; how many bytes follows from the layout.
        case plain = 0
        /// Nothing: every byte of the content is zero.
        case zeros = 1
        /// A length and a zstd frame of the content.
        case zstd = 2
        /// A length and what the content is made of: parts of files that the receiver has, and new bytes.
        case delta = 3
    }

    /// Bytes before the content: its encoding, and what the sender waits for.
    package static let headerSize = 2
    /// Bytes of the length that stands before an encoded content.
    package static let lengthSize = 4
    /// Bytes of the checksum that follows.
    package static let checksumSize = 16
    /// Bytes of the record of a whole chunk that comes plain, which most are.
    package static let plainSize = headerSize + ChunkLayout.chunkSize + checksumSize
    /// Bytes of the largest record: what a buffer needs to hold one. What is encoded is never larger than the content.
    package static let capacity = size(ofContent: ChunkLayout.chunkSize)

    /// Bytes that a record of so much content takes at the most.
    package static func size(ofContent size: Int) -> Int { headerSize + lengthSize + size + checksumSize }
}

/// The part of a transfer that would have to be faster.
package enum Bottleneck: UInt8, Sendable, Hashable, CaseIterable {
    /// Not known yet.
    case unknown = 0
    /// The network between the devices.
    case link = 1
    /// Reading or writing.
    case disk = 2
    /// Compressing, comparing and checking.
    case processor = 3
}
