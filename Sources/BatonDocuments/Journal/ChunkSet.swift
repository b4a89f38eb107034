// SPDX-License-Identifier: Apache-2.0

/// Which chunks of a document are there: rising ranges with gaps between them.
///
/// A transfer fills it in order, so there is a range for each time that it was interrupted; damage of a journal, and
/// what comes of it, can make more: at most one for every second chunk.
struct ChunkSet: Sendable, Hashable {
    /// Rising, none empty, none touching the next.
    private(set) var ranges: [Range<UInt64>] = []

    /// How many chunks are there.
    var count: UInt64 { ranges.reduce(0) { $0 + UInt64($1.count) } }

    /// Whether a chunk is there.
    func contains(_ chunk: UInt64) -> Bool {
        let index = position(of: chunk)
        return index > 0 && ranges[index - 1].contains(chunk)
    }

    /// Adds a chunk; one that is there already changes nothing.
    mutating func insert(_ chunk: UInt64) {
        let index = position(of: chunk)
        if index > 0, ranges[index - 1].contains(chunk) { return }
        let touchesBefore = index > 0 && ranges[index - 1].upperBound == chunk
        let touchesAfter = index < ranges.count && ranges[index].lowerBound == chunk + 1
        switch (touchesBefore, touchesAfter) {
        case (true, true):
            ranges[index - 1] = ranges[index - 1].lowerBound..<ranges[index].upperBound
            ranges.remove(at: index)
        case (true, false): ranges[index - 1] = ranges[index - 1].lowerBound..<chunk + 1
        case (false, true): ranges[index] = chunk..<ranges[index].upperBound
        case (false, false): ranges.insert(chunk..<chunk + 1, at: index)
        }
    }

    /// Missing chunks of `chunks`, rising, at most `limit` ranges of them.
    func missing(in chunks: Range<UInt64>, limit: Int = .max) -> [Range<UInt64>] {
        var missing: [Range<UInt64>] = []
        var next = chunks.lowerBound
        for range in ranges[indices(overlapping: chunks)] where missing.count < limit {
            if next < range.lowerBound { missing.append(next..<range.lowerBound) }
            next = range.upperBound
        }
        if next < chunks.upperBound, missing.count < limit { missing.append(next..<chunks.upperBound) }
        return missing
    }

    /// Bytes of the document that are there.
    func byteCount(in layout: ChunkLayout) -> UInt64 {
        ranges.reduce(0) { $0 + layout.byteCount(of: $1) }
    }

    /// Whether any of these chunks is there.
    func containsAny(_ chunks: Range<UInt64>) -> Bool {
        !indices(overlapping: chunks).isEmpty
    }

    /// Which ranges have something of `chunks`: found without a look at the others, of which a folder can have one for
    /// each second file.
    private func indices(overlapping chunks: Range<UInt64>) -> Range<Int> {
        guard let last = chunks.last else { return 0..<0 }
        let end = position(of: last)
        var start = position(of: chunks.lowerBound)
        if start > 0, ranges[start - 1].upperBound > chunks.lowerBound { start -= 1 }
        return start..<end
    }

    /// How many ranges begin at or before a chunk.
    private func position(of chunk: UInt64) -> Int {
        // Nearly always behind the last one.
        guard let last = ranges.last, chunk < last.lowerBound else { return ranges.count }
        var (low, high) = (0, ranges.count)
        while low < high {
            let middle = (low + high) / 2
            if ranges[middle].lowerBound <= chunk { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
