// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import CLinux
import SystemPackage

/// How one file of a part is written: past the page cache where that pays (`O_DIRECT`), and through it otherwise.
///
/// The page cache costs a copy of every byte, the making of pages, and their way to the disk behind the back of who
/// writes. Measured for 1 GiB in chunks: 0.5 s of processor through the cache, 0.04 s past it, and nothing is left for
/// the last `fsync` to do but the file's metadata and the disk's own cache, for which it still has to be called.
///
/// Only chunks that are whole go past the cache, and only in files of ``directSize`` or more: a smaller document is
/// looked at as soon as it has come, and is still in memory then. Everything else (a file's last chunk, a file with
/// holes, a file system that takes no direct writes or does not say so) goes through the cache as ever. One descriptor
/// does both: the flag of its opening is changed where need be, which is twice for a file. Who reads the same bytes
/// later, by whatever descriptor, reads what was written: the kernel writes out and drops what the page cache has of a
/// range before and after a direct write to it (`generic_file_direct_write`, `iomap_dio_rw`). What open(2) warns of, a
/// direct and a cached access to the same bytes at the same time, does not happen: one thread writes to a part, a chunk
/// is read only when it is verified, and nobody maps a part into memory.
struct PartOutput {
    /// Files from this size on are written past the page cache: 32 MiB.
    static let directSize: UInt64 = 32 << 20
    /// The alignment of memory for direct writes: a page, which is all that any file system asks.
    static let alignment = 4096
    /// Bytes written through the page cache between two pushes towards the disk: 32 MiB. Measured with 1 GiB: the last
    /// `fsync` falls from 240 to 35 ms and the whole write is a third faster; 8 MiB was no better alone and slower on a
    /// busy machine.
    static let writebackInterval: UInt64 = 32 << 20

    /// The alignment that the file system asks of direct writes; nil if it takes none.
    private var direct: Int?
    /// Whether the descriptor's opening has the flag.
    private(set) var isDirect = false
    private var writebackStart: UInt64 = 0

    /// For a file that will have so many bytes.
    init(of file: borrowing OwnedDescriptor, size: UInt64) {
        let number = file.rawValue
        self.init(alignment: size >= Self.directSize ? Int(baton_direct_alignment(number)) : 0)
    }

    /// For a file of which it is known what direct writes have to be multiples of; 0 for one that takes none.
    init(alignment: Int) {
        direct = alignment > 0 && Self.alignment.isMultiple(of: alignment) ? alignment : nil
    }

    /// Whether it pays to have a chunk whole, in memory that is aligned, before it is written.
    var takesWholeChunks: Bool { direct != nil }

    /// Writes all bytes at an offset.
    mutating func write(
        _ bytes: UnsafeRawBufferPointer, to file: borrowing OwnedDescriptor, at offset: UInt64
    ) throws(Errno) {
        if isAligned(bytes, at: offset), setDirect(true, file) {
            do throws(Errno) {
                return try SystemCalls.write(bytes, to: file, at: offset)
            } catch {
                // A layer below the file system may ask for more, or a short write left an odd rest.
                guard error == .invalidArgument else { throw error }
                direct = nil
            }
        }
        useCache(of: file)
        try SystemCalls.write(bytes, to: file, at: offset)
        startWriteback(of: file, to: offset + UInt64(bytes.count))
    }

    /// Has the descriptor read and write bytes of any place and number from now on.
    mutating func useCache(of file: borrowing OwnedDescriptor) {
        guard isDirect else { return }
        _ = setDirect(false, file)
    }

    /// Whether bytes are whole chunks where direct writes can begin and end. Smaller ones gain nothing by it.
    private func isAligned(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) -> Bool {
        guard let direct, !bytes.isEmpty, bytes.count.isMultiple(of: ChunkLayout.chunkSize) else { return false }
        return UInt(bitPattern: bytes.baseAddress).isMultiple(of: UInt(direct)) && offset.isMultiple(of: UInt64(direct))
    }

    /// - Returns: whether the flag is what was asked for.
    private mutating func setDirect(_ wanted: Bool, _ file: borrowing OwnedDescriptor) -> Bool {
        guard isDirect != wanted else { return true }
        let number = file.rawValue
        guard (try? SystemCalls.kernel({ baton_set_direct(number, wanted ? 1 : 0) })) != nil else {
            direct = nil
            return false
        }
        isDirect = wanted
        return true
    }

    /// Now and then starts to move what was written to the disk.
    private mutating func startWriteback(of file: borrowing OwnedDescriptor, to end: UInt64) {
        guard end >= writebackStart + Self.writebackInterval else { return }
        // Advice: where it is refused, synchronising does all of it.
        _ = baton_start_writeback(file.rawValue, Int64(writebackStart), Int64(end - writebackStart))
        writebackStart = end
    }
}

/// Gathers the content of a chunk that comes in pieces, in memory that direct writes take.
///
/// Made when first needed, 1 MiB. A chunk that comes whole, where direct writes can begin, is left where it is.
struct WholeChunk: ~Copyable {
    private var room: UnsafeMutableRawBufferPointer?

    deinit {
        room?.deallocate()
    }

    /// Takes the next piece of a chunk of ``ChunkLayout/chunkSize``. The first one begins anew.
    ///
    /// - Returns: all of the chunk's content once it is there, on loan until the next call; nil before.
    mutating func add(_ piece: UnsafeRawBufferPointer, at offset: Int) -> UnsafeRawBufferPointer? {
        let isAligned = UInt(bitPattern: piece.baseAddress).isMultiple(of: UInt(PartOutput.alignment))
        if piece.count == ChunkLayout.chunkSize, isAligned { return piece }
        let room =
            self.room
            ?? UnsafeMutableRawBufferPointer.allocate(
                byteCount: ChunkLayout.chunkSize, alignment: PartOutput.alignment)
        self.room = room
        UnsafeMutableRawBufferPointer(rebasing: room[offset..<offset + piece.count]).copyMemory(from: piece)
        return offset + piece.count == room.count ? UnsafeRawBufferPointer(room) : nil
    }
}
