// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import CLinux
import Glibc
import SystemPackage

/// The place of a document until it is whole: a hidden file or folder beside its destination, for this user
/// alone. A document of one file is a folder with one entry, which is the document itself.
///
/// It stays where it is until ``putInPlace()``, ``discard()`` or ``keep()`` ends it. It belongs to one thread, and each
/// call blocks on the disk. It holds at most four descriptors.
final class Part {
    /// Files in a folder up to this size are not reserved, because their bytes come at once: 1 MiB.
    private static let unreservedSize = UInt64(ChunkLayout.chunkSize)

    /// The document.
    let tree: DocumentTree
    let place: PartPlace
    /// Where it is, and who remembers it.
    let record: PartFileRecord

    /// The document itself, open.
    let root: OpenEntry
    /// Files that are there: made now, or looked at.
    private var known: [Bool]
    /// Whether everything in it was made by this object.
    private let isNew: Bool
    var current: OpenFile?
    /// The folder that was opened last.
    var parent: OpenEntry?
    private var isOver = false

    /// Makes the part, with nothing in it.
    ///
    /// - Throws: `destinationNotWritable`, `destinationUnsuitable`, `badName`, `stateUnavailable`, `busy`, ... Nothing
    ///   is left behind then, or its record as well, so that the next start removes it.
    convenience init(creating tree: DocumentTree, at place: PartPlace) throws(DocumentError) {
        try tree.requireLinksInside()
        var record = PartFileRecord(of: tree.label, in: place.folder)
        // First without an inode, so that no moment exists in which the part has no record.
        try place.ledger.enter(record)
        let root: OpenEntry
        do throws(DocumentError) {
            root = OpenEntry(.root, try place.folder.make(record.name, isFolder: tree.isFolder, for: tree.label))
            do {
                record.inode = place.folder.fileSystem.number(of: try SystemCalls.status(of: root.descriptor))
            } catch {
                throw DocumentError(writingFailed: error, tree.label)
            }
            try place.ledger.enter(record)
        } catch {
            // It is empty.
            record.inode = 0
            place.ledger.removePart(of: record, in: place.folder)
            throw error
        }
        self.init(tree, record, root, at: place, isNew: true)
        do throws(DocumentError) {
            try requireNaming()
        } catch {
            discard()
            throw error
        }
    }

    /// Opens the part of an earlier transfer.
    ///
    /// - Returns: nil where it is not there any more, or has something else in the place of a file or folder.
    convenience init?(
        reopening tree: DocumentTree, _ record: PartFileRecord, at place: PartPlace
    ) throws(DocumentError) {
        try tree.requireLinksInside()
        guard
            let root = try place.folder.reopen(
                record.name, inode: record.inode, isFolder: tree.isFolder, for: tree.label)
        else { return nil }
        self.init(tree, record, OpenEntry(.root, root), at: place, isNew: false)
        guard try restoreAccess() else { return nil }
    }

    private init(
        _ tree: DocumentTree, _ record: PartFileRecord, _ root: OpenEntry, at place: PartPlace, isNew: Bool
    ) {
        self.tree = tree
        self.record = record
        self.root = root
        self.place = place
        self.isNew = isNew
        known = Array(repeating: false, count: tree.layout.fileCount)
        if !tree.isFolder { current = OpenFile(0, root, of: tree) }
    }

    // MARK: - Content

    /// Reserves the room of a document that is one file, and gives it its size. The files of a folder follow one by
    /// one.
    func reserve() throws(DocumentError) {
        guard !tree.isFolder, let current else { return }
        do {
            try current.setSize(isReserving: true)
        } catch {
            throw DocumentError(writingFailed: error, tree.label)
        }
    }

    /// Writes bytes of a file, which is made if need be, with the folders that it is in.
    func write(_ bytes: UnsafeRawBufferPointer, toFile index: Int, at offset: UInt64) throws(DocumentError) {
        let size = tree.layout.size(ofFile: index)
        guard offset <= size, UInt64(bytes.count) <= size - offset else {
            throw DocumentError(.excess, displayed(tree.entry(ofFile: index).path))
        }
        let file = try open(index, toHold: bytes.count)
        do {
            try file.write(bytes, at: offset)
        } catch {
            throw failure(error, file.entry.path)
        }
    }

    /// Whether it pays to have chunks of a file whole, in memory that is aligned, before they are written.
    func takesWholeChunks(ofFile index: Int) throws(DocumentError) -> Bool {
        guard tree.layout.size(ofFile: index) >= PartOutput.directSize else { return false }
        return try open(index, toHold: 0).takesWholeChunks
    }

    /// Makes bytes of a file zeros, and a hole where the file system has holes.
    func clear(_ range: Range<UInt64>, ofFile index: Int) throws(DocumentError) {
        let file = try open(index, toHold: 0)
        do {
            try SystemCalls.clear(range, of: file.entry.descriptor)
        } catch {
            throw failure(error, file.entry.path)
        }
    }

    /// Whether a file is this user's own, has its size and no second name: somebody may have cut or removed it.
    ///
    /// - Throws: `writeFailed`, ...: the disk does not answer, and nobody knows.
    func isWhole(file index: Int) throws(DocumentError) -> Bool {
        do throws(Errno) {
            let status = try status(ofFile: index)
            let hasSize = status.st_size == off_t(tree.layout.size(ofFile: index))
            return hasSize && (try? SystemCalls.requireOwn(status)) != nil
        } catch {
            guard error.saysAbsent else { throw failure(error, tree.entry(ofFile: index).path) }
            return false
        }
    }

    /// Bytes that the disk holds for a file.
    func heldByteCount(ofFile index: Int) -> UInt64 {
        if tree.isFolder, isNew, !known[index] { return 0 }
        return UInt64(clamping: (try? status(ofFile: index))?.st_blocks ?? 0) * 512
    }

    private func status(ofFile index: Int) throws(Errno) -> stat {
        let path = tree.entry(ofFile: index).path
        guard !path.isRoot else { return try SystemCalls.status(of: root.descriptor) }
        return try SystemCalls.status(ofName: path.name, in: try folder(at: path.parent).descriptor)
    }

    /// Gives back the room that was reserved for bytes of the file that is being written, where the file system can. No
    /// room is reserved for others.
    func giveBack(_ range: Range<UInt64>, ofFile index: Int) {
        guard let current, current.index == index else { return }
        SystemCalls.giveBack(range, of: current.entry.descriptor)
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
            throw failure(error, .root)
        }
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
        try? folder.synchronize()
        place.ledger.remove(record)
        return folder.path(of: placed)
    }

    /// Removes it, unless it is over. Something else that somebody put under its name stays, and so does a part that
    /// somebody moved away.
    ///
    /// - Returns: whether it is gone. If not, the next start removes it.
    @discardableResult
    func discard() -> Bool {
        guard !isOver else { return true }
        close()
        return place.ledger.removePart(of: record, in: place.folder)
    }

    /// Leaves it where it is, for a transfer that goes on with it.
    func keep() {
        guard !isOver else { return }
        close()
        place.ledger.release(record)
    }

    private func close() {
        isOver = true
        current = nil
        parent = nil
    }

    /// The meaning of an error of making, writing or naming an entry.
    func failure(_ error: Errno, _ entry: EntryPath) -> DocumentError {
        let failure = DocumentError(creatingFailed: error, tree.label, in: place.folder.path)
        let isAboutTheEntry = [.badName, .tooLarge, .writeFailed].contains(failure.code)
        return isAboutTheEntry ? DocumentError(failure.code, displayed(entry), underlyingError: error) : failure
    }

    /// The name of an entry in an error.
    func displayed(_ entry: EntryPath) -> String {
        entry.isRoot ? tree.label.description : tree.displayed(entry)
    }

    /// The folder of this path in it, made if need be; the last one stays open.
    func folder(at path: EntryPath) throws(Errno) -> OpenEntry {
        if let parent, parent.path == path { return parent }
        let opened = OpenEntry(path, try SystemCalls.openOrMakeFolder(path, beneath: root.descriptor))
        parent = opened
        return opened
    }

    /// - Parameter count: bytes that are written at once: a file that has no more gets its size by that.
    private func open(_ index: Int, toHold count: Int) throws(DocumentError) -> OpenFile {
        if let current, current.index == index { return current }
        let entry = tree.entry(ofFile: index)
        let isMade = isNew && !known[index]
        current = nil
        do {
            let folder = try folder(at: entry.path.parent)
            // No other user can reach it in the part: most files then have their permissions from the start.
            let flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | (isMade ? O_EXCL : 0)
            let mode = entry.mode(allowedBy: place.umask) | 0o600
            let opened = OpenEntry(
                entry.path, try SystemCalls.open(entry.path.name, beneath: folder.descriptor, flags, mode: mode))
            if !isMade { try SystemCalls.requireOwn(try SystemCalls.status(of: opened.descriptor)) }
            let file = OpenFile(index, opened, of: tree)
            let size = tree.layout.size(ofFile: index)
            if !isMade || UInt64(count) != size {
                try file.setSize(isReserving: isMade && size > Self.unreservedSize)
            }
            known[index] = true
            current = file
            return file
        } catch .fileExists {
            // Nobody else makes files here.
            throw becomeOne
        } catch {
            throw failure(error, entry.path)
        }
    }

    /// Makes sure, before a byte is asked for, that the file system can name it without replacing something.
    private func requireNaming() throws(DocumentError) {
        let other = PartFileRecord(of: tree.label, in: place.folder)
        try place.ledger.enter(other)
        defer { place.ledger.remove(other) }
        try place.folder.rename(record.name, toPart: other.name, for: tree.label)
        try place.folder.rename(other.name, toPart: record.name, for: tree.label)
    }
}

extension ChunkLayout.Place {
    /// Its bytes in the file.
    var range: Range<UInt64> { offset..<offset + UInt64(size) }
}

extension Errno {
    /// Whether nothing, or something else, is where a file or folder of a part was.
    var saysAbsent: Bool {
        [.noSuchFileOrDirectory, .notDirectory, .isDirectory, .tooManySymbolicLinkLevels, .improperLink].contains(self)
    }
}
