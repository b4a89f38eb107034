// SPDX-License-Identifier: Apache-2.0

import BatonProtocol

/// How a reader that takes records of one size has the bytes of a stream cut into buffers: at the records' starts, so
/// that a whole record comes in one piece, with a byte of its choice at the start of a page.
///
/// It is a wish for what comes from now on. What has come already lies as it came, and a record of another size shifts
/// those after it until the reader says anew where they begin.
package struct Framing: Sendable, Hashable {
    /// Bytes of a record, at least one.
    package var recordSize: Int
    /// Which byte of a record is to lie at a multiple of `Buffer.pageSize` in memory.
    package var alignedByte: Int
    /// Bytes, from the next one that is read on, to where a record begins.
    package var distance: Int

    /// A wish.
    package init(recordSize: Int, alignedByte: Int, distance: Int) {
        precondition(recordSize > 0 && alignedByte >= 0 && distance >= 0, "records have a size, and begin somewhere")
        self.recordSize = recordSize
        self.alignedByte = alignedByte
        self.distance = distance
    }
}

/// Where buffers begin and end that records are to lie in.
struct Frames {
    let recordSize: Int
    let alignedByte: Int
    /// An offset of the stream at which a record begins.
    private let start: Int

    /// - Parameter position: the offset of the stream that the framing's distance is counted from.
    init(_ framing: Framing, at position: Int) {
        recordSize = framing.recordSize
        alignedByte = framing.alignedByte
        start = position + framing.distance
    }

    /// How many bytes belong in a buffer that begins at an offset of the stream: to the end of the record there.
    func room(at position: Int) -> Int {
        let taken = (position - start) % recordSize
        return taken > 0 ? recordSize - taken : taken == 0 ? recordSize : -taken
    }

    /// Whether a buffer is one that records are to lie in.
    func fit(_ buffer: Buffer) -> Bool {
        buffer.alignedByte == alignedByte && buffer.capacity >= recordSize
    }
}
