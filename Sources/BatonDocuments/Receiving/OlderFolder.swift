// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import Glibc
import SystemPackage

/// Another part folder of a document, of another version or left over from the same one.
///
/// The files that the wanted version has unchanged are moved out of it (``PartContent/takeOver(_:)``). The rest is what
/// that version is built upon. Belongs to one thread; every call blocks on the disk.
final class OlderFolder {
    /// A file that is the same in both versions, by its numbers in both.
    struct UnchangedFile {
        /// In the wanted version.
        let file: Int
        /// In the older one.
        let older: Int
    }

    /// Where it is, and who remembers it.
    let record: PartFileRecord
    /// The folder.
    let folder: BasisFolder
    /// Files that can be moved; see ``findUnchanged(in:where:unless:)``.
    private(set) var unchanged: [UnchangedFile] = []

    private let tree: DocumentTree
    private let journal: TransferJournal
    private let destination: DestinationFolder
    /// Chunks that are there for certain.
    private var there: ChunkSet
    /// Chunks that may be there.
    private let unsure: [(chunk: UInt64, checksum: ChunkChecksum)]
    /// Files of which something is there, or may be, and that were not moved.
    private var rest = Set<Int>()
    private var parent: OpenParent?

    /// Opens a part that was taken from the ledger.
    ///
    /// - Returns: nil if it is no folder, or nobody can use what is left of it.
    /// - Throws: `stateUnavailable`, `busy`, ...: nobody knows at the moment.
    init?(_ unfinished: UnfinishedDocument, at place: PartPlace) throws(DocumentError) {
        let (record, label) = (unfinished.record, unfinished.header.tree.label)
        guard unfinished.header.tree.isFolder else { return nil }
        let found: (journal: TransferJournal, content: TransferJournal.Content)
        let opened: OwnedDescriptor?
        do throws(DocumentError) {
            found = try PartContent.readJournal(of: unfinished, at: place)
            opened = try place.folder.reopenFolder(record.name, inode: record.inode, for: label)
        } catch {
            guard PartContent.isOfNoUse(after: error) else { throw error }
            return nil
        }
        guard let opened else { return nil }
        self.record = record
        folder = BasisFolder(opened)
        tree = found.content.header.tree
        journal = found.journal
        destination = place.folder
        there = found.content.verified
        unsure = found.content.unsure
        for file in 0..<tree.layout.fileCount where there.containsAny(tree.layout.chunks(ofFile: file)) {
            rest.insert(file)
        }
        for (chunk, _) in unsure { rest.insert(tree.layout.place(of: chunk).file) }
    }

    /// Paths and sizes of the files of which something is left here.
    var files: [(path: EntryPath, size: UInt64)] {
        rest.sorted().map { (tree.entry(ofFile: $0).path, tree.layout.size(ofFile: $0)) }
    }

    /// Bytes that the disk holds for these files, without those that can be moved.
    var restByteCount: UInt64 {
        var byteCount: UInt64 = 0
        for file in rest.subtracting(unchanged.map(\.older)) {
            guard let status = try? status(of: file) else { continue }
            byteCount += UInt64(clamping: status.st_blocks) * 512
        }
        return byteCount
    }

    /// Finds the files that the wanted version has unchanged, and reads what may be there of them: only what is certain
    /// goes with them.
    ///
    /// - Parameters:
    ///   - wanted: the wanted version.
    ///   - isLacking: whether nothing is there of a file yet.
    ///   - isCancelled: whether nobody waits for it any more. It is asked before each chunk that has to be read.
    /// - Throws: `cancelled`; `busy`, `writeFailed`, ...: the disk does not answer.
    func findUnchanged(
        in wanted: DocumentTree, where isLacking: (Int) -> Bool, unless isCancelled: () -> Bool
    ) throws(DocumentError) {
        guard destination.movesBetweenFolders else { return }
        var numbers: [[UInt8]: Int] = [:]
        for file in rest { numbers[tree.entry(ofFile: file).path.bytes] = file }
        for file in 0..<wanted.layout.fileCount {
            let entry = wanted.entry(ofFile: file)
            guard
                let older = numbers[entry.path.bytes], let version = entry.file?.version, version != .none,
                let found = tree.entry(ofFile: older).file, found.version == version, found.size == entry.file?.size,
                isLacking(file), try isWhole(older)
            else { continue }
            unchanged.append(UnchangedFile(file: file, older: older))
        }
        try compare(unless: isCancelled)
        unchanged.removeAll { !there.containsAny(tree.layout.chunks(ofFile: $0.older)) }
    }

    /// Calls `body` with the chunks that are there of the unchanged files, by their numbers in the wanted version. A
    /// chunk may come several times.
    func forEachUnchangedChunk(
        in layout: ChunkLayout, _ body: (UInt64, ChunkChecksum) throws(Errno) -> Void
    ) throws(Errno) {
        var files: [Int: Int] = [:]
        for file in unchanged { files[file.older] = file.file }
        try journal.forEachChunk { (chunk, checksum) throws(Errno) in
            guard there.contains(chunk) else { return }
            let older = tree.layout.place(of: chunk).file
            guard let file = files[older] else { return }
            let offset = chunk - tree.layout.chunks(ofFile: older).lowerBound
            try body(layout.chunks(ofFile: file).lowerBound + offset, checksum)
        }
    }

    /// Moves a file to a name in another folder.
    func move(_ file: UnchangedFile, to name: some Collection<UInt8>, in other: borrowing OwnedDescriptor) throws(Errno)
    {
        let path = tree.entry(ofFile: file.older).path
        try SystemCalls.rename(path.name, in: try openParent(of: path).folder, to: name, in: other)
        rest.remove(file.older)
    }

    /// Takes note that the file system is about to be synchronised. If ``endSynchronisation()`` does not follow,
    /// everything is read again the next time.
    func beginSynchronisation() { _ = journal.attempt(journal.entryCount) }

    /// That went well.
    func endSynchronisation() {
        journal.endAttempt()
        // If that cannot be written, all is read again the next time.
        try? journal.flush()
    }

    /// Whether a file is this user's own, has its size and no second name.
    private func isWhole(_ file: Int) throws(DocumentError) -> Bool {
        do throws(Errno) {
            try destination.requireAnswer(to: .file)
            let status = try status(of: file)
            return status.st_size == off_t(tree.layout.size(ofFile: file))
                && (try? SystemCalls.requireOwn(status)) != nil
        } catch .noSuchFileOrDirectory, .notDirectory, .tooManySymbolicLinkLevels, .improperLink {
            return false
        } catch {
            throw DocumentError(creatingFailed: error, tree.label, in: destination.path)
        }
    }

    /// Reads the unsure chunks of unchanged files from the disk.
    private func compare(unless isCancelled: () -> Bool) throws(DocumentError) {
        guard !unsure.isEmpty else { return }
        let files = Set(unchanged.map(\.older))
        let room = UnsafeMutableRawBufferPointer.allocate(byteCount: ChunkLayout.chunkSize, alignment: 4096)
        defer { room.deallocate() }
        for (chunk, checksum) in unsure where !there.contains(chunk) {
            let place = tree.layout.place(of: chunk)
            guard files.contains(place.file) else { continue }
            if isCancelled() { throw DocumentError(.cancelled, tree.label.description) }
            if try holds(place, checksum, room) { there.insert(chunk) }
        }
    }

    /// Whether a chunk is on the disk: not if it cannot be read.
    private func holds(
        _ place: ChunkLayout.Place, _ checksum: ChunkChecksum, _ room: UnsafeMutableRawBufferPointer
    ) throws(DocumentError) -> Bool {
        let bytes = UnsafeMutableRawBufferPointer(rebasing: room[..<place.size])
        let file: OwnedDescriptor
        do throws(Errno) {
            try destination.requireAnswer(to: .content)
            let path = tree.entry(ofFile: place.file).path
            let flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK
            file = try SystemCalls.open(path.name, beneath: try openParent(of: path).folder, flags)
        } catch {
            throw DocumentError(creatingFailed: error, tree.label, in: destination.path)
        }
        SystemCalls.leaveCache(place.range, of: file)
        let count = try? SystemCalls.read(file, into: bytes, at: place.offset)
        return count == place.size && ChunkChecksum(of: UnsafeRawBufferPointer(bytes)) == checksum
    }

    private func status(of file: Int) throws(Errno) -> stat {
        let path = tree.entry(ofFile: file).path
        return try SystemCalls.status(ofName: path.name, in: try openParent(of: path).folder)
    }

    /// The folder that a file is in, which this user can change; the last one stays open.
    private func openParent(of file: EntryPath) throws(Errno) -> OpenParent {
        let path = file.parent
        if let parent, parent.path == path { return parent }
        let opened = OpenParent(path, try open(path))
        try SystemCalls.restoreAccess(to: opened.folder)
        parent = opened
        return opened
    }

    private func open(_ path: EntryPath) throws(Errno) -> OwnedDescriptor {
        if path.isRoot { return try SystemCalls.openFolder([UInt8(ascii: ".")], within: folder.descriptor) }
        do throws(Errno) {
            return try SystemCalls.openFolder(path.bytes, within: folder.descriptor)
        } catch .permissionDenied {
            return try SystemCalls.openOwnFolder(path.name, within: try open(path.parent))
        }
    }
}
