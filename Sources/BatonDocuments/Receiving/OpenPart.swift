// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import CLinux
import Glibc
import SystemPackage

/// The folder of a part folder that was written to last, held open for the next file in it.
final class OpenParent {
    let path: EntryPath
    let folder: OwnedDescriptor

    init(_ path: EntryPath, _ folder: consuming OwnedDescriptor) {
        self.path = path
        self.folder = folder
    }
}

/// The file of a part folder that is being written.
final class OpenPart {
    /// Files up to this size are not reserved: their bytes come at once.
    private static let unreservedSize = UInt64(ChunkLayout.chunkSize)

    let index: Int
    let entry: DocumentEntry
    let file: OwnedDescriptor

    private let size: UInt64
    private let isSparse: Bool
    /// Whether it was made just now.
    private let isNew: Bool
    private var output: PartOutput

    /// Opens a file, or makes it.
    ///
    /// - Parameter isNew: it cannot be there yet.
    /// - Throws: `fileExists` for one that is there all the same, `illegalSeek` and `tooManyLinks` for one that is none
    ///   of ours.
    init(
        _ index: Int, _ entry: DocumentEntry, in parent: OpenParent, isNew: Bool, _ umask: mode_t
    ) throws(Errno) {
        self.index = index
        self.entry = entry
        self.isNew = isNew
        size = entry.file?.size ?? 0
        isSparse = entry.file?.isSparse ?? false
        // No other user can reach it in the part folder: most files then have their permissions from the start.
        let mode = entry.mode(allowedBy: umask) | 0o600
        let flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | (isNew ? O_EXCL : 0)
        file = try SystemCalls.open(entry.path.name, beneath: parent.folder, flags, mode: mode)
        output = PartOutput(of: file, size: isSparse ? 0 : size)
        guard !isNew else { return }
        try SystemCalls.requireOwn(try SystemCalls.status(of: file))
    }

    /// Gives it its size, unless the next `count` bytes are all of it, and reserves the room where it has no holes.
    func prepare(toHold count: Int) throws(Errno) {
        if isNew, UInt64(count) == size { return }
        let number = file.rawValue
        let status = try SystemCalls.status(of: file)
        if status.st_size != off_t(size) { try SystemCalls.call { ftruncate(number, off_t(size)) } }
        guard isNew, !isSparse, size > Self.unreservedSize else { return }
        do {
            try SystemCalls.kernel { baton_reserve(number, 0, Int64(size)) }
        } catch .notSupportedOnSocket, .notSupported, .noFunction {
            return
        }
    }

    /// See ``PartOutput/takesWholeChunks``.
    var takesWholeChunks: Bool { output.takesWholeChunks }

    /// Writes all bytes at an offset.
    func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(Errno) {
        try output.write(bytes, to: file, at: offset)
    }

    /// Reads at an offset until the buffer is full or the file ends.
    func read(into bytes: UnsafeMutableRawBufferPointer, at offset: UInt64) throws(Errno) -> Int {
        output.useCache(of: file)
        return try SystemCalls.read(file, into: bytes, at: offset)
    }
}

extension EntryPath {
    /// Its last name; none for the document itself.
    var name: ArraySlice<UInt8> {
        guard let slash = bytes.lastIndex(of: UInt8(ascii: "/")) else { return bytes[...] }
        return bytes[(slash + 1)...]
    }
}

extension SystemCalls {
    /// Makes sure that a file is one that this user has made for the purpose: it has no second name elsewhere.
    ///
    /// - Throws: `illegalSeek` for what is no file, `tooManyLinks`.
    static func requireOwn(_ status: stat) throws(Errno) {
        guard status.st_mode & S_IFMT == S_IFREG else { throw .illegalSeek }
        guard status.st_uid == geteuid(), status.st_nlink == 1 else { throw .tooManyLinks }
    }

    /// Opens the folder of a path, and makes it and those that it is in, for this user alone, if they are missing. The
    /// kernel finds it beneath the root and through no link, whatever the path says.
    static func openOrMakeFolder(
        _ path: EntryPath, beneath root: borrowing OwnedDescriptor
    ) throws(Errno) -> OwnedDescriptor {
        if path.isRoot { return try openFolder([UInt8(ascii: ".")], within: root) }
        let flags = O_RDONLY | O_DIRECTORY
        do {
            return try open(path.bytes, beneath: root, flags)
        } catch .noSuchFileOrDirectory {
            let parent = try openOrMakeFolder(path.parent, beneath: root)
            do {
                try makeFolder(path.name, in: parent, mode: 0o700)
            } catch .fileExists {}
            return try open(path.name, beneath: parent, flags)
        }
    }

    /// Gives back the room of bytes that nobody needs, where the file system can.
    static func giveBack(_ range: Range<UInt64>, of file: borrowing OwnedDescriptor) {
        let number = file.rawValue
        _ = try? kernel { baton_punch_hole(number, Int64(range.lowerBound), Int64(range.count)) }
    }

    /// Moves a name from one folder to another, in the place of what has it there.
    static func rename(
        _ name: some Collection<UInt8>, in folder: borrowing OwnedDescriptor, to other: some Collection<UInt8>,
        in destination: borrowing OwnedDescriptor
    ) throws(Errno) {
        let (from, to) = (folder.rawValue, destination.rawValue)
        try withName(name) { (name) throws(Errno) in
            try withName(other) { (other) throws(Errno) in
                try call { renameat(from, name, to, other) }
            }
        }
    }

    /// Makes bytes of a file zeros that lie within its size: a hole where the file system has holes.
    static func clear(_ range: Range<UInt64>, of file: borrowing OwnedDescriptor) throws(Errno) {
        let number = file.rawValue
        guard !range.isEmpty else { return }
        do {
            try kernel { baton_punch_hole(number, Int64(range.lowerBound), Int64(range.upperBound - range.lowerBound)) }
        } catch .notSupportedOnSocket, .notSupported, .noFunction {
            let zeros = [UInt8](repeating: 0, count: 64 << 10)
            var next = range.lowerBound
            while next < range.upperBound {
                let count = min(zeros.count, Int(clamping: range.upperBound - next))
                try zeros.withUnsafeBufferPointer { (zeros) throws(Errno) in
                    try write(
                        UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(zeros)[..<count]), to: file, at: next)
                }
                next += UInt64(count)
            }
        }
    }
}
