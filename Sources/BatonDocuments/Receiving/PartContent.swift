// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonProtocol
import SystemPackage

/// A part together with its journal: which chunks of the document are there, and which of them the disk has for good.
///
/// It belongs to the thread that made it.
final class PartContent {
    /// Unsure bytes after which a checkpoint is due, unless the last one took long: 128 MiB.
    static let byteInterval: UInt64 = 128 << 20
    /// Unsure bytes after which a checkpoint is due in any case: 1 GiB. The next attempt may have to read so many.
    static let byteLimit: UInt64 = 1 << 30
    /// Unsure chunks after which a checkpoint is due in any case: 16,384.
    static let chunkLimit = 16_384
    /// The longest time between two checkpoints while something comes, in nanoseconds: 10 s.
    static let timeInterval: UInt64 = 10_000_000_000
    /// Checkpoints that are not due in any case take at most one part in so many of the time.
    private static let share: UInt64 = 10

    /// Chunks that are verified and written.
    private(set) var verified: ChunkSet
    /// Bytes in them.
    private(set) var verifiedByteCount: UInt64 = 0
    /// Bytes in those of them that the journal has. They are kept if the transfer ends now.
    private(set) var keptByteCount: UInt64 = 0
    /// Nanoseconds that the disk took.
    private(set) var diskTime: UInt64 = 0

    let tree: DocumentTree
    let part: Part
    private let place: PartPlace
    private let journal: TransferJournal

    /// Bytes and chunks that no checkpoint vouches for.
    private var unsure: (byteCount: UInt64, chunkCount: Int) = (0, 0)
    /// Bytes that the last checkpoint vouches for.
    private var vouchedByteCount: UInt64 = 0
    private var lastCheckpoint = MonotonicClock.nanoseconds()
    private var checkpointTime: UInt64 = 0
    private var isRecordDurable = false
    /// Whether the disk refused what it was given. It says so only once, so no checkpoint may follow.
    private var hasFailed = false
    /// The chunk that is coming, if chunks are written whole.
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
        verified = ChunkSet()
    }

    /// Opens the part of an earlier transfer, which the caller has taken from the ledger.
    ///
    /// - Parameter isCancelled: whether nobody waits for it any more; it is asked before each chunk that has to be read.
    /// - Returns: nil if the part or its journal cannot be used: somebody cut, removed or damaged it.
    init?(
        reopening unfinished: UnfinishedDocument, at place: PartPlace, unless isCancelled: () -> Bool
    ) throws(DocumentError) {
        let found: (journal: TransferJournal, content: TransferJournal.Content)?
        do throws(Errno) {
            found = try TransferJournal.open(place.ledger.journal(of: unfinished.record))
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
            // If the destination cannot be written to, a new part ends the same way.
            guard error.code == .destinationNotWritable else { throw error }
            return nil
        }
        // Until the end of this method the part stays as it is, whatever is wrong with it.
        (self.journal, self.place, isOver) = (journal, place, true)
        verified = content.vouched
        let files = tree.isFolder ? verified.files(in: tree.layout) : RangeSet(0..<1)
        for file in files.ranges.joined() where tree.layout.size(ofFile: file) > 0 || !tree.isFolder {
            guard try part.isWhole(file: file) else { return nil }
        }
        vouchedByteCount = verified.byteCount(in: tree.layout)
        let there = try part.present(content.unsure, unless: isCancelled)
        for chunk in there { verified.insert(chunk.number) }
        do {
            if there.count < content.unsure.count { try journal.replaceTail(there) }
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

    /// Files of which chunks are missing.
    var incompleteFiles: RangeSet<Int> { verified.missing(in: tree.layout.allChunks).files(in: tree.layout) }

    /// Takes a finding of the verifier.
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
        // If the disk of the state folder is full, the document arrives all the same.
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
            // On an error it is tried again when the next checkpoint is due.
            guard (try? place.synchronize(part.record)) != nil else { return }
            isRecordDurable = true
        }
        try synchronize()
        // A checkpoint that cannot be written waits with the entries.
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

    /// Puts the document in place. On an error the part is still there.
    ///
    /// - Parameter isCancelled: whether nobody wants it any more.
    func commit(unless isCancelled: () -> Bool) throws(DocumentError) -> FilePath {
        guard verified.missing(in: tree.layout.allChunks).isEmpty else {
            throw DocumentError(.incomplete, tree.label.description)
        }
        try part.prepare(unless: isCancelled)
        try synchronize()
        if isCancelled() { throw DocumentError(.cancelled, tree.label.description) }
        let path = try part.putInPlace()
        isOver = true
        return path
    }

    /// Ends it: keeps the part if the journal knows of chunks in it, and removes it otherwise.
    ///
    /// - Returns: bytes that are kept.
    func end() -> UInt64 {
        guard !isOver else { return 0 }
        isOver = true
        // This comes first: the state folder may be on the same disk, and the journal may need the room. A disk that
        // has failed is not written to at the same places again.
        if !hasFailed { giveBackRoom() }
        writeDown()
        guard keptByteCount > 0 else {
            part.discard()
            return 0
        }
        part.keep()
        return keptByteCount
    }

    /// Gives back the room of chunks that have not come, and may never come.
    private func giveBackRoom() {
        guard lastFile < tree.layout.fileCount else { return }
        let chunks = tree.layout.chunks(ofFile: lastFile)
        for missing in verified.missing(in: chunks).ranges.prefix(DocumentWriter.rangeLimit) {
            guard let last = missing.last else { continue }
            let (first, end) = (tree.layout.place(of: missing.lowerBound), tree.layout.place(of: last))
            part.giveBack(first.range.lowerBound..<end.range.upperBound, ofFile: lastFile)
        }
    }

    // MARK: - Room

    /// Makes sure that there is room for the missing chunks, and reserves it for a document of one file.
    func reserve(sparseAtMost limit: UInt64) throws(DocumentError) {
        let entryCount = verified.isEmpty ? tree.entryCount - 1 : 0
        try place.folder.requireRoom(for: neededByteCount(sparseAtMost: limit), entries: entryCount, tree.label)
        try part.reserve()
    }

    /// Bytes that incomplete files still need on the disk.
    ///
    /// - Parameter limit: what files with holes count together at most, because nobody knows how much of them comes.
    func neededByteCount(sparseAtMost limit: UInt64) -> UInt64 {
        let block = place.folder.blockSize
        var (needed, sparse): (UInt64, UInt64) = (0, 0)
        for file in incompleteFiles.ranges.joined() {
            let size = tree.layout.size(ofFile: file)
            if tree.isSparse(file: file) {
                sparse += size
            } else {
                let onDisk = size > .max - block ? size : (size + block - 1) / block * block
                needed += onDisk - min(onDisk, part.heldByteCount(ofFile: file))
            }
        }
        return needed + min(sparse, limit)
    }
}
