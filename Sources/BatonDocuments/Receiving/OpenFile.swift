// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import CLinux
import Glibc
import SystemPackage

/// A file or folder that is held open.
final class OpenEntry: Sendable {
    /// Its path in the document, if it is of one.
    let path: EntryPath
    let descriptor: OwnedDescriptor

    init(_ path: EntryPath, _ descriptor: consuming OwnedDescriptor) {
        self.path = path
        self.descriptor = descriptor
    }
}

/// The file of a part that is being written: past the page cache (`O_DIRECT`) where that pays, and through it
/// otherwise.
///
/// The page cache costs a copy of every byte and the making of pages. For 1 GiB in chunks the processor takes 0.5 s
/// with the cache and 0.04 s without, and the last `fsync` has nearly nothing left to do.
///
/// Only whole chunks go past the cache, in files of ``directSize`` or more without holes: a smaller document is looked
/// at at once, and is still in memory then. One descriptor does both, and its flag is changed, mostly twice for a file.
/// The kernel keeps the cache and direct writes coherent (`generic_file_direct_write`, `iomap_dio_rw`). open(2) warns
/// of a direct and a cached access at the same time. That does not happen here: one thread writes, and nobody maps a
/// part into memory.
final class OpenFile {
    /// Files from this size on are written past the page cache: 32 MiB.
    static let directSize: UInt64 = 32 << 20
    /// The alignment of memory for direct writes: a page, which is all that any file system asks.
    static let alignment = 4096
    /// Bytes written through the page cache between two pushes towards the disk: 32 MiB. Measured with 1 GiB: the last
    /// `fsync` falls from 240 to 35 ms and the whole write is a third faster; 8 MiB was no better alone and slower on a
    /// busy machine.
    private static let writebackInterval: UInt64 = 32 << 20
    /// Files from this size on are on their way to the disk when they are closed, so that a checkpoint has little left
    /// to wait for: 256 KiB.
    private static let writebackSize: UInt64 = 256 << 10

    /// Its number in the layout.
    let index: Int
    let entry: OpenEntry

    private let size: UInt64
    private let isSparse: Bool
    /// The alignment that the file system asks of direct writes; nil if it takes none.
    private(set) var direct: Int?
    /// Whether the descriptor's opening has the flag.
    private(set) var isDirect = false
    private var writebackStart: UInt64 = 0

    convenience init(_ index: Int, _ entry: OpenEntry, of tree: DocumentTree) {
        let (size, isSparse) = (tree.layout.size(ofFile: index), tree.isSparse(file: index))
        let isLarge = size >= Self.directSize && !isSparse
        let alignment = isLarge ? Int(baton_direct_alignment(entry.descriptor.rawValue)) : 0
        self.init(index, entry, size: size, isSparse: isSparse, alignment: alignment)
    }

    /// - Parameter alignment: what direct writes have to be multiples of; 0 if there are to be none.
    init(_ index: Int, _ entry: OpenEntry, size: UInt64, isSparse: Bool = false, alignment: Int) {
        self.index = index
        self.entry = entry
        self.size = size
        self.isSparse = isSparse
        direct = alignment > 0 && Self.alignment.isMultiple(of: alignment) ? alignment : nil
    }

    deinit {
        guard direct == nil, size >= Self.writebackSize else { return }
        _ = baton_start_writeback(entry.descriptor.rawValue, 0, 0)
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

    /// Writes all bytes at an offset.
    func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(Errno) {
        if isAligned(bytes, at: offset), setDirect(true) {
            do throws(Errno) {
                return try SystemCalls.write(bytes, to: entry.descriptor, at: offset)
            } catch {
                // A layer below the file system may ask for more, or a short write left an odd rest.
                guard error == .invalidArgument else { throw error }
                direct = nil
            }
        }
        _ = setDirect(false)
        try SystemCalls.write(bytes, to: entry.descriptor, at: offset)
        let end = offset + UInt64(bytes.count)
        guard end >= writebackStart + Self.writebackInterval else { return }
        // Advice: where it is refused, synchronising does all of it.
        _ = baton_start_writeback(entry.descriptor.rawValue, Int64(writebackStart), Int64(end - writebackStart))
        writebackStart = end
    }

    /// Whether bytes are whole chunks where direct writes can begin and end. Smaller ones gain nothing by it.
    private func isAligned(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) -> Bool {
        guard let direct, !bytes.isEmpty, bytes.count.isMultiple(of: ChunkLayout.chunkSize) else { return false }
        return UInt(bitPattern: bytes.baseAddress).isMultiple(of: UInt(direct)) && offset.isMultiple(of: UInt64(direct))
    }

    /// - Returns: whether the flag is what was asked for.
    private func setDirect(_ wanted: Bool) -> Bool {
        guard isDirect != wanted else { return true }
        let number = entry.descriptor.rawValue
        guard (try? SystemCalls.kernel({ baton_set_direct(number, wanted ? 1 : 0) })) != nil else {
            direct = nil
            return false
        }
        isDirect = wanted
        return true
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
