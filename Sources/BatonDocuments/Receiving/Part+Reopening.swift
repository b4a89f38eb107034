// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import Glibc
import SystemPackage

extension Part {
    /// Gives the owner access to what is there, if the earlier transfer has set its final permissions.
    ///
    /// - Returns: false where something else has the name of a file or folder. A file that has a second name, which a
    ///   snapshot or a deduplicator may have given it, is something else as well: it cannot be written to.
    func restoreAccess() throws(DocumentError) -> Bool {
        for index in 1..<max(1, tree.entryCount) {
            let entry = tree[index]
            do throws(Errno) {
                switch entry.kind {
                case .file:
                    let status = try SystemCalls.restoreAccess(entry.path.bytes, in: root.descriptor)
                    guard (try? SystemCalls.requireOwn(status)) != nil else { return false }
                case .folder:
                    let status = try SystemCalls.restoreAccess(entry.path.bytes, in: root.descriptor)
                    let own = try SystemCalls.status(of: root.descriptor)
                    guard status.st_mode & S_IFMT == S_IFDIR, status.st_dev == own.st_dev else { return false }
                case .link: continue
                }
            } catch {
                guard error.saysAbsent else { throw failure(error, entry.path) }
                // The entries of a missing folder are missing as well.
                guard error == .noSuchFileOrDirectory else { return false }
            }
        }
        return true
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
            byteCount: ChunkLayout.chunkSize, alignment: OpenFile.alignment)
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
    func writeSparsely(_ bytes: UnsafeRawBufferPointer, to place: ChunkLayout.Place) throws(DocumentError) {
        // An earlier transfer may have left other bytes there.
        try clear(place.range, ofFile: place.file)
        func write(_ run: Range<Int>) throws(DocumentError) {
            guard !run.isEmpty else { return }
            let piece = UnsafeRawBufferPointer(rebasing: bytes[run])
            try self.write(piece, toFile: place.file, at: place.offset + UInt64(run.lowerBound))
        }
        var start = 0
        for block in stride(from: 0, to: bytes.count, by: Self.holeSize) {
            let end = min(bytes.count, block + Self.holeSize)
            guard UnsafeRawBufferPointer(rebasing: bytes[block..<end]).isZero else { continue }
            try write(start..<block)
            start = end
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
