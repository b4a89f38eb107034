// SPDX-License-Identifier: Apache-2.0

import BatonProtocol

/// The size and position of records that a reader expects. The stream's bytes are then cut into buffers at the start of
/// records, so that each record is in one piece, with a chosen byte at the start of a page.
///
/// It applies to bytes that arrive later. A record of another size shifts those after it until the reader states the
/// position again.
package struct Framing: Sendable, Hashable {
    /// The size of a record in bytes, at least one.
    package var recordSize: Int
    /// The index of the byte in a record whose address is to be a multiple of `Buffer.pageSize`.
    package var alignedByte: Int
    /// The number of bytes from the next one that is read to the start of a record.
    package var distance: Int

    /// Makes a framing.
    package init(recordSize: Int, alignedByte: Int, distance: Int) {
        precondition(recordSize > 0 && alignedByte >= 0 && distance >= 0, "records have a size, and begin somewhere")
        self.recordSize = recordSize
        self.alignedByte = alignedByte
        self.distance = distance
    }

    /// The number of bytes from an offset to the end of the record there. Offsets count from where ``distance`` does.
    func bytesToRecordEnd(at offset: Int) -> Int {
        let taken = (offset - distance) % recordSize
        return taken > 0 ? recordSize - taken : taken == 0 ? recordSize : -taken
    }

    /// Whether a record fits into a buffer with the right alignment.
    func fits(_ buffer: Buffer) -> Bool {
        buffer.alignedByte == alignedByte && buffer.capacity >= recordSize
    }
}
