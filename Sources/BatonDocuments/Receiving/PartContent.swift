// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonProtocol
import Glibc
import SystemPackage

/// A part together with its journal: what of the document is there, and for how long.
///
/// Belongs to the thread that made it.
final class PartContent {
    private enum State {
        case receiving
        case over
    }

    /// Blocks of zeros of a file with holes that are not written: 4 KiB, of which most file systems make holes.
    private static let holeSize = 4 << 10

    /// Chunks that are verified and written.
    private(set) var verified: ChunkSet
    /// Bytes in them.
    private(set) var verifiedByteCount: UInt64

    /// Bytes in those of them that the journal has: what is kept where it ends now, or a little less.
    private(set) var keptByteCount: UInt64

    /// Nanoseconds that the disk took.
    private(set) var diskTime: UInt64 = 0

    let tree: DocumentTree
    let part: any Part
    let folder: DestinationFolder
    let journal: PartJournal

    /// The chunk that is coming, where chunks are written whole.
    private var whole = WholeChunk()
    private var state = State.receiving
    /// The file that was written to last.
    private var lastFile = 0
    /// Whether the disk has failed: what is not vouched for may be there all the same, and is looked at the next time.
    private var isDoubted = false

    /// Receives into a part.
    ///
    /// - Parameters:
    ///   - journal: the part's; nil where it could not be written.
    ///   - verified: what the journal vouches for.
    init(
        of tree: DocumentTree, in part: any Part, _ journal: TransferJournal?, verified: ChunkSet = ChunkSet(),
        at place: PartPlace
    ) {
        self.tree = tree
        self.part = part
        folder = place.folder
        self.journal = PartJournal(journal, of: part, at: place)
        self.verified = verified
        verifiedByteCount = verified.byteCount(in: tree.layout)
        keptByteCount = verifiedByteCount
    }

    /// Makes the part of a document, and its journal.
    ///
    /// - Parameter others: files of a folder that need no room, because they are moved into it.
    convenience init(
        creating header: JournalHeader, withoutRoomFor others: Set<Int> = [], at place: PartPlace
    ) throws(DocumentError) {
        let tree = header.tree
        let part: any Part
        if let file = tree[0].file {
            part = try PartFile(
                for: tree.label, file, modified: tree[0].modified, permissions: tree[0].permissions, at: place)
        } else {
            part = try RecordedPartFolder(creating: tree, withoutRoomFor: others, at: place)
        }
        let journal = try? TransferJournal.create(at: place.ledger.journal(of: part.record), header)
        self.init(of: tree, in: part, journal, at: place)
    }

    /// Goes on with the part of an earlier transfer of the same version.
    ///
    /// - Parameter isCancelled: whether nobody waits for it any more: is asked before each chunk that has to be read.
    /// - Returns: nil when there is nothing to go on with; what is there stays then.
    /// - Throws: `destinationFull` where its room was given back and is not there any more, `cancelled`, `writeFailed`,
    ///   `busy`, ... where the disk does not answer; it stays as well.
    convenience init?(
        reopening unfinished: UnfinishedDocument, at place: PartPlace, unless isCancelled: () -> Bool = { false }
    ) throws(DocumentError) {
        guard place.ledger.take(unfinished.record) else { return nil }
        let opened: (journal: TransferJournal, content: TransferJournal.Content)
        let part: any Part
        do throws(DocumentError) {
            opened = try Self.readJournal(of: unfinished, at: place)
            part = try Self.reopen(unfinished.record, opened.content, at: place)
        } catch {
            place.ledger.release(unfinished.record)
            guard Self.isOfNoUse(after: error) else { throw error }
            return nil
        }
        self.init(
            of: opened.content.header.tree, in: part, opened.journal, verified: opened.content.verified, at: place)
        opened.journal.reserve()
        do throws(DocumentError) {
            try loseWhatIsGone()
            journal.beginRun()
            try compare(opened.content.unsure, unless: isCancelled)
        } catch {
            var unsure = ChunkSet()
            for (chunk, _) in opened.content.unsure { unsure.insert(chunk) }
            leave(unsure)
            throw error
        }
        journal.endDoubt()
        verifiedByteCount = verified.byteCount(in: tree.layout)
        countKept()
    }

    deinit {
        _ = end()
    }

    /// Whether something of a file has not come yet.
    func lacks(file: Int) -> Bool {
        !verified.missing(in: tree.layout.chunks(ofFile: file), limit: 1).isEmpty
    }

    /// Whether nothing of a file has come yet.
    func lacksAll(ofFile file: Int) -> Bool { !verified.containsAny(tree.layout.chunks(ofFile: file)) }

    /// Takes note of chunks that came with files which were moved into the part.
    func insert(_ chunks: ChunkSet) {
        for chunk in chunks.ranges.joined() { verified.insert(chunk) }
        verifiedByteCount = verified.byteCount(in: tree.layout)
        countKept()
    }

    /// Takes what a record says.
    func take(_ event: ChunkVerifier.Event) throws(DocumentError) {
        let start = MonotonicClock.nanoseconds()
        defer { diskTime += MonotonicClock.nanoseconds() - start }
        do throws(DocumentError) {
            try write(event)
        } catch {
            // A disk that takes no more may have lost what it took before.
            if isByTheDisk(error) { journal.distrust() } else { journal.examine() }
            keepWhatIsVouchedFor()
            throw error
        }
    }

    /// Whether the disk itself has failed, so that what it says of the bytes before is not asked for. That is so only
    /// of a single file without holes; of anything else the disk is asked.
    ///
    /// Of such a file every error says so but that it is too large, and a lack of room where none was reserved and
    /// there is none now. (A loop device on a full file system takes half a write, and says all.)
    private func isByTheDisk(_ error: DocumentError) -> Bool {
        guard let file = tree[0].file, !file.isSparse, error.code != .tooLarge else { return false }
        guard error.code == .destinationFull, !part.hasReservedRoom else { return true }
        let isOutOfQuota = error.underlyingError == .diskQuotaExceeded
        return !isOutOfQuota && (folder.freeByteCount ?? 0) >= UInt64(ChunkLayout.chunkSize)
    }

    private func write(_ event: ChunkVerifier.Event) throws(DocumentError) {
        switch event {
        case .content(let chunk, let offset, let bytes):
            let place = tree.layout.place(of: chunk)
            lastFile = place.file
            if isSparse(place) {
                try writeSparsely(bytes, to: place, from: offset)
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
            let size = tree.layout.size(of: chunk)
            verifiedByteCount += UInt64(size)
            journal.append(chunk, checksum, size: size)
        }
    }

    /// Writes down what has come, and sees to it that it becomes durable now and then.
    ///
    /// - Throws: `destinationFull`, `writeFailed`, ...: the disk has failed, and what it may have lost is not there any
    ///   more.
    func note() throws(DocumentError) {
        do {
            try journal.note()
        } catch {
            keepWhatIsVouchedFor()
            throw DocumentError(writingFailed: error, tree.label)
        }
        countKept()
    }

    private func countKept() {
        if journal.isFlushed {
            keptByteCount = verifiedByteCount
        } else {
            keptByteCount = journal.isThere ? min(keptByteCount, verifiedByteCount) : 0
        }
    }

    /// Puts the document in place, or throws what is wrong; then the part is still there.
    ///
    /// - Parameter isCancelled: whether nobody wants it any more.
    /// - Throws: `incomplete` when something is missing, `cancelled`.
    func commit(unless isCancelled: () -> Bool = { false }) throws(DocumentError) -> FilePath {
        guard verified.missing(in: tree.layout.allChunks, limit: 1).isEmpty else {
            throw DocumentError(.incomplete, tree.label.description)
        }
        func requireWanted() throws(DocumentError) {
            if isCancelled() { throw DocumentError(.cancelled, tree.label.description) }
        }
        try part.prepare(unless: isCancelled)
        try requireWanted()
        journal.expectSynchronisation()
        do {
            try part.synchronize()
        } catch {
            journal.distrust()
            keepWhatIsVouchedFor()
            throw error
        }
        do {
            try requireWanted()
            let path = try part.place()
            state = .over
            return path
        } catch {
            journal.endSynchronisation()
            throw error
        }
    }

    /// Ends it: keeps the part when something of it is there that the journal knows, and removes it when not.
    ///
    /// - Returns: bytes that are kept.
    func end() -> UInt64 {
        guard case .receiving = state else { return 0 }
        state = .over
        // First: the state folder may be on the same disk, and something of the journal wait for room.
        if !isDoubted { giveBackRoom(except: verified) }
        let byteCount = journal.end(of: verified).byteCount(in: tree.layout)
        // A disk that has failed is not written to at the same places again.
        guard byteCount > 0 else {
            part.discard()
            return 0
        }
        return part.keep() ? byteCount : 0
    }

    /// Ends it before all was looked at that may be there. What was is written down, and the rest left to the next one.
    ///
    /// - Parameter unsure: chunks that may be there.
    func leave(_ unsure: ChunkSet) {
        state = .over
        var there = verified
        for chunk in unsure.ranges.joined() { there.insert(chunk) }
        // It was reserved again when the part was opened.
        giveBackRoom(except: there)
        _ = journal.end(of: verified)
        part.keep()
    }

    /// Gives back what was reserved for what has not come: nobody knows whether it ever will.
    ///
    /// - Parameter there: chunks that are there, or may be.
    private func giveBackRoom(except there: ChunkSet) {
        guard lastFile < tree.layout.fileCount else { return }
        let chunks = tree.layout.chunks(ofFile: lastFile)
        for missing in there.missing(in: chunks, limit: DocumentWriter.rangeLimit) {
            guard let last = missing.last else { continue }
            let (first, end) = (tree.layout.place(of: missing.lowerBound), tree.layout.place(of: last))
            part.giveBack(first.range.lowerBound..<end.range.upperBound, ofFile: lastFile)
        }
    }

    private func keepWhatIsVouchedFor() {
        isDoubted = true
        verified = journal.verified()
        verifiedByteCount = verified.byteCount(in: tree.layout)
        keptByteCount = verifiedByteCount
    }

    /// Forgets the chunks of files that somebody cut or removed since they came, and has the journal forget them.
    ///
    /// - Throws: that nobody knows of one.
    private func loseWhatIsGone() throws(DocumentError) {
        for file in 0..<tree.layout.fileCount {
            let chunks = tree.layout.chunks(ofFile: file)
            guard verified.containsAny(chunks), try !part.isThere(file: file) else { continue }
            for chunk in verified.present(in: chunks).joined() { journal.lose(chunk) }
            verified.remove(chunks)
        }
        // Before anything makes the files look whole again.
        journal.writeLosses()
    }

    /// Reads chunks that may be there, and keeps those that are: what cannot be read is not, nor what only the memory
    /// has of a disk that did not take it. None of them is read another time in this run of the system.
    ///
    /// - Throws: `cancelled`, and that nobody knows of one.
    private func compare(
        _ unsure: [(chunk: UInt64, checksum: ChunkChecksum)], unless isCancelled: () -> Bool
    ) throws(DocumentError) {
        guard !unsure.isEmpty else { return }
        let room = UnsafeMutableRawBufferPointer.allocate(byteCount: ChunkLayout.chunkSize, alignment: 4096)
        defer { room.deallocate() }
        for (chunk, checksum) in unsure where !verified.contains(chunk) {
            // Of a large document it can take minutes.
            if isCancelled() { throw DocumentError(.cancelled, tree.label.description) }
            let place = tree.layout.place(of: chunk)
            guard try Self.isThere(place, checksum, in: part, room) else {
                journal.lose(chunk)
                continue
            }
            verified.insert(chunk)
            // Said again, for a mark of this run of the system to cover it.
            journal.append(chunk, checksum, size: place.size)
        }
    }

    private func isSparse(_ place: ChunkLayout.Place) -> Bool { tree.isSparse(file: place.file) }

    /// Writes what is not zero, and leaves holes for what is.
    private func writeSparsely(
        _ bytes: UnsafeRawBufferPointer, to place: ChunkLayout.Place, from offset: Int
    ) throws(DocumentError) {
        // What an earlier transfer may have left there is not zero.
        if offset == 0 { try part.clear(place.range, ofFile: place.file) }
        func write(_ run: Range<Int>) throws(DocumentError) {
            guard !run.isEmpty else { return }
            let piece = UnsafeRawBufferPointer(rebasing: bytes[run])
            try part.write(piece, toFile: place.file, at: place.offset + UInt64(offset + run.lowerBound))
        }
        // Blocks of the file, which do not begin where what has come begins.
        var (start, block) = (0, 0..<0)
        while block.upperBound < bytes.count {
            let end = block.upperBound + Self.holeSize - (offset + block.upperBound) % Self.holeSize
            block = block.upperBound..<min(bytes.count, end)
            guard UnsafeRawBufferPointer(rebasing: bytes[block]).isZero else { continue }
            try write(start..<block.lowerBound)
            start = block.upperBound
        }
        try write(start..<bytes.count)
    }
}

extension ChunkLayout.Place {
    /// Its bytes in the file.
    var range: Range<UInt64> { offset..<offset + UInt64(size) }
}

extension UnsafeRawBufferPointer {
    /// Whether every byte is zero.
    fileprivate var isZero: Bool {
        guard let start = baseAddress, count > 0 else { return true }
        // Each byte equals the one before it, and the first is zero.
        return self[0] == 0 && memcmp(start, start + 1, count - 1) == 0
    }
}
