// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import CLinux
import Glibc
import SystemPackage

/// A file or folder of a part that is held open.
final class OpenEntry {
    let path: EntryPath
    let descriptor: OwnedDescriptor

    init(_ path: EntryPath, _ descriptor: consuming OwnedDescriptor) {
        self.path = path
        self.descriptor = descriptor
    }
}

/// The file of a part that is being written.
final class OpenFile {
    /// Files from this size on are on their way to the disk when they are closed, so that a checkpoint has little left
    /// to wait for: 256 KiB.
    private static let writebackSize: UInt64 = 256 << 10

    /// Its number in the layout.
    let index: Int
    let entry: OpenEntry

    private let size: UInt64
    private let isSparse: Bool
    private var output: PartOutput

    init(_ index: Int, _ entry: OpenEntry, of tree: DocumentTree) {
        self.index = index
        self.entry = entry
        size = tree.layout.size(ofFile: index)
        isSparse = tree.isSparse(file: index)
        output = PartOutput(of: entry.descriptor, size: isSparse ? 0 : size)
    }

    /// Gives it its size.
    ///
    /// - Parameter isReserving: whether its room is reserved as well, unless it has holes or the file system cannot.
    func setSize(isReserving: Bool) throws(Errno) {
        let number = entry.descriptor.rawValue
        if isReserving, !isSparse, size > 0 {
            do throws(Errno) {
                try SystemCalls.kernel { baton_reserve(number, 0, Int64(size)) }
            } catch .notSupportedOnSocket, .notSupported, .noFunction {}
        }
        guard try SystemCalls.status(of: entry.descriptor).st_size != off_t(size) else { return }
        try SystemCalls.call { ftruncate(number, off_t(size)) }
    }

    /// See ``PartOutput/takesWholeChunks``.
    var takesWholeChunks: Bool { output.takesWholeChunks }

    /// Writes all bytes at an offset.
    func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(Errno) {
        try output.write(bytes, to: entry.descriptor, at: offset)
    }

    deinit {
        guard !output.takesWholeChunks, size >= Self.writebackSize else { return }
        _ = baton_start_writeback(entry.descriptor.rawValue, 0, 0)
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
        _ name: some Collection<UInt8>, in folder: borrowing OwnedDescriptor, to destination: borrowing OwnedDescriptor
    ) throws(Errno) {
        let (from, to) = (folder.rawValue, destination.rawValue)
        try withName(name) { (name) throws(Errno) in
            try call { renameat(from, name, to, name) }
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
