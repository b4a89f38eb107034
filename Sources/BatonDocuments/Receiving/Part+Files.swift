// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import Glibc
import SystemPackage

/// The files of a part.
extension Part {
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
            if !isMade || UInt64(count) != tree.layout.size(ofFile: index) { try file.setSize(isReserving: isMade) }
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
