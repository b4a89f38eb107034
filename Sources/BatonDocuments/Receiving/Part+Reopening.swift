// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import Glibc
import SystemPackage

/// Extraneous entries of a part: an earlier transfer left them, or somebody else put them there.
extension Part {
    /// Removes extraneous entries, those of another kind than in the document, and all links, which are made last.
    /// Gives the owner access to the others, if the earlier transfer has set their final permissions.
    ///
    /// A file goes as well that has a second name, which a snapshot or a deduplicator may have given it: it cannot be
    /// written to, and what the other name leads to stays.
    func removeExtraneous() throws(DocumentError) {
        var (next, subject) = (1, EntryPath.root)
        do throws(Errno) {
            try removeExtraneous(in: root.descriptor, at: .root, &next, &subject)
        } catch {
            throw failure(error, subject)
        }
    }

    /// - Parameters:
    ///   - next: the entry that comes next in the manifest: of this folder or after it.
    ///   - subject: what an error is about.
    private func removeExtraneous(
        in folder: borrowing OwnedDescriptor, at path: EntryPath, _ next: inout Int, _ subject: inout EntryPath
    ) throws(Errno) {
        var found = Set(try SystemCalls.names(in: folder, atLeast: FolderRemoval.nameLimit))
        while next < tree.entryCount {
            let entry = tree[next]
            guard entry.path.parent == path else { break }
            next += 1
            subject = entry.path
            let name = Array(entry.path.name)
            guard found.contains(name), try isKind(of: entry, name, in: folder) else {
                // The entries of a missing folder are missing as well.
                let prefix = entry.path.bytes + [UInt8(ascii: "/")]
                while next < tree.entryCount, tree[next].path.bytes.starts(with: prefix) { next += 1 }
                continue
            }
            found.remove(name)
            guard case .folder = entry.kind else { continue }
            let child = try SystemCalls.openOwnFolder(name, within: folder)
            try removeExtraneous(in: child, at: entry.path, &next, &subject)
        }
        subject = path
        for name in found { try FolderRemoval.remove(name, from: folder) }
    }

    /// Whether a name is of the kind of an entry, and a file nobody else's. It is made writable for its owner.
    private func isKind(
        of entry: DocumentEntry, _ name: [UInt8], in folder: borrowing OwnedDescriptor
    ) throws(Errno) -> Bool {
        let status = try SystemCalls.status(ofName: name, in: folder)
        switch entry.kind {
        case .file:
            let isOurs = (try? SystemCalls.requireOwn(status)) != nil
            if isOurs, status.st_mode & 0o600 != 0o600 { try SystemCalls.restoreAccess(name, in: folder) }
            return isOurs
        case .folder: return status.st_mode & S_IFMT == S_IFDIR
        case .link: return false
        }
    }

    /// Those of these chunks that the disk has. They are read past the page cache as far as it can be left. The files
    /// stay as they are: one that somebody has cut does not get its size back here.
    ///
    /// - Parameter isCancelled: is asked before each chunk, because a large document can take minutes.
    func present(
        _ chunks: [TransferJournal.Chunk], unless isCancelled: () -> Bool
    ) throws(DocumentError) -> [TransferJournal.Chunk] {
        guard !chunks.isEmpty else { return [] }
        let room = UnsafeMutableRawBufferPointer.allocate(
            byteCount: ChunkLayout.chunkSize, alignment: PartOutput.alignment)
        defer { room.deallocate() }
        var (there, seen) = ([TransferJournal.Chunk](), ChunkSet())
        var opened: (index: Int, entry: OpenEntry?)?
        for chunk in chunks where !seen.contains(chunk.number) {
            if isCancelled() { throw DocumentError(.cancelled, tree.label.description) }
            let place = tree.layout.place(of: chunk.number)
            if opened?.index != place.file { opened = (place.file, try openToRead(place.file)) }
            guard let entry = opened?.entry, entry.holds(place.range, chunk.checksum, room) else { continue }
            seen.insert(chunk.number)
            there.append(chunk)
        }
        return there
    }

    /// - Returns: nil where the file is not there, or is none of ours.
    private func openToRead(_ index: Int) throws(DocumentError) -> OpenEntry? {
        let path = tree.entry(ofFile: index).path
        if path.isRoot { return root }
        do throws(Errno) {
            let flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK
            let opened = OpenEntry(path, try SystemCalls.open(path.bytes, beneath: root.descriptor, flags))
            try SystemCalls.requireOwn(try SystemCalls.status(of: opened.descriptor))
            return opened
        } catch {
            guard error.saysAbsent || error == .illegalSeek || error == .tooManyLinks else {
                throw failure(error, path)
            }
            return nil
        }
    }
}

extension OpenEntry {
    /// Whether a range of it has this checksum on the disk. Bytes that cannot be read do not match.
    fileprivate func holds(
        _ range: Range<UInt64>, _ checksum: ChunkChecksum, _ room: UnsafeMutableRawBufferPointer
    ) -> Bool {
        SystemCalls.leaveCache(range, of: descriptor)
        let bytes = UnsafeMutableRawBufferPointer(rebasing: room[..<range.count])
        let count = try? SystemCalls.read(descriptor, into: bytes, at: range.lowerBound)
        return count == range.count && ChunkChecksum(of: UnsafeRawBufferPointer(bytes)) == checksum
    }
}

/// Files with holes.
extension Part {
    /// Blocks of zeros that are not written: 4 KiB, of which most file systems make holes.
    private static let holeSize = 4 << 10

    /// Writes what is not zero, and leaves holes for what is.
    func writeSparsely(
        _ bytes: UnsafeRawBufferPointer, to place: ChunkLayout.Place, from offset: Int
    ) throws(DocumentError) {
        // An earlier transfer may have left other bytes there.
        if offset == 0 { try clear(place.range, ofFile: place.file) }
        func write(_ run: Range<Int>) throws(DocumentError) {
            guard !run.isEmpty else { return }
            let piece = UnsafeRawBufferPointer(rebasing: bytes[run])
            try self.write(piece, toFile: place.file, at: place.offset + UInt64(offset + run.lowerBound))
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

extension UnsafeRawBufferPointer {
    /// Whether every byte is zero.
    fileprivate var isZero: Bool {
        guard let start = baseAddress, count > 0 else { return true }
        // Each byte equals the one before it, and the first is zero.
        return self[0] == 0 && memcmp(start, start + 1, count - 1) == 0
    }
}
