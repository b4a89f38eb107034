// SPDX-License-Identifier: Apache-2.0

import SwiftProtobuf

/// Parses length-delimited records (a varint and the message) from bytes that arrive in pieces.
///
/// A pure value. It keeps the appended bytes that are not parsed yet: less than one record after `next` returned `nil`,
/// and the pieces appended since.
struct RecordParser<Record: Message> {
    private(set) var pending: [UInt8] = []
    private(set) var position = 0

    /// Whether all bytes so far were parsed into whole records.
    var isBetweenRecords: Bool { position == pending.count }

    /// Adds the next bytes of the peer.
    mutating func append(_ bytes: UnsafeRawBufferPointer) {
        pending.removeFirst(position)
        position = 0
        pending.append(contentsOf: bytes)
    }

    /// The next whole record; `nil` if more bytes are needed.
    ///
    /// - Throws: ``HandoffError`` for a record that is too long or of another type.
    mutating func next() throws(HandoffError) -> Record? {
        var length = 0
        var shift = 0
        var cursor = position
        while true {
            guard cursor < pending.count else { return nil }
            let byte = pending[cursor]
            cursor += 1
            length |= Int(byte & 0x7F) << shift
            guard length <= MessageLimits.size, shift <= 14 else {
                throw HandoffError(.internal, "the other side sent a record over \(MessageLimits.size) bytes")
            }
            if byte & 0x80 == 0 { break }
            shift += 7
        }
        guard pending.count - cursor >= length else { return nil }
        position = cursor + length
        guard
            let record = try? Record(
                serializedBytes: Array(pending[cursor..<position]), options: MessageLimits.decoding)
        else {
            throw HandoffError(.internal, "the other side sent a record that cannot be read")
        }
        return record
    }
}
