// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import CLinux
import Glibc
import SystemPackage

/// Which chunks of an unfinished document are verified and written: an append-only file in the node's state folder.
///
/// After the header it has an entry of 40 bytes for each verified chunk, written after the chunk was, and now and then
/// a *mark*: the entries before this number were synchronised with the disk. A process that is killed takes nothing
/// away that it has written, so within one run of the system every entry counts. After a power cut those count that a
/// mark covers; the chunks of the others are read again and compared (``Content/unsure``). What is not there any more
/// keeps its entry, so a mark of a later run covers the entries of that run alone. An entry says where these begin
/// (``beginRun()``): what was looked at in a run and said again counts as long as that lasts. What is found to be gone
/// gets an entry that says so, durably. Each entry guards itself. A damaged header costs the document. A damaged entry
/// may have taken back what those before it say: their chunks are read again and compared, and its own has to come
/// again (``JournalDamage``).
///
/// A disk that fails says so once: what it was given before may be gone although it can still be read, from memory, and
/// the next synchronisation ends well. So when one has failed, an entry says that of those before it only what a mark
/// covers counts (``distrust()``), in every run of the system, and no later mark covers them. A process that is killed
/// while it synchronises may have been told of a failure and say nothing of it, so that it synchronises is written down
/// before (``attempt(_:)``): where nothing is said of how it ended, the chunks are read again, from the disk.
///
/// Belongs to one thread; every call blocks on the disk.
final class TransferJournal {
    /// The most bytes of a header: 100,000 entries with names of 16 MiB in all.
    static let headerLimit = 40 << 20
    /// The most bytes of a journal that is read: entries of chunks of 128 TiB.
    static let sizeLimit: UInt64 = 6 << 30

    /// Entries that are reserved beside those of the chunks: 64, for attempts that go on with them.
    private static let spareCount: UInt64 = 64

    static let magic: [UInt8] = Array("baton journal 3\n".utf8)
    /// The most room that is reserved for entries, in bytes: 16 MiB. A device says of a document with holes that it is
    /// of any size.
    static let reserveLimit: UInt64 = 16 << 20

    /// Magic, the summary's length and its checksum. Then come the summary, which has the length and the checksum of
    /// the tree, the tree, and the entries.
    static let prefixSize = 16 + 8 + 16

    /// What a journal says.
    struct Content {
        let header: JournalHeader
        /// Chunks that are there for certain.
        var verified: ChunkSet
        /// Chunks that may be there, to be compared with their checksums.
        var unsure: [(chunk: UInt64, checksum: ChunkChecksum)]
    }

    private let file: OwnedDescriptor
    private let chunkCount: UInt64
    /// Where its entries begin.
    private let start: UInt64
    private var end: UInt64
    /// Entries that are written, counted from the header on.
    private(set) var entryCount: UInt64
    /// The entries before this one are of another run of the system, or of before the disk failed: no mark can vouch
    /// for them.
    private var markStart: UInt64
    /// The present run of the system, where nothing of it is written yet that has been gone on with in this one.
    private var run: BootID?
    /// Of the entries before this one nobody knows whether the disk has what they are of; 0 where there are none.
    private var doubted: UInt64 = 0
    /// At most an entry for each chunk, and a few more: what a full disk did not take yet.
    private var pending: [UInt8] = []

    private init(
        _ file: consuming OwnedDescriptor, _ header: JournalHeader, start: UInt64, entryCount: UInt64 = 0,
        markStart: UInt64 = 0
    ) {
        self.file = file
        chunkCount = header.tree.layout.chunkCount
        self.start = start
        end = start + entryCount * UInt64(JournalEntry.size)
        self.entryCount = entryCount
        self.markStart = markStart
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
        try bytes.withUnsafeBufferPointer { (bytes) throws(Errno) in
            try SystemCalls.write(UnsafeRawBufferPointer(bytes), to: file, at: 0)
        }
        let journal = TransferJournal(file, header, start: UInt64(bytes.count))
        journal.reserve()
        return journal
    }

    /// Reserves the room of entries: the document's own is reserved as well, and goes on coming when the disk is full.
    /// For each chunk there are at most two more, of a synchronisation. At most half of what is free is reserved, which
    /// others need as well; beyond it, and where that does not go, they take what there is.
    func reserve() {
        let number = file.rawValue
        let (size, limit) = (UInt64(JournalEntry.size), Self.reserveLimit)
        let count = min(chunkCount, limit / (3 * size)) * 3 + Self.spareCount
        let wanted = min(min(count * size, limit), (SystemCalls.freeByteCount(of: file) ?? .max) / 2)
        guard wanted > 0 else { return }
        _ = try? SystemCalls.kernel { baton_reserve(number, Int64(end), Int64(wanted)) }
    }

    /// Gives back what of that was not needed: what is behind the end of the file, where there may be entries that a
    /// full disk took before it took no more.
    func giveBack() {
        let number = file.rawValue
        guard let size = try? SystemCalls.status(of: file).st_size else { return }
        _ = try? SystemCalls.call { ftruncate(number, size) }
    }

    /// Opens a journal to go on with it.
    ///
    /// - Parameter boot: the present run of the system.
    /// - Returns: the journal and what it says; nil where it is damaged beyond use.
    static func open(
        _ path: FilePath, boot: BootID
    ) throws(Errno) -> (journal: TransferJournal, content: Content)? {
        let file = try SystemCalls.open(path, O_RDWR | O_NOFOLLOW)
        guard let (header, start) = try readHeader(file) else { return nil }
        let size = UInt64(clamping: try SystemCalls.status(of: file).st_size)
        guard size >= start, size <= sizeLimit else { return nil }
        let (reading, count) = try readEntries(
            of: file, from: start, count: (size - start) / UInt64(JournalEntry.size), header.tree.layout.chunkCount)
        let run = reading.run ?? (header.boot.checksum, 0)
        let isOfThisRun = run.checksum == boot.checksum
        // What waited for a synchronisation may have been lost by it.
        let trusted = max(run.start, reading.doubted)
        let (verified, unsure) = reading.result(trustingFrom: isOfThisRun ? trusted : .max)
        // What was cut in the middle is written over, and so is what was never written.
        let journal = TransferJournal(
            file, header, start: start, entryCount: count,
            markStart: isOfThisRun ? max(reading.distrusted, trusted) : count)
        journal.doubted = isOfThisRun && reading.doubted > run.start ? reading.doubted : 0
        journal.run = isOfThisRun ? nil : boot
        return (journal, Content(header: header, verified: verified, unsure: unsure))
    }

    /// Takes note of a chunk that was verified and written. It is kept with the next ``flush()``.
    func append(_ chunk: UInt64, _ checksum: ChunkChecksum) {
        append(JournalEntry(kind: .chunk, number: chunk, checksum: checksum))
    }

    /// Takes note that what comes from now on is of the present run of the system. What is said before counts no more
    /// for having been there in an earlier one.
    func beginRun() {
        guard let run = run.take() else { return }
        append(JournalEntry(kind: .run, number: 0, checksum: run.checksum))
    }

    /// Takes note that the document's bytes of the first `count` entries are synchronised with the disk, as far as they
    /// are of this run of the system.
    func mark(_ count: UInt64) {
        guard count > markStart else { return }
        // Where an entry of a chunk has its checksum, a mark has the first entry that it covers.
        append(JournalEntry(kind: .mark, number: count, checksum: ChunkChecksum(high: 0, low: markStart)))
    }

    /// Writes down that a synchronisation of what the first `count` entries are of begins. A mark says that it has
    /// ended well, ``distrust()`` that it has failed.
    ///
    /// - Returns: whether that is written.
    func attempt(_ count: UInt64) -> Bool {
        guard count > markStart else { return true }
        append(JournalEntry(kind: .attempt, number: count))
        return (try? flush()) != nil
    }

    /// Takes note that a synchronisation has ended well that no mark speaks of.
    func endAttempt() {
        append(JournalEntry(kind: .attempt, number: 0))
    }

    /// Takes note that of what was doubted nothing counts but what was said again since.
    func endDoubt() {
        guard doubted > 0 else { return }
        append(JournalEntry(kind: .distrust, number: doubted))
        doubted = 0
    }

    /// Takes note that a chunk is not there any more, whatever was said before.
    func lose(_ chunk: UInt64) {
        append(JournalEntry(kind: .loss, number: chunk))
    }

    /// Writes down, durably, that the disk has failed: of all that came so far only what a mark covers counts from now
    /// on, and no later mark covers more of it. Where that cannot be written, the journal is made to say nothing.
    ///
    /// - Returns: whether it is of use still.
    func distrust() -> Bool {
        markStart = entryCount
        append(JournalEntry(kind: .distrust, number: entryCount))
        do {
            try flush()
            try synchronize()
            return true
        } catch {
            void()
            return false
        }
    }

    /// What its entries speak of that are flushed, as long as the system runs. How synchronisations have ended since it
    /// was opened is known here, and what was unsure then counts where it was said again.
    func verified() throws(Errno) -> ChunkSet {
        let count = (end - start) / UInt64(JournalEntry.size)
        return try Self.readEntries(of: file, from: start, count: count, chunkCount)
            .reading.result(trustingFrom: markStart).verified
    }

    /// Makes it say nothing any more, durably, which takes no room on the disk.
    func void() {
        let number = file.rawValue
        // One that does not even take this is removed with the part.
        _ = try? SystemCalls.call { ftruncate(number, 0) }
        try? synchronize()
    }

    /// Calls `body` with each chunk of which an entry says that it came, in the order of the entries.
    func forEachChunk(_ body: (UInt64, ChunkChecksum) throws(Errno) -> Void) throws(Errno) {
        let count = (end - start) / UInt64(JournalEntry.size)
        try Self.forEachEntry(of: file, from: start, count: count) { (bytes, index) throws(Errno) in
            guard let entry = JournalEntry(bytes, at: index), entry.kind == .chunk else { return }
            try body(entry.number, entry.checksum)
        }
    }

    /// Whether nothing waits to be written.
    var isFlushed: Bool { pending.isEmpty }

    /// Writes what was taken note of. What cannot be written waits for the next time.
    func flush() throws(Errno) {
        guard !pending.isEmpty else { return }
        let (bytes, start) = (pending, end)
        try bytes.withUnsafeBufferPointer { (bytes) throws(Errno) in
            try SystemCalls.write(UnsafeRawBufferPointer(bytes), to: file, at: start)
        }
        end += UInt64(bytes.count)
        pending.removeAll(keepingCapacity: true)
    }

    /// Makes what was written durable.
    func synchronize() throws(Errno) {
        try SystemCalls.synchronize(file)
    }

    private func append(_ entry: JournalEntry) {
        entry.withBytes(at: entryCount) { pending.append(contentsOf: $0) }
        entryCount += 1
    }
}
