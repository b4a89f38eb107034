// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import CLinux
import Glibc
import SystemPackage

/// Which chunks of an unfinished document are verified and written: a file in the node's state folder.
///
/// After the header it has an entry of 40 bytes for each verified chunk, written after the chunk was, and now and then
/// a *checkpoint*: the disk has the chunks of all entries before it. No entry takes back another one. A chunk for which
/// no checkpoint vouches is *unsure*: the next opening reads it from the disk and compares it.
///
/// A process that is killed takes nothing away that it has written. After a power cut, and on a disk that fails, an
/// unsure chunk may be gone, and then it comes again. Each entry guards itself, so a damaged one costs its own chunk,
/// and a damaged checkpoint costs one reading. A damaged header costs the document.
///
/// Belongs to one thread; every call blocks on the disk.
final class TransferJournal {
    /// The most bytes of a header: 100,000 entries with names of 16 MiB in all.
    static let headerLimit = 40 << 20
    /// The most bytes of a journal that is read: entries of chunks of 128 TiB.
    static let sizeLimit: UInt64 = 6 << 30
    static let magic: [UInt8] = Array("baton journal 3\n".utf8)
    /// Magic, the summary's length and its checksum. Then come the summary, which has the length and the checksum of
    /// the tree, the tree, and the entries.
    static let prefixSize = 16 + 8 + 16

    /// A chunk that an entry is of.
    typealias Chunk = (number: UInt64, checksum: ChunkChecksum)

    /// The content of a journal.
    struct Content {
        let header: JournalHeader
        /// Chunks that the last checkpoint vouches for.
        let vouched: ChunkSet
        /// Chunks that may be there.
        let unsure: [Chunk]

        /// Chunks that are there or may be.
        var all: ChunkSet {
            var all = vouched
            for chunk in unsure { all.insert(chunk.number) }
            return all
        }
    }

    private let file: OwnedDescriptor
    /// Where its entries begin.
    private let start: UInt64
    /// Entries that are written or wait for it.
    private var entryCount: UInt64
    /// Entries up to the last checkpoint.
    private var vouchedCount: UInt64
    /// Bytes that a full disk did not take yet: at most an entry for each chunk, and a few more.
    private var pending: [UInt8] = []

    private init(_ file: consuming OwnedDescriptor, start: UInt64, entries: EntryRange = (0, 0)) {
        self.file = file
        self.start = start
        (vouchedCount, entryCount) = entries
    }

    /// Begins a journal, in place of what is there.
    static func create(at path: FilePath, _ header: JournalHeader) throws(Errno) -> TransferJournal {
        let file = try SystemCalls.open(path, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW, mode: 0o600)
        let tree = header.encodedTree
        let summary = JournalSummary(header, tree).encoded
        let checksum = summary.withUnsafeBytes { ChunkChecksum(of: $0) }
        var writer = FieldWriter()
        writer.append(UInt64(summary.count))
        writer.append(checksum.high)
        writer.append(checksum.low)
        let bytes = magic + writer.bytes + summary + tree
        try write(bytes, to: file, at: 0)
        return TransferJournal(file, start: UInt64(bytes.count))
    }

    /// Opens a journal to go on with it.
    ///
    /// - Returns: the journal and what it says; nil where it is damaged beyond use.
    static func open(_ path: FilePath) throws(Errno) -> (journal: TransferJournal, content: Content)? {
        let file = try SystemCalls.open(path, O_RDWR | O_NOFOLLOW)
        guard let (content, start, entries) = try readContent(file) else { return nil }
        // Bytes behind the last whole entry are written over.
        return (TransferJournal(file, start: start, entries: entries), content)
    }

    /// Takes note of a chunk that was verified and written. ``flush()`` writes it down.
    func append(_ chunk: UInt64, _ checksum: ChunkChecksum) {
        append(JournalEntry(kind: .chunk, number: chunk, checksum: checksum))
    }

    /// Says that the disk has all chunks that were noted so far, and makes that durable.
    ///
    /// - Throws: what the disk of the state folder says. The checkpoint waits to be written then.
    func checkpoint() throws(Errno) {
        append(JournalEntry(kind: .checkpoint))
        vouchedCount = entryCount
        try flush()
        try synchronize()
    }

    /// Replaces everything behind the last checkpoint, durably.
    ///
    /// A later checkpoint vouches for every entry before it, so an entry that was found to be wrong must be gone for
    /// good before. A process that is killed in between loses nothing: the chunks come in the order of their entries,
    /// so each is written at or before its old place.
    func replaceTail(_ chunks: [Chunk]) throws(Errno) {
        pending = []
        entryCount = vouchedCount
        for chunk in chunks { append(chunk.number, chunk.checksum) }
        try flush()
        let (number, end) = (file.rawValue, offset(of: entryCount))
        try SystemCalls.call { ftruncate(number, off_t(end)) }
        try synchronize()
    }

    /// Whether nothing waits to be written.
    var isFlushed: Bool { pending.isEmpty }

    /// Writes what was taken note of. Entries that cannot be written wait for the next time.
    func flush() throws(Errno) {
        guard !pending.isEmpty else { return }
        try Self.write(pending, to: file, at: offset(of: flushedCount))
        pending.removeAll(keepingCapacity: true)
    }

    /// Makes what was written durable.
    func synchronize() throws(Errno) {
        try SystemCalls.synchronize(file)
    }

    private var flushedCount: UInt64 { entryCount - UInt64(pending.count / JournalEntry.size) }

    private func offset(of entry: UInt64) -> UInt64 { start + entry * UInt64(JournalEntry.size) }

    private func append(_ entry: JournalEntry) {
        entry.withBytes(at: entryCount) { pending.append(contentsOf: $0) }
        entryCount += 1
    }

    private static func write(
        _ bytes: [UInt8], to file: borrowing OwnedDescriptor, at offset: UInt64
    ) throws(Errno) {
        try bytes.withUnsafeBufferPointer { (bytes) throws(Errno) in
            try SystemCalls.write(UnsafeRawBufferPointer(bytes), to: file, at: offset)
        }
    }
}

/// An entry of a journal: kind, number and checksum, and a guard that is a checksum of these and of the entry's place.
struct JournalEntry {
    enum Kind: UInt64 {
        /// A chunk is verified and written.
        case chunk = 1
        /// The disk has all chunks of the entries before this one. Its number is 0: with another one it is a mark of
        /// the version before, which says nothing here.
        case checkpoint = 2
    }

    /// Bytes of an entry.
    static let size = 40

    let kind: Kind
    let number: UInt64
    let checksum: ChunkChecksum

    init(kind: Kind, number: UInt64 = 0, checksum: ChunkChecksum = ChunkChecksum(high: 0, low: 0)) {
        self.kind = kind
        self.number = number
        self.checksum = checksum
    }

    /// Reads the entry at a place; nil for a damaged one, and for one of the version before that says nothing here.
    init?(_ bytes: ArraySlice<UInt8>, at index: UInt64) {
        var reader = FieldReader(bytes)
        guard
            let kind = reader.number().flatMap(Kind.init(rawValue:)), let number = reader.number(),
            let high = reader.number(), let low = reader.number(), kind == .chunk || number == 0
        else { return nil }
        self.init(kind: kind, number: number, checksum: ChunkChecksum(high: high, low: low))
        guard withBytes(at: index, { $0.elementsEqual(bytes) }) else { return nil }
    }

    func withBytes<Result>(at index: UInt64, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        withUnsafeTemporaryAllocation(byteCount: Self.size, alignment: 8) { bytes in
            let fields = (
                kind.rawValue.bigEndian, number.bigEndian, checksum.high.bigEndian, checksum.low.bigEndian
            )
            withUnsafeBytes(of: fields) { bytes.copyMemory(from: $0) }
            bytes.storeBytes(of: index.bigEndian, toByteOffset: 32, as: UInt64.self)
            let guardian = ChunkChecksum(of: UnsafeRawBufferPointer(bytes)).low
            bytes.storeBytes(of: guardian.bigEndian, toByteOffset: 32, as: UInt64.self)
            return body(UnsafeRawBufferPointer(bytes))
        }
    }
}
