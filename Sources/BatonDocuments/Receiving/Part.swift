// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import CLinux
import SystemPackage

/// What a document is written to until it is whole: a hidden file or folder beside its destination.
///
/// Belongs to one thread; every call blocks on the disk. It is over with ``place()``, ``discard()`` or ``keep()``;
/// dropped before, it is discarded.
protocol Part: AnyObject {
    /// Where it is, and who remembers it.
    var record: PartFileRecord { get }

    /// Whether room for all of it was reserved, so that a disk that is full takes it all the same.
    var hasReservedRoom: Bool { get }

    /// Writes bytes of a file of the document.
    func write(_ bytes: UnsafeRawBufferPointer, toFile file: Int, at offset: UInt64) throws(DocumentError)

    /// Whether it pays to have chunks of a file whole, in memory that is aligned, before they are written.
    func takesWholeChunks(ofFile file: Int) throws(DocumentError) -> Bool

    /// Makes these bytes of a file zeros, and a hole where the file system has holes.
    func clear(_ range: Range<UInt64>, ofFile file: Int) throws(DocumentError)

    /// Reads bytes of a file as they are now, fewer where it ends before.
    func read(file: Int, at offset: UInt64, into bytes: UnsafeMutableRawBufferPointer) throws(DocumentError) -> Int

    /// Gives back the room that was reserved for bytes that have not come; it stays where the file system cannot.
    func giveBack(_ range: Range<UInt64>, ofFile file: Int)

    /// Bytes that the disk holds for a file.
    func heldByteCount(ofFile file: Int) -> UInt64

    /// Has the next read of these bytes come from the disk, as far as they are on their way to it no more.
    func leaveCache(_ range: Range<UInt64>, ofFile file: Int)

    /// Whether a file of which something has come has its size still, and no second name: somebody may have cut or
    /// removed it since.
    ///
    /// - Throws: `writeFailed`, ...: the disk does not answer, and nobody knows.
    func isThere(file: Int) throws(DocumentError) -> Bool

    /// A descriptor of its own, to be synchronised with the disk by somebody else meanwhile.
    func descriptorToSynchronize() throws(DocumentError) -> DescriptorToSynchronize

    /// Gives it all that is no content: permissions, times and links.
    ///
    /// - Parameter isCancelled: is asked before each entry.
    /// - Throws: `cancelled`, `incomplete` where a file is missing or too short, ... The part is still there then.
    func prepare(unless isCancelled: () -> Bool) throws(DocumentError)

    /// Makes durable all that was written.
    ///
    /// - Throws: `destinationFull`, `writeFailed`, ... What was written since it last went well may be gone then,
    ///   although it can still be read and the next call goes well: Linux tells an error of writing back once.
    func synchronize() throws(DocumentError)

    /// Gives what is prepared and durable its name, never in the place of something else.
    ///
    /// - Throws: `destinationExists`, ... The part is still there then.
    func place() throws(DocumentError) -> FilePath

    /// Removes it, unless it is over.
    func discard()

    /// Leaves it where it is, for a transfer that goes on with it; forgets it where somebody has taken it away.
    ///
    /// - Returns: whether it is there.
    @discardableResult
    func keep() -> Bool
}

extension Part {
    var hasReservedRoom: Bool { false }
}

/// A descriptor through which what was written can be made durable.
struct DescriptorToSynchronize: ~Copyable, Sendable {
    let file: OwnedDescriptor
    /// Whether it is of a folder, so that its file system is synchronised as a whole.
    let isFolder: Bool

    func synchronize() throws(Errno) {
        let number = file.rawValue
        if isFolder {
            try SystemCalls.kernel { baton_synchronize_file_system(number) }
        } else {
            try SystemCalls.synchronize(file)
        }
    }
}
