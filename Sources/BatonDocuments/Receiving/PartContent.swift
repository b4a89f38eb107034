// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonProtocol
import SystemPackage

/// A part together with its journal: what of the document is there, and for how long.
///
/// Belongs to the thread that made it.
final class PartContent {
    /// Unsure bytes after which a checkpoint is due, unless the last one took long: 128 MiB.
    static let byteInterval: UInt64 = 128 << 20
    /// Unsure bytes after which it is due in any case: 1 GiB. The next attempt may have to read so many.
    static let byteLimit: UInt64 = 1 << 30
    /// Unsure chunks after which it is due in any case: 16,384.
    static let chunkLimit = 16_384
    /// The longest time between two checkpoints while something comes, in nanoseconds: 10 s.
    static let timeInterval: UInt64 = 10_000_000_000
    /// Of the time at most one part in so many goes into checkpoints that are not due in any case.
    private static let share: UInt64 = 10

    /// Chunks that are verified and written. Of an older part of one file: those that its journal names.
    private(set) var verified: ChunkSet
    /// Bytes in them.
    private(set) var verifiedByteCount: UInt64
    /// Bytes in those of them that the journal has: what is kept where it ends now, or a little less.
    private(set) var keptByteCount: UInt64
    /// Nanoseconds that the disk took.
    private(set) var diskTime: UInt64 = 0

    let tree: DocumentTree
    let part: Part
    private let place: PartPlace
    private let journal: TransferJournal

    /// Bytes and chunks that no checkpoint vouches for.
    private var unsure: (byteCount: UInt64, chunkCount: Int)
    /// Bytes that the last checkpoint vouches for.
    private var vouchedByteCount: UInt64
    private var lastCheckpoint = MonotonicClock.nanoseconds()
    private var checkpointTime: UInt64 = 0
    private var isRecordDurable = false
    /// Whether the disk did not take what it was given. It says so once, so no checkpoint may follow.
    private var hasFailed = false
    /// Whether files were moved here of which nobody has counted the bytes.
    private var hasTaken = false
    /// The chunk that is coming, where chunks are written whole.
    private var whole = WholeChunk()
    /// The file that was written to last.
    private var lastFile = 0
    private var isOver = false

    /// Makes the part of a document, and its journal.
    init(creating header: JournalHeader, at place: PartPlace) throws(DocumentError) {
        tree = header.tree
        self.place = place
        part = try Part(creating: tree, at: place)
        do {
            journal = try TransferJournal.create(at: place.ledger.journal(of: part.record), header)
        } catch {
            part.discard()
            throw place.ledger.failure(error)
        }
        (verified, verifiedByteCount, keptByteCount, vouchedByteCount, unsure) = (ChunkSet(), 0, 0, 0, (0, 0))
    }

    /// Opens the part of an earlier transfer, which the caller has taken from the ledger.
    ///
    /// - Parameters:
    ///   - isOlder: it is only built upon: what somebody has cut or removed of it does no harm, and it is not written
    ///     to.
    ///   - isCancelled: whether nobody waits for it any more: is asked before each chunk that has to be read.
    /// - Returns: nil where it is of no use: it is not there, its journal is damaged, or somebody has cut or removed a
    ///   file of it.
    /// - Throws: `cancelled`, `writeFailed`, `busy`, ... where the disk does not answer.
    init?(
        reopening unfinished: UnfinishedDocument, isOlder: Bool, at place: PartPlace, unless isCancelled: () -> Bool
    ) throws(DocumentError) {
        let found: (journal: TransferJournal, content: TransferJournal.Content)?
        do throws(Errno) {
            found = try TransferJournal.open(unfinished.journal)
        } catch {
            guard error.saysLost else { throw place.ledger.failure(error) }
            return nil
        }
        guard let (journal, content) = found else { return nil }
        tree = content.header.tree
        do throws(DocumentError) {
            guard let part = try Part(reopening: tree, unfinished.record, at: place) else { return nil }
            self.part = part
        } catch {
            // Where it is the destination that cannot be written to, a new part ends the same way.
            guard error.code == .destinationNotWritable else { throw error }
            return nil
        }
        // Whatever is wrong with it, it stays as it is.
        (self.journal, self.place, verified, isOver) = (journal, place, content.vouched, true)
        (verifiedByteCount, keptByteCount, vouchedByteCount, unsure) = (0, 0, 0, (0, 0))
        guard tree.isFolder || !isOlder else {
            verified = content.all
            return
        }
        if !isOlder {
            for file in 0..<tree.layout.fileCount {
                guard verified.containsAny(tree.layout.chunks(ofFile: file)) || !tree.isFolder else { continue }
                guard try part.isWhole(file: file) else { return nil }
            }
        }
        vouchedByteCount = verified.byteCount(in: tree.layout)
        let there = try part.present(content.unsure, unless: isCancelled)
        for chunk in there { verified.insert(chunk.number) }
        guard !isOlder else { return }
        do {
            if there.count < content.unsure.count { try journal.replaceTail(there) } else { journal.reserve() }
        } catch {
            throw place.ledger.failure(error)
        }
        verifiedByteCount = verified.byteCount(in: tree.layout)
        keptByteCount = verifiedByteCount
        unsure = (verifiedByteCount - vouchedByteCount, there.count)
        isOver = false
    }

    deinit {
        _ = end()
    }

    /// Whether something of a file has not come yet.
    func lacks(file: Int) -> Bool {
        !verified.missing(in: tree.layout.chunks(ofFile: file), limit: 1).isEmpty
    }

    /// Takes what a record says.
    func take(_ event: ChunkVerifier.Event) throws(DocumentError) {
        let start = MonotonicClock.nanoseconds()
        defer { diskTime += MonotonicClock.nanoseconds() - start }
        switch event {
        case .content(let chunk, let offset, let bytes):
            let place = tree.layout.place(of: chunk)
            lastFile = place.file
            unsure.byteCount += UInt64(bytes.count)
            if tree.isSparse(file: place.file) {
                try part.writeSparsely(bytes, to: place, from: offset)
            } else if place.size == ChunkLayout.chunkSize, try part.takesWholeChunks(ofFile: place.file) {
                guard let content = whole.add(bytes, at: offset) else { return }
                try part.write(content, toFile: place.file, at: place.offset)
            } else {
                try part.write(bytes, toFile: place.file, at: place.offset + UInt64(offset))
            }
        case .zeros(let chunk):
            let place = tree.layout.place(of: chunk)
            try part.clear(place.range, ofFile: place.file)
        case .verified(let chunk, let checksum):
            verified.insert(chunk)
            verifiedByteCount += UInt64(tree.layout.size(of: chunk))
            unsure.chunkCount += 1
            journal.append(chunk, checksum)
        }
    }

    /// Writes down what has come, and makes a checkpoint if one is due.
    ///
    /// - Throws: `destinationFull`, `writeFailed`, ...: the disk has failed.
    func note() throws(DocumentError) {
        writeDown()
        guard unsure.chunkCount > 0, !hasFailed else { return }
        let passed = MonotonicClock.nanoseconds() - lastCheckpoint
        let isDue =
            unsure.byteCount >= Self.byteLimit || unsure.chunkCount >= Self.chunkLimit || passed >= Self.timeInterval
            || unsure.byteCount >= Self.byteInterval && passed >= Self.share * checkpointTime
        if isDue { try makeCheckpoint() }
    }

    private func writeDown() {
        // The disk of the state folder may be full: the document arrives all the same, and what was written counts.
        try? journal.flush()
        if journal.isFlushed, !hasFailed { keptByteCount = verifiedByteCount }
    }

    /// Makes durable what has come, and says so in the journal.
    private func makeCheckpoint() throws(DocumentError) {
        let start = MonotonicClock.nanoseconds()
        defer {
            lastCheckpoint = MonotonicClock.nanoseconds()
            checkpointTime = lastCheckpoint - start
            diskTime += checkpointTime
        }
        if !isRecordDurable {
            // It is tried again when the next one is due.
            guard (try? place.synchronize(part.record)) != nil else { return }
            isRecordDurable = true
        }
        try synchronize()
        // If it cannot be written, it waits with the entries.
        try? journal.checkpoint()
        vouchedByteCount = verifiedByteCount
        unsure = (0, 0)
    }

    private func synchronize() throws(DocumentError) {
        do {
            try part.synchronize()
        } catch {
            hasFailed = true
            keptByteCount = vouchedByteCount
            throw error
        }
    }

    /// Puts the document in place, or throws what is wrong; then the part is still there.
    ///
    /// - Parameter isCancelled: whether nobody wants it any more.
    /// - Throws: `incomplete` when something is missing, `cancelled`.
    func commit(unless isCancelled: () -> Bool) throws(DocumentError) -> FilePath {
        guard verified.missing(in: tree.layout.allChunks, limit: 1).isEmpty else {
            throw DocumentError(.incomplete, tree.label.description)
        }
        try part.prepare(unless: isCancelled)
        try synchronize()
        if isCancelled() { throw DocumentError(.cancelled, tree.label.description) }
        let path = try part.putInPlace()
        isOver = true
        return path
    }

    /// Ends it: keeps the part when something of it is there that the journal knows, and removes it when not.
    ///
    /// - Returns: bytes that are kept.
    func end() -> UInt64 {
        guard !isOver else { return 0 }
        isOver = true
        // First: the state folder may be on the same disk, and something of the journal wait for room.
        if !hasFailed { giveBackRoom() }
        writeDown()
        journal.giveBack()
        if !journal.isFlushed, !hasFailed {
            // A full disk may have taken some of what waits.
            let written = try? TransferJournal.content(at: place.ledger.journal(of: part.record))
            keptByteCount = written?.all.byteCount(in: tree.layout) ?? 0
        }
        // A disk that has failed is not written to at the same places again.
        guard keptByteCount > 0 || hasTaken else {
            part.discard()
            return 0
        }
        return part.keep() ? keptByteCount : 0
    }

    /// Gives back what was reserved for what has not come: nobody knows whether it ever will.
    private func giveBackRoom() {
        guard lastFile < tree.layout.fileCount else { return }
        let chunks = tree.layout.chunks(ofFile: lastFile)
        for missing in verified.missing(in: chunks, limit: DocumentWriter.rangeLimit) {
            guard let last = missing.last else { continue }
            let (first, end) = (tree.layout.place(of: missing.lowerBound), tree.layout.place(of: last))
            part.giveBack(first.range.lowerBound..<end.range.upperBound, ofFile: lastFile)
        }
    }

    // MARK: - Room

    /// Makes sure that there is room for what has not come, and reserves it for a document of one file.
    ///
    /// - Throws: `destinationFull`, ...
    func reserve() throws(DocumentError) {
        let entryCount = verified.ranges.isEmpty ? tree.entryCount - 1 : 0
        try place.folder.requireRoom(for: neededByteCount, entries: entryCount, tree.label)
        try part.reserve()
    }

    /// Bytes that files which have not come still need on the disk. Files with holes count nothing: nobody knows what
    /// of them comes.
    var neededByteCount: UInt64 {
        let block = place.folder.blockSize
        return (0..<tree.layout.fileCount).reduce(0) { sum, file in
            guard lacks(file: file), !tree.isSparse(file: file) else { return sum }
            let size = tree.layout.size(ofFile: file)
            let onDisk = size > .max - block ? size : (size + block - 1) / block * block
            return sum + onDisk - min(onDisk, part.heldByteCount(ofFile: file))
        }
    }

    /// Bytes of files with holes that have not come.
    var sparseByteCount: UInt64 {
        (0..<tree.layout.fileCount).reduce(0) { sum, file in
            tree.isSparse(file: file) && lacks(file: file) ? sum + tree.layout.size(ofFile: file) : sum
        }
    }

    /// Bytes that the disk holds for what has come.
    var heldByteCount: UInt64 {
        files.reduce(0) { $0 + part.heldByteCount(ofFile: $1) }
    }

    /// The files of which something is there, or was.
    var files: [Int] {
        (0..<tree.layout.fileCount).filter { verified.containsAny(tree.layout.chunks(ofFile: $0)) }
    }

    /// Bytes of an older part of one file from its beginning to the last that may be there.
    var endOfFile: UInt64 { tree.layout.offset(of: verified.ranges.last?.upperBound ?? 0) }

    // MARK: - Another version

    /// Moves the files here that an older part of the document has unchanged, and takes note of their chunks.
    ///
    /// The journal says durably which chunks come with the files before the first file is moved, and no checkpoint
    /// vouches for them before all are here. So if the process is killed in between, or the power fails, each file is
    /// either still in the older part or here with its chunks, which are read and compared.
    ///
    /// - Throws: `stateUnavailable`, `busy`, `writeFailed`, ... The files that were moved until then stay here.
    func takeOver(from older: PartContent) throws(DocumentError) {
        guard tree.isFolder, older.tree.isFolder, place.folder.movesBetweenFolders else { return }
        let unchanged = try unchangedFiles(of: older)
        guard !unchanged.isEmpty else { return }
        try place.synchronize(part.record)
        isRecordDurable = true
        // Then the tail of the journal has nothing but what comes now.
        if unsure.chunkCount > 0 { try makeCheckpoint() }
        guard journal.isFlushed else { return }
        hasTaken = true
        var announced: [TransferJournal.Chunk] = []
        do throws(Errno) {
            var seen = ChunkSet()
            try older.journal.forEachChunk { (chunk) throws(Errno) in
                let place = older.tree.layout.place(of: chunk.number)
                guard let file = unchanged[place.file], older.verified.contains(chunk.number) else { return }
                let offset = chunk.number - older.tree.layout.chunks(ofFile: place.file).lowerBound
                let number = tree.layout.chunks(ofFile: file).lowerBound + offset
                guard !seen.contains(number) else { return }
                seen.insert(number)
                announced.append((number, chunk.checksum))
            }
            try journal.replaceTail(announced)
        } catch {
            throw place.ledger.failure(error)
        }
        // Until all of them are here no checkpoint may be made.
        hasFailed = true
        var moved = Set<Int>()
        for file in unchanged.values.sorted() where try part.take(file, from: older.part) { moved.insert(file) }
        hasFailed = false
        let there = announced.filter { moved.contains(tree.layout.place(of: $0.number).file) }
        do {
            if there.count < announced.count { try journal.replaceTail(there) }
        } catch {
            throw place.ledger.failure(error)
        }
        for chunk in there { verified.insert(chunk.number) }
        verifiedByteCount = verified.byteCount(in: tree.layout)
        unsure = (verifiedByteCount - vouchedByteCount, there.count)
        try makeCheckpoint()
        keptByteCount = verifiedByteCount
    }

    /// The files of an older part that are the same here and of which nothing has come yet: the number here for the
    /// number there.
    private func unchangedFiles(of older: PartContent) throws(DocumentError) -> [Int: Int] {
        var unchanged: [Int: Int] = [:]
        for olderFile in older.files {
            let entry = older.tree.entry(ofFile: olderFile)
            guard
                let version = entry.file?.version, version != .none, let file = tree.file(at: entry.path),
                let found = tree.entry(ofFile: file).file, found.version == version, found.size == entry.file?.size,
                !verified.containsAny(tree.layout.chunks(ofFile: file)), try older.part.isWhole(file: olderFile)
            else { continue }
            unchanged[olderFile] = file
        }
        return unchanged
    }
}
