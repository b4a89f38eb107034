// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import Glibc
import SystemPackage

/// What is read of a journal: its summary alone, its header, or its entries.
extension TransferJournal {
    /// The header of a journal, without its entries; nil where it is not what was written.
    static func header(at path: FilePath) throws(Errno) -> JournalHeader? {
        try readHeader(try SystemCalls.open(path, O_RDONLY | O_NOFOLLOW))?.header
    }

    /// What stands first in a journal; nil where it is not what was written.
    static func summary(at path: FilePath) throws(Errno) -> JournalSummary? {
        try readSummary(try SystemCalls.open(path, O_RDONLY | O_NOFOLLOW))?.summary
    }

    /// Whether a journal's header is what was written.
    ///
    /// - Throws: what opening or reading it threw; ``SystemPackage/Errno/saysGone`` tells whether it is not there.
    static func isIntact(at path: FilePath) throws(Errno) -> Bool {
        let file = try SystemCalls.open(path, O_RDONLY | O_NOFOLLOW)
        guard let (summary, end) = try readSummary(file) else { return false }
        return try readTree(file, summary, at: end) != nil
    }

    /// How many bytes came of a document, whether or not they are synchronised with the disk, and how many it has; nil
    /// where the journal is not what was written.
    static func size(at path: FilePath) throws(Errno) -> (received: UInt64, total: UInt64)? {
        let file = try SystemCalls.open(path, O_RDONLY | O_NOFOLLOW)
        guard let (header, start) = try readHeader(file) else { return nil }
        let size = min(UInt64(clamping: try SystemCalls.status(of: file).st_size), sizeLimit)
        let layout = header.tree.layout
        let (reading, _) = try readEntries(
            of: file, from: start, count: (size - min(size, start)) / UInt64(JournalEntry.size), layout.chunkCount)
        return (reading.result(trustingFrom: 0).verified.byteCount(in: layout), header.tree.size)
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

    /// The description of the tree; nil where it is not what was written.
    private static func readTree(
        _ file: borrowing OwnedDescriptor, _ summary: JournalSummary, at start: UInt64
    ) throws(Errno) -> [UInt8]? {
        let tree = try read(file, at: start, count: summary.treeSize)
        guard
            tree.count == summary.treeSize, tree.withUnsafeBytes({ ChunkChecksum(of: $0) }) == summary.treeChecksum
        else { return nil }
        return tree
    }

    static func readHeader(
        _ file: borrowing OwnedDescriptor
    ) throws(Errno) -> (header: JournalHeader, end: UInt64)? {
        guard
            let (summary, start) = try readSummary(file), let tree = try readTree(file, summary, at: start),
            let header = JournalHeader(summary, decodingTree: tree[...])
        else { return nil }
        return (header, start + UInt64(tree.count))
    }

    /// Reads what the first `count` entries say, as far as they were ever written.
    static func readEntries(
        of file: borrowing OwnedDescriptor, from start: UInt64, count: UInt64, _ chunkCount: UInt64
    ) throws(Errno) -> (reading: JournalReading, count: UInt64) {
        var damage = JournalDamage()
        try forEachEntry(of: file, from: start, count: count) { (bytes, index) throws(Errno) in
            damage.take(bytes, at: index)
        }
        var reading = JournalReading(chunkCount: chunkCount, doubtingBefore: damage.doubtEnd)
        try forEachEntry(of: file, from: start, count: damage.writtenEnd) { (bytes, index) throws(Errno) in
            if let entry = JournalEntry(bytes, at: index) { reading.take(entry, at: index) }
        }
        return (reading, damage.writtenEnd)
    }

    static func forEachEntry(
        of file: borrowing OwnedDescriptor, from start: UInt64, count: UInt64,
        _ body: (ArraySlice<UInt8>, UInt64) throws(Errno) -> Void
    ) throws(Errno) {
        let (batch, size) = (UInt64(4096), JournalEntry.size)
        var index: UInt64 = 0
        while index < count {
            let part = min(batch, count - index)
            let bytes = try read(file, at: start + index * UInt64(size), count: Int(part) * size)
            for place in 0..<bytes.count / size {
                try body(bytes[place * size..<(place + 1) * size], index + UInt64(place))
            }
            index += part
        }
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
