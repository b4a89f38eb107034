// SPDX-License-Identifier: Apache-2.0

/// Which chunks of a document are there.
///
/// A transfer fills it in order, so there is a range for each time that it was interrupted; damage of a journal, and
/// what comes of it, can make more: at most one for every second chunk.
typealias ChunkSet = RangeSet<UInt64>

extension ChunkSet {
    /// Adds a chunk; one that is there already changes nothing.
    mutating func insert(_ chunk: UInt64) { insert(contentsOf: chunk..<chunk + 1) }

    /// Missing chunks of `chunks`.
    func missing(in chunks: Range<UInt64>) -> ChunkSet { ChunkSet(chunks).subtracting(self) }

    /// Bytes of the document that are there.
    func byteCount(in layout: ChunkLayout) -> UInt64 { ranges.reduce(0) { $0 + layout.byteCount(of: $1) } }

    /// The files of which any of these chunks is, and empty files between them.
    func files(in layout: ChunkLayout) -> RangeSet<Int> {
        var files = RangeSet<Int>()
        for range in ranges {
            let (first, last) = (layout.place(of: range.lowerBound), layout.place(of: range.upperBound - 1))
            files.insert(contentsOf: first.file..<last.file + 1)
        }
        return files
    }
}
