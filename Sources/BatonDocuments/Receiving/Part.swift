// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonProtocol
import CLinux
import Glibc
import SystemPackage

/// The place of a document until it is whole: a hidden file or folder beside its destination, for this user
/// alone, with a journal of which chunks are there, and which of them the disk has for good. A document of one file is
/// a folder with one entry, which is the document itself.
///
/// It stays where it is until ``commit(unless:)`` or ``end()`` ends it. It belongs to one thread, and each call blocks
/// on the disk. It holds at most five descriptors.
final class Part {
    /// Unsure bytes after which a checkpoint is due: 1 GiB. The next attempt may have to read so many.
    private static let byteLimit: UInt64 = 1 << 30
    /// Nanoseconds after which a checkpoint is due, if something has come: 10 s.
    private static let timeLimit: UInt64 = 10_000_000_000

    /// Chunks that are verified and written.
    private(set) var verified = ChunkSet()
    /// Bytes in them.
    private(set) var verifiedByteCount: UInt64 = 0
    /// Bytes in those of them that the journal has. They are kept if the transfer ends now.
    private(set) var keptByteCount: UInt64 = 0
    /// Nanoseconds that the disk took.
    private(set) var diskTime: UInt64 = 0

    /// The document.
    let tree: DocumentTree
    let place: PartPlace
    /// Where it is, and who remembers it.
    let record: PartFileRecord
    private let journal: TransferJournal

    /// The document itself, open.
    let root: OpenEntry
    /// Whether everything in it was made by this object.
    let isNew: Bool
    /// Files that are there: made now, or looked at.
    var known: [Bool]
    /// The file that is being written.
    var current: OpenFile?
    /// The folder that was opened last.
    var parent: OpenEntry?

    /// Bytes and chunks that no checkpoint vouches for.
    private var unsure: (byteCount: UInt64, chunkCount: Int) = (0, 0)
    /// Bytes that the last checkpoint vouches for.
    private var vouchedByteCount: UInt64 = 0
    private var lastCheckpoint = MonotonicClock.nanoseconds()
    private var isRecordDurable = false
    /// Whether the disk refused what it was given. It says so only once, so no checkpoint may follow.
    private var hasFailed = false
    private var isOver = false

    /// Makes the part, with nothing in it, and its journal.
    ///
    /// - Throws: `destinationNotWritable`, `destinationUnsuitable`, `badName`, `stateUnavailable`, `busy`, ... Nothing
    ///   is left behind then, or its record as well, so that the next start removes it.
    convenience init(creating header: JournalHeader, at place: PartPlace) throws(DocumentError) {
        let tree = header.tree
        var record = PartFileRecord(of: tree.label, in: place.folder)
        // First without an inode, so that no moment exists in which the part has no record.
        try place.ledger.enter(record)
        do throws(DocumentError) {
            let root = OpenEntry(.root, try place.folder.make(record.name, isFolder: tree.isFolder, for: tree.label))
            do {
                record.inode = place.folder.fileSystem.number(of: try SystemCalls.status(of: root.descriptor))
            } catch {
                throw DocumentError(writingFailed: error, tree.label)
            }
            try place.ledger.enter(record)
            try Self.requireNaming(record, tree.label, at: place)
            let journal: TransferJournal
            do {
                journal = try TransferJournal.create(at: place.ledger.journal(of: record), header)
            } catch {
                throw place.ledger.failure(error)
            }
            self.init(tree, record, root, journal, at: place, isNew: true)
        } catch {
            // It is empty.
            record.inode = 0
            place.ledger.removePart(of: record, in: place.folder)
            throw error
        }
    }

    /// Opens the part of an earlier transfer, which the caller has taken from the ledger.
    ///
    /// - Parameter isCancelled: whether nobody waits for it any more; it is asked before each chunk that has to be
    ///   read.
    /// - Returns: nil if the part or its journal cannot be used: somebody cut, removed or damaged it, or has put
    ///   something else in the place of a file or folder.
    convenience init?(
        reopening unfinished: UnfinishedDocument, at place: PartPlace, unless isCancelled: () -> Bool
    ) throws(DocumentError) {
        let record = unfinished.record
        let found: (journal: TransferJournal, content: TransferJournal.Content)?
        do throws(Errno) {
            found = try TransferJournal.open(place.ledger.journal(of: record))
        } catch {
            guard error.saysLost else { throw place.ledger.failure(error) }
            return nil
        }
        guard let (journal, content) = found else { return nil }
        let tree = content.header.tree
        do throws(DocumentError) {
            let root = try place.folder.reopen(
                record.name, inode: record.inode, isFolder: tree.isFolder, for: tree.label)
            guard let root else { return nil }
            self.init(tree, record, OpenEntry(.root, root), journal, at: place, isNew: false)
            guard try restoreAccess() else { return nil }
        } catch {
            // If the destination cannot be written to, a new part ends the same way.
            guard error.code == .destinationNotWritable else { throw error }
            return nil
        }
        verified = content.vouched
        let files = tree.isFolder ? verified.files(in: tree.layout) : RangeSet(0..<1)
        for file in files.ranges.joined() where tree.layout.size(ofFile: file) > 0 || !tree.isFolder {
            guard try isWhole(file: file) else { return nil }
        }
        vouchedByteCount = verified.byteCount(in: tree.layout)
        let there = try present(content.unsure, unless: isCancelled)
        for chunk in there { verified.insert(chunk.number) }
        do {
            if there.count < content.unsure.count { try journal.replaceTail(there) }
        } catch {
            throw place.ledger.failure(error)
        }
        verifiedByteCount = verified.byteCount(in: tree.layout)
        keptByteCount = verifiedByteCount
        unsure = (verifiedByteCount - vouchedByteCount, there.count)
    }

    private init(
        _ tree: DocumentTree, _ record: PartFileRecord, _ root: OpenEntry, _ journal: TransferJournal,
        at place: PartPlace, isNew: Bool
    ) {
        self.tree = tree
        self.record = record
        self.root = root
        self.journal = journal
        self.place = place
        self.isNew = isNew
        known = Array(repeating: false, count: tree.layout.fileCount)
        if !tree.isFolder { current = OpenFile(0, root, of: tree) }
    }

    /// Makes sure, before a byte is asked for, that the file system can name it without replacing something.
    private static func requireNaming(
        _ record: PartFileRecord, _ label: DocumentLabel, at place: PartPlace
    ) throws(DocumentError) {
        let other = PartFileRecord(of: label, in: place.folder)
        try place.ledger.enter(other)
        defer { place.ledger.remove(other) }
        do {
            try place.folder.rename(record.name, other.name)
            try place.folder.rename(other.name, record.name)
        } catch {
            throw DocumentError(creatingFailed: error, label, in: place.folder.path)
        }
    }

    // MARK: - Chunks

    /// Files of which chunks are missing.
    var incompleteFiles: RangeSet<Int> { verified.missing(in: tree.layout.allChunks).files(in: tree.layout) }

    /// Writes a chunk that is intact, and takes note of it.
    func take(_ chunk: ChunkVerifier.Chunk) throws(DocumentError) {
        let start = MonotonicClock.nanoseconds()
        defer { diskTime += MonotonicClock.nanoseconds() - start }
        let place = tree.layout.place(of: chunk.number)
        if let content = chunk.content {
            unsure.byteCount += UInt64(content.count)
            if tree.isSparse(file: place.file) {
                try writeSparsely(content, to: place)
            } else {
                try write(content, toFile: place.file, at: place.offset)
            }
        } else {
            try clear(place.range, ofFile: place.file)
        }
        verified.insert(chunk.number)
        verifiedByteCount += UInt64(place.size)
        unsure.chunkCount += 1
        journal.append(chunk.number, chunk.checksum)
    }

    /// Writes down what has come, and makes a checkpoint if one is due.
    func note() throws(DocumentError) {
        writeDown()
        guard unsure.chunkCount > 0, !hasFailed else { return }
        let elapsed = MonotonicClock.nanoseconds() - lastCheckpoint
        if unsure.byteCount >= Self.byteLimit || elapsed >= Self.timeLimit { try makeCheckpoint() }
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
            diskTime += lastCheckpoint - start
        }
        if !isRecordDurable {
            // On an error it is tried again when the next checkpoint is due.
            guard (try? place.synchronize(record)) != nil else { return }
            isRecordDurable = true
        }
        try synchronize()
        // A checkpoint that cannot be written waits with the entries.
        try? journal.checkpoint()
        vouchedByteCount = verifiedByteCount
        unsure = (0, 0)
    }

    /// Makes durable all that was written.
    ///
    /// - Throws: `destinationFull`, `writeFailed`, ... All writes since the last success may be lost then. Linux tells
    ///   an error of writing back only once: later calls succeed.
    func synchronize() throws(DocumentError) {
        let number = root.descriptor.rawValue
        do {
            if tree.isFolder {
                try SystemCalls.kernel { baton_synchronize_file_system(number) }
            } else {
                try SystemCalls.synchronize(root.descriptor)
            }
        } catch {
            hasFailed = true
            keptByteCount = vouchedByteCount
            throw failure(error, .root)
        }
    }

    // MARK: - End

    /// Puts the document in place. On an error the part is still there.
    ///
    /// - Parameter isCancelled: whether nobody wants it any more.
    func commit(unless isCancelled: () -> Bool) throws(DocumentError) -> FilePath {
        guard verified.missing(in: tree.layout.allChunks).isEmpty else {
            throw DocumentError(.incomplete, tree.label.description)
        }
        try prepare(unless: isCancelled)
        try synchronize()
        if isCancelled() { throw DocumentError(.cancelled, tree.label.description) }
        return try putInPlace()
    }

    /// Gives what is prepared and durable its name, never in the place of something else.
    ///
    /// - Throws: `destinationExists`, ... The part is still there then.
    func putInPlace() throws(DocumentError) -> FilePath {
        let (folder, label) = (place.folder, tree.label)
        guard folder.holds(record.name, inode: record.inode, isFolder: tree.isFolder) else {
            throw DocumentError(.writeFailed, label.description, underlyingError: .noSuchFileOrDirectory)
        }
        let placed = try folder.rename(record.name, to: label, place.naming, isFolder: tree.isFolder)
        // Somebody who may write to the folder can exchange the part between a look and the renaming: what stands under
        // the name now has to be what was received.
        guard folder.holds(placed.bytes, inode: record.inode, isFolder: tree.isFolder) else {
            throw DocumentError(.writeFailed, label.description, underlyingError: .staleNFSFileHandle)
        }
        isOver = true
        // Before the record goes, which may be on another disk. If it fails, the document is whole all the same and has
        // its name, and only a power cut in the next seconds could take the name away.
        try? SystemCalls.synchronize(folder.file)
        place.ledger.remove(record)
        return folder.path(of: placed)
    }

    /// Ends it: keeps the part if the journal knows of chunks in it, and removes it otherwise. Something else that
    /// somebody put under its name stays, and so does a part that somebody moved away.
    ///
    /// - Returns: bytes that are kept.
    func end() -> UInt64 {
        guard !isOver else { return 0 }
        isOver = true
        // This comes first: the state folder may be on the same disk, and the journal may need the room. A disk that
        // has failed is not written to at the same places again.
        if !hasFailed { giveBackRoom() }
        writeDown()
        (current, parent) = (nil, nil)
        guard !isGone else {
            place.ledger.remove(record)
            return 0
        }
        guard keptByteCount > 0 else {
            place.ledger.removePart(of: record, in: place.folder)
            return 0
        }
        place.ledger.release(record)
        return keptByteCount
    }

    /// Whether somebody has taken it away. A disk that does not answer has lost nothing.
    private var isGone: Bool {
        do throws(Errno) {
            return try place.folder.inode(ofName: record.name) != record.inode
        } catch {
            return error == .noSuchFileOrDirectory
        }
    }

    /// Gives back the room of chunks that have not come, and may never come, of the file that is being written. No
    /// room is reserved for others.
    private func giveBackRoom() {
        guard let current else { return }
        let missing = verified.missing(in: tree.layout.chunks(ofFile: current.index))
        for chunks in missing.ranges.prefix(DocumentWriter.rangeLimit) {
            let (first, last) = (chunks.lowerBound, chunks.upperBound - 1)
            let range = tree.layout.place(of: first).range.lowerBound..<tree.layout.place(of: last).range.upperBound
            SystemCalls.giveBack(range, of: current.entry.descriptor)
        }
    }

    // MARK: - Room

    /// Makes sure that there is room for the missing chunks, and reserves it for a document of one file.
    func reserve(sparseAtMost limit: UInt64) throws(DocumentError) {
        let entryCount = verified.isEmpty ? tree.entryCount - 1 : 0
        try place.folder.requireRoom(for: neededByteCount(sparseAtMost: limit), entries: entryCount, tree.label)
        guard !tree.isFolder, let current else { return }
        do {
            try current.setSize(isReserving: true)
        } catch {
            throw DocumentError(writingFailed: error, tree.label)
        }
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
                needed += onDisk - min(onDisk, heldByteCount(ofFile: file))
            }
        }
        return needed + min(sparse, limit)
    }
}
