// SPDX-License-Identifier: Apache-2.0

import Baton

/// A range of bytes of a document: `START-END`, counted from 0 and without END, or `START-` for the rest.
struct ByteRange: Equatable {
    /// The message for a text that is no range.
    static let problem = "--range takes START-END in bytes, such as 0-65536, or START- to the end"

    let start: UInt64
    let end: UInt64

    /// Reads a range; nil if the text is none, or the range is empty.
    init?(_ text: String) {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2, let start = UInt64(parts[0]) else { return nil }
        let end = parts[1].isEmpty ? UInt64.max : UInt64(parts[1])
        guard let end, start < end else { return nil }
        self.start = start
        self.end = end
    }

    /// The pieces to request, one after another. They end at chunk boundaries, so that no chunk is sent twice.
    var pieces: some Sequence<Range<UInt64>> {
        let size = UInt64(NodeClient.readBound)
        return sequence(state: start) { next in
            guard next < end else { return nil }
            let first = next
            next = min(end - first, size - first % size) + first
            return first..<next
        }
    }
}
