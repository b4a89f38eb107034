// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import CLinux
import Glibc
import SystemPackage

/// A part folder that the ledger remembers.
final class RecordedPartFolder: Part {
    /// Where it is, and who remembers it.
    let record: PartFileRecord

    private let folder: PartFolder
    private let ledger: PartFileLedger
    private var isOver = false

    /// Makes the folder.
    ///
    /// - Throws: what making it throws. Nothing is left behind then, or its record as well, so that the next start
    ///   removes it.
    init(creating tree: DocumentTree, withoutRoomFor others: Set<Int> = [], at place: PartPlace) throws(DocumentError) {
        var record = PartFileRecord(of: tree.label, in: place.folder)
        // First without an inode, so that no moment exists in which the folder has no record.
        try place.ledger.enter(record)
        do throws(DocumentError) {
            folder = try PartFolder(
                creating: tree, named: record.name, in: place.folder, withoutRoomFor: others, umask: place.umask,
                naming: place.naming)
            record.inode = folder.inode
            try place.ledger.enter(record)
        } catch {
            // Only an empty one goes, and this needs no descriptor, of which there may be none.
            do throws(Errno) {
                try SystemCalls.remove(record.name, from: place.folder.file, isFolder: true)
                place.ledger.remove(record)
            } catch .noSuchFileOrDirectory {
                place.ledger.remove(record)
            } catch {
                place.ledger.removePart(of: record)
            }
            throw error
        }
        self.record = record
        ledger = place.ledger
    }

    /// Opens the folder of an earlier transfer, which the caller has taken from the ledger.
    ///
    /// - Throws: `incomplete` where it is not what was recorded; the ledger's record is the caller's then.
    init(reopening record: PartFileRecord, _ tree: DocumentTree, at place: PartPlace) throws(DocumentError) {
        folder = try PartFolder(
            reopening: tree, named: record.name, inode: record.inode, in: place.folder, umask: place.umask,
            naming: place.naming)
        self.record = record
        ledger = place.ledger
    }

    deinit {
        discard()
    }

    func write(_ bytes: UnsafeRawBufferPointer, toFile file: Int, at offset: UInt64) throws(DocumentError) {
        try folder.write(bytes, toFile: file, at: offset)
    }

    func takesWholeChunks(ofFile file: Int) throws(DocumentError) -> Bool {
        try folder.takesWholeChunks(ofFile: file)
    }

    func clear(_ range: Range<UInt64>, ofFile file: Int) throws(DocumentError) {
        try folder.clear(range, ofFile: file)
    }

    func read(file: Int, at offset: UInt64, into bytes: UnsafeMutableRawBufferPointer) throws(DocumentError) -> Int {
        try folder.read(file: file, at: offset, into: bytes)
    }

    func giveBack(_ range: Range<UInt64>, ofFile file: Int) { folder.giveBack(range, ofFile: file) }

    func heldByteCount(ofFile file: Int) -> UInt64 { folder.heldByteCount(ofFile: file) }

    func leaveCache(_ range: Range<UInt64>, ofFile file: Int) { folder.leaveCache(range, ofFile: file) }

    func isThere(file: Int) throws(DocumentError) -> Bool { try folder.isThere(file: file) }

    /// See ``PartFolder/remove(file:)``.
    func remove(file: Int) throws(DocumentError) { try folder.remove(file: file) }

    /// See ``PartFolder/take(_:from:)``.
    func take(_ file: OlderFolder.UnchangedFile, from older: OlderFolder) throws(DocumentError) -> Bool {
        try folder.take(file, from: older)
    }

    func prepare(unless isCancelled: () -> Bool) throws(DocumentError) { try folder.prepare(unless: isCancelled) }

    func synchronize() throws(DocumentError) { try folder.synchronize() }

    func descriptorToSynchronize() throws(DocumentError) -> DescriptorToSynchronize {
        DescriptorToSynchronize(file: try folder.duplicateRoot(), isFolder: true)
    }

    func place() throws(DocumentError) -> FilePath {
        let path = try folder.place()
        isOver = true
        ledger.remove(record)
        return path
    }

    func discard() {
        guard !isOver else { return }
        isOver = true
        // What could not be removed is tried again at the next start.
        if folder.discard() { ledger.remove(record) } else { ledger.release(record) }
    }

    @discardableResult
    func keep() -> Bool {
        guard !isOver else { return false }
        isOver = true
        guard !folder.isLost else {
            ledger.remove(record)
            return false
        }
        ledger.release(record)
        return true
    }
}
