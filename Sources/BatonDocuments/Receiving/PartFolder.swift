// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import CLinux
import Glibc
import SystemPackage

/// The folder that a document of many files is written to until it is whole: hidden, beside its destination, and for
/// this user alone.
///
/// It stays where it is until it is committed or discarded, also when this object goes. Belongs to the thread that made
/// it. Every call blocks on the disk. At most four descriptors are open: the folder, the one that was written to last,
/// a file in it, and for a moment another.
final class PartFolder {
    /// What the document consists of.
    let tree: DocumentTree
    /// Tells it from another folder of its name.
    let inode: UInt64

    let destination: DestinationFolder
    let root: OwnedDescriptor
    let umask: mode_t

    private let name: [UInt8]
    private let naming: DocumentNaming
    /// Files that are there: made now, or looked at.
    private var known: [Bool]
    /// Whether everything that is in it was made by this object.
    private let isNew: Bool
    private var current: OpenPart?
    private var parent: OpenParent?
    private var isOver = false

    /// Makes the folder, with nothing in it.
    ///
    /// - Parameters:
    ///   - name: what it is called until it is whole (``PartFileName``).
    ///   - others: files that need no room, because they are moved into it.
    ///   - umask: the permission bits that the user does not want.
    /// - Throws: `destinationExists`, `destinationNotWritable`, `destinationFull`, `destinationUnsuitable`, `badName`,
    ///   ... Nothing is left behind then.
    convenience init(
        creating tree: DocumentTree, named name: [UInt8], in destination: DestinationFolder,
        withoutRoomFor others: Set<Int> = [], umask: mode_t = ProcessUmask.current, naming: DocumentNaming = .own
    ) throws(DocumentError) {
        try tree.requireLinksInside()
        try destination.requireAbsent(tree.label, naming)
        try destination.requireRoom(for: tree, without: others)
        try destination.requireNaming(of: tree.label)
        guard let root = try destination.makeFolder(name, for: tree.label) else {
            throw DocumentError(.writeFailed, tree.label.description, underlyingError: .fileExists)
        }
        let inode: UInt64
        do {
            inode = UInt64(try SystemCalls.status(of: root).st_ino)
        } catch {
            throw DocumentError(writingFailed: error, tree.label)
        }
        self.init(tree, name, inode, root, in: destination, umask, naming, isNew: true)
    }

    /// Opens the folder of an earlier transfer, and removes from it what the document, as it is now, has not.
    ///
    /// - Throws: `incomplete` where there is no such folder any more, or something in it that cannot be removed.
    convenience init(
        reopening tree: DocumentTree, named name: [UInt8], inode: UInt64, in destination: DestinationFolder,
        umask: mode_t = ProcessUmask.current, naming: DocumentNaming = .own
    ) throws(DocumentError) {
        try tree.requireLinksInside()
        try destination.requireAbsent(tree.label, naming)
        guard let root = try destination.reopenFolder(name, inode: inode, for: tree.label) else {
            throw DocumentError(.incomplete, tree.label.description)
        }
        self.init(tree, name, inode, root, in: destination, umask, naming, isNew: false)
        do throws(DocumentError) {
            try removeExtraneous()
        } catch {
            // Something is mounted there, on a folder or deeper in what is to go, or somebody else writes to it.
            let reasons: [Errno?] = [.improperLink, .resourceBusy, .directoryNotEmpty]
            guard reasons.contains(error.underlyingError) else { throw error }
            throw DocumentError(.incomplete, tree.label.description, underlyingError: error.underlyingError)
        }
    }

    private init(
        _ tree: DocumentTree, _ name: [UInt8], _ inode: UInt64, _ root: consuming OwnedDescriptor,
        in destination: DestinationFolder, _ umask: mode_t, _ naming: DocumentNaming, isNew: Bool
    ) {
        self.tree = tree
        self.inode = inode
        self.destination = destination
        self.name = name
        self.umask = umask
        self.naming = naming
        self.isNew = isNew
        self.root = root
        known = Array(repeating: false, count: tree.layout.fileCount)
    }

    /// Writes bytes of a file, which is made if need be, with the folders that it is in.
    func write(_ bytes: UnsafeRawBufferPointer, toFile index: Int, at offset: UInt64) throws(DocumentError) {
        let size = tree.layout.size(ofFile: index)
        guard offset <= size, UInt64(bytes.count) <= size - offset else {
            throw DocumentError(.excess, tree.displayed(tree.entry(ofFile: index).path))
        }
        let part = try open(index, toHold: bytes.count)
        do {
            try part.write(bytes, at: offset)
        } catch {
            throw failure(error, part.entry.path)
        }
    }

    /// Whether it pays to have chunks of a file whole before they are written; the file is made for that if need be.
    func takesWholeChunks(ofFile index: Int) throws(DocumentError) -> Bool {
        guard tree.layout.size(ofFile: index) >= PartOutput.directSize else { return false }
        return try open(index, toHold: 0).takesWholeChunks
    }

    /// Makes bytes of a file zeros, and a hole where the file system has holes.
    func clear(_ range: Range<UInt64>, ofFile index: Int) throws(DocumentError) {
        let part = try open(index, toHold: 0)
        do {
            try SystemCalls.clear(range, of: part.file)
        } catch {
            throw failure(error, part.entry.path)
        }
    }

    /// Reads bytes of a file as they are now.
    ///
    /// - Returns: how many: fewer than asked for where the file ends before, 0 where it is not there.
    func read(file index: Int, at offset: UInt64, into bytes: UnsafeMutableRawBufferPointer) throws(DocumentError)
        -> Int
    {
        guard let part = try openExisting(index) else { return 0 }
        do {
            return try part.read(into: bytes, at: offset)
        } catch {
            throw DocumentError(.readFailed, tree.displayed(part.entry.path), underlyingError: error)
        }
    }

    /// See ``Part/leaveCache(_:ofFile:)``.
    func leaveCache(_ range: Range<UInt64>, ofFile index: Int) {
        guard let part = (try? openExisting(index)) ?? nil else { return }
        SystemCalls.leaveCache(range, of: part.file)
    }

    /// See ``Part/giveBack(_:ofFile:)``. No more is reserved than of the file that is being written.
    func giveBack(_ range: Range<UInt64>, ofFile index: Int) {
        guard let current, current.index == index else { return }
        SystemCalls.giveBack(range, of: current.file)
    }

    /// See ``Part/heldByteCount(ofFile:)``.
    func heldByteCount(ofFile index: Int) -> UInt64 {
        guard !isNew || known[index] else { return 0 }
        let path = tree.entry(ofFile: index).path
        let status = try? SystemCalls.status(ofName: path.name, in: try folder(at: path.parent).folder)
        return UInt64(clamping: status?.st_blocks ?? 0) * 512
    }

    /// Removes a file of which nothing is there, so that another one can be moved to its place.
    func remove(file index: Int) throws(DocumentError) {
        guard !isNew || known[index] else { return }
        if current?.index == index { current = nil }
        let path = tree.entry(ofFile: index).path
        do throws(Errno) {
            try SystemCalls.remove(path.name, from: try folder(at: path.parent).folder, isFolder: false)
        } catch .noSuchFileOrDirectory {
            return
        } catch {
            throw failure(error, path)
        }
    }

    /// Moves a file here from another part folder.
    ///
    /// - Returns: false if the file has gone, or nothing can be moved between the two folders.
    func take(_ file: OlderFolder.UnchangedFile, from older: OlderFolder) throws(DocumentError) -> Bool {
        let path = tree.entry(ofFile: file.file).path
        do throws(Errno) {
            let parent = try folder(at: path.parent)
            try older.move(file, to: path.name, in: parent.folder)
            known[file.file] = true
            // An earlier attempt may have given it permissions that do not let it be written to.
            let status = try SystemCalls.status(ofName: path.name, in: parent.folder)
            if status.st_mode & 0o600 != 0o600 { try SystemCalls.restoreAccess(path.name, in: parent.folder) }
            return true
        } catch .noSuchFileOrDirectory, .improperLink {
            return false
        } catch {
            throw failure(error, path)
        }
    }

    /// See ``Part/isThere(file:)``.
    func isThere(file index: Int) throws(DocumentError) -> Bool {
        let path = tree.entry(ofFile: index).path
        do throws(Errno) {
            try destination.requireAnswer(to: .file)
            let status = try SystemCalls.status(ofName: path.name, in: try folder(at: path.parent).folder)
            let isWhole = status.st_size == off_t(tree.layout.size(ofFile: index))
            return isWhole && (try? SystemCalls.requireOwn(status)) != nil
        } catch .noSuchFileOrDirectory, .notDirectory, .tooManySymbolicLinkLevels, .improperLink {
            return false
        } catch {
            throw failure(error, path)
        }
    }

    /// Another descriptor of the folder, through which its file system can be synchronised from another thread.
    func duplicateRoot() throws(DocumentError) -> OwnedDescriptor {
        do {
            return try SystemCalls.openFolder([UInt8(ascii: ".")], within: root)
        } catch {
            throw DocumentError(.busy, tree.label.description, underlyingError: error)
        }
    }

    /// Makes durable all that was written.
    func synchronize() throws(DocumentError) {
        let number = root.rawValue
        do {
            try SystemCalls.kernel { baton_synchronize_file_system(number) }
        } catch {
            throw failure(error, .root)
        }
    }

    /// Makes sure that everything is there, and gives it permissions, times and links.
    ///
    /// - Parameter isCancelled: is asked before each entry: there can be 100,000.
    /// - Throws: `cancelled`, `incomplete` where a file is missing or too short, `destinationUnsuitable` where two
    ///   entries have become one, ... The folder is still there then, to be prepared again or discarded.
    func prepare(unless isCancelled: () -> Bool = { false }) throws(DocumentError) {
        current = nil
        parent = nil
        var finishing = FolderFinishing(self)
        try finishing.finish(unless: isCancelled)
    }

    /// Gives the folder, prepared and durable, its name, never in the place of something else.
    ///
    /// - Throws: `destinationExists`, ... The folder is still there then, to be placed again or discarded.
    func place() throws(DocumentError) -> FilePath {
        guard destination.holdsFolder(name, inode: inode) else {
            throw DocumentError(.writeFailed, tree.label.description, underlyingError: .noSuchFileOrDirectory)
        }
        let placed = try destination.rename(name, to: tree.label, naming, isFolder: true)
        // As with a part file: what stands under the name now has to be what was received.
        guard destination.holdsFolder(placed.bytes, inode: inode) else {
            throw DocumentError(.writeFailed, tree.label.description, underlyingError: .staleNFSFileHandle)
        }
        isOver = true
        // It has its name; only a power cut in the next seconds could take that away.
        try? destination.synchronize()
        return destination.path(of: placed)
    }

    /// Whether somebody has taken it away.
    var isLost: Bool { destination.hasLost(name, inode: inode) }

    /// Removes the folder and all that is in it, unless it was committed.
    ///
    /// - Returns: whether it is gone: not when the disk, or something that was put into it, stands in the way.
    @discardableResult
    func discard() -> Bool {
        guard !isOver else { return true }
        isOver = true
        current = nil
        parent = nil
        guard (try? FolderRemoval.removeContents(of: root)) != nil else { return false }
        guard destination.holdsFolder(name, inode: inode) else { return true }
        return (try? SystemCalls.remove(name, from: destination.file, isFolder: true)) != nil
    }

    /// What it means that something could not be made, written or named.
    func failure(_ error: Errno, _ entry: EntryPath) -> DocumentError {
        let failure = DocumentError(creatingFailed: error, tree.label, in: destination.path)
        let isAboutTheEntry = [.badName, .tooLarge, .writeFailed].contains(failure.code)
        return isAboutTheEntry ? DocumentError(failure.code, tree.displayed(entry), underlyingError: error) : failure
    }

    /// The folder of this path in it, made if need be; the last one stays open.
    func folder(at path: EntryPath) throws(Errno) -> OpenParent {
        if let parent, parent.path == path { return parent }
        let opened = OpenParent(path, try SystemCalls.openOrMakeFolder(path, beneath: root))
        parent = opened
        return opened
    }

    /// - Parameter count: bytes that are written at once: a file that has no more gets its size by that.
    private func open(_ index: Int, toHold count: Int) throws(DocumentError) -> OpenPart {
        if let current, current.index == index { return current }
        let entry = tree.entry(ofFile: index)
        current = nil
        do {
            let folder = try folder(at: entry.path.parent)
            let part = try OpenPart(index, entry, in: folder, isNew: isNew && !known[index], umask)
            try part.prepare(toHold: count)
            known[index] = true
            current = part
            return part
        } catch .fileExists {
            // Nobody else makes files here: to this file system two names are one.
            throw DocumentError(.destinationUnsuitable, destination.path.displayed, underlyingError: .fileExists)
        } catch {
            throw failure(error, entry.path)
        }
    }

    /// - Returns: nil where the file is not there, or is none of ours.
    private func openExisting(_ index: Int) throws(DocumentError) -> OpenPart? {
        if let current, current.index == index { return current }
        guard !isNew || known[index] else { return nil }
        let entry = tree.entry(ofFile: index)
        do {
            try destination.requireAnswer(to: .content)
            _ = try SystemCalls.open(entry.path.bytes, beneath: root, O_RDONLY | O_NONBLOCK)
        } catch .noSuchFileOrDirectory, .notDirectory, .tooManySymbolicLinkLevels, .improperLink {
            return nil
        } catch {
            throw failure(error, entry.path)
        }
        do throws(DocumentError) {
            return try open(index, toHold: 0)
        } catch {
            // See `SystemCalls.requireOwn`.
            guard error.underlyingError == .illegalSeek || error.underlyingError == .tooManyLinks else { throw error }
            return nil
        }
    }
}

extension DocumentTree {
    /// Makes sure that no link leads out from where it stands: a target was checked for one path and could be given to
    /// another entry.
    fileprivate func requireLinksInside() throws(DocumentError) {
        for index in 0..<entryCount {
            let entry = self[index]
            guard case .link(let target) = entry.kind else { continue }
            guard LinkTarget(target.bytes, at: entry.path) == target else {
                throw DocumentError(.badName, displayed(entry.path))
            }
        }
    }
}
