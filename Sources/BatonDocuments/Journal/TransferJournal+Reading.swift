// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import Glibc
import SystemPackage

/// Reading of a journal: its summary alone, or all of it.
extension TransferJournal {
    /// How many entries are before the end of the last checkpoint, and how many there are.
    typealias EntryRange = (vouched: UInt64, all: UInt64)

    /// The summary of a journal; nil if it is damaged.
    static func summary(at path: FilePath) throws(Errno) -> JournalSummary? {
        try readSummary(try SystemCalls.open(path, O_RDONLY | O_NOFOLLOW))?.summary
    }

    /// The content of a journal; nil if its header is damaged.
    static func content(at path: FilePath) throws(Errno) -> Content? {
        try readContent(try SystemCalls.open(path, O_RDONLY | O_NOFOLLOW))?.content
    }

    /// Reads all of a journal.
    ///
    /// - Returns: what it says, where its entries begin, and how many there are.
    static func readContent(
        _ file: borrowing OwnedDescriptor
    ) throws(Errno) -> (content: Content, start: UInt64, entries: EntryRange)? {
        guard let (summary, treeStart) = try readSummary(file) else { return nil }
        let tree = try read(file, at: treeStart, count: summary.treeSize)
        guard
            tree.count == summary.treeSize, tree.withUnsafeBytes({ ChunkChecksum(of: $0) }) == summary.treeChecksum,
            let header = JournalHeader(summary, decodingTree: tree[...])
        else { return nil }
        let start = treeStart + UInt64(tree.count)
        let size = UInt64(clamping: try SystemCalls.status(of: file).st_size)
        guard size >= start, size <= sizeLimit else { return nil }
        let chunkCount = header.tree.layout.chunkCount
        var (vouched, unsure, entries) = (ChunkSet(), [Chunk](), EntryRange(0, 0))
        try forEachEntry(of: file, from: start, count: (size - start) / UInt64(JournalEntry.size)) { entry, index in
            entries.all = index + 1
            switch entry.kind {
            case .chunk: if entry.number < chunkCount { unsure.append((entry.number, entry.checksum)) }
            case .checkpoint:
                for chunk in unsure { vouched.insert(chunk.number) }
                unsure = []
                entries.vouched = entries.all
            }
        }
        unsure.removeAll { vouched.contains($0.number) }
        return (Content(header: header, vouched: vouched, unsure: unsure), start, entries)
    }

    /// Calls `body` with each entry that can be read, and its place among all of them.
    private static func forEachEntry(
        of file: borrowing OwnedDescriptor, from start: UInt64, count: UInt64, _ body: (JournalEntry, UInt64) -> Void
    ) throws(Errno) {
        let (batch, size) = (4096, JournalEntry.size)
        for first in stride(from: 0, to: Int(count), by: batch) {
            let bytes = try read(
                file, at: start + UInt64(first * size), count: min(batch, Int(count) - first) * size)
            for place in 0..<bytes.count / size {
                let index = UInt64(first + place)
                guard let entry = JournalEntry(bytes[place * size..<(place + 1) * size], at: index) else { continue }
                body(entry, index)
            }
        }
    }

    private static func readSummary(
        _ file: borrowing OwnedDescriptor
    ) throws(Errno) -> (summary: JournalSummary, end: UInt64)? {
        let prefix = try read(file, at: 0, count: prefixSize)
        var reader = FieldReader(prefix.dropFirst(magic.count))
        guard
            prefix.count == prefixSize, prefix.starts(with: magic), let length = reader.number(),
            length <= UInt64(JournalSummary.limit), let high = reader.number(), let low = reader.number()
        else { return nil }
        let fields = try read(file, at: UInt64(prefixSize), count: Int(length))
        guard
            fields.count == Int(length),
            fields.withUnsafeBytes({ ChunkChecksum(of: $0) }) == ChunkChecksum(high: high, low: low),
            let summary = JournalSummary(decoding: fields[...])
        else { return nil }
        return (summary, UInt64(prefixSize) + length)
    }

    private static func read(
        _ file: borrowing OwnedDescriptor, at offset: UInt64, count: Int
    ) throws(Errno) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        let taken = try bytes.withUnsafeMutableBufferPointer { (room) throws(Errno) in
            try SystemCalls.read(file, into: UnsafeMutableRawBufferPointer(room), at: offset)
        }
        bytes.removeLast(count - taken)
        return bytes
    }
}

extension Errno {
    /// Whether what the node wrote down is gone, or something else has its name.
    var saysGone: Bool { self == .noSuchFileOrDirectory || self == .tooManySymbolicLinkLevels }

    /// The same, or the disk has damaged it; a network drive says that as well of what it cannot reach, so that it
    /// counts only where somebody waits. Every other error says nothing of it: a disk that does not answer now may
    /// answer later.
    var saysLost: Bool { saysGone || self == .ioError }

    /// Whether who asks again soon is likely to be answered.
    var mayPass: Bool { isShortage || self == .staleNFSFileHandle || self == .timedOut }
}
