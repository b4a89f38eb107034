// SPDX-License-Identifier: Apache-2.0

import Baton

/// Bytes of a document that a user asks for: `START-END`, both counted from 0 and END left out, `START-` to its end.
struct ByteRange: Equatable {
    /// What is wrong with a text that is no range.
    static let problem = "--range takes START-END in bytes, such as 0-65536, or START- to the end"

    let start: UInt64
    let end: UInt64

    /// Reads a range; nil for what is none, or is empty.
    init?(_ text: String) {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2, let start = UInt64(parts[0]) else { return nil }
        let end = parts[1].isEmpty ? UInt64.max : UInt64(parts[1])
        guard let end, start < end else { return nil }
        self.start = start
        self.end = end
    }

    /// What is asked for at once, one after the other: cut where chunks are cut too, so that none is sent twice.
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
