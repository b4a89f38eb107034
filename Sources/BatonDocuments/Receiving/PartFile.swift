// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import CLinux
import Glibc
import SystemPackage

/// The file that a document of one file is written to until it is whole: hidden, beside its destination, and gone
/// unless it is committed or kept.
///
/// Belongs to the thread that made it. Every call blocks on the disk, `deinit` as well.
final class PartFile: Part {
    private enum State {
        case open
        case over
    }

    /// A part file that was just made, and its record.
    private struct Made: ~Copyable {
        let file: OwnedDescriptor
        let record: PartFileRecord

        consuming func takeFile() -> OwnedDescriptor { file }
    }

    /// The document's name.
    let label: DocumentLabel

    private let folder: DestinationFolder
    private let naming: DocumentNaming
    private let ledger: PartFileLedger
    private let file: OwnedDescriptor
    /// Where it is, and who remembers it.
    let record: PartFileRecord
    /// Not where the document has holes, nor where the file system cannot reserve.
    private(set) var hasReservedRoom = false
    /// The permissions that it arrives with.
    private let mode: mode_t
    private let modified: FileIdentity.Time?
    private var state = State.open
    private var output: PartOutput

    /// Makes the part file and reserves room for it.
    ///
    /// - Parameters:
    ///   - entry: what it is to become.
    ///   - permissions: see ``DocumentEntry/permissions``.
    ///   - place: where it is made.
    /// - Throws: `destinationExists`, `destinationNotWritable`, `destinationFull`, `badName`, `tooLarge`, ... Nothing
    ///   is left behind then.
    convenience init(
        for label: DocumentLabel, _ entry: DocumentEntry.File, modified: FileIdentity.Time? = nil,
        permissions: UInt16? = nil, at place: PartPlace
    ) throws(DocumentError) {
        try place.folder.requireAbsent(label, place.naming)
        let made = try Self.make(label, place.folder, place.ledger)
        let record = made.record
        self.init(label, entry, modified, permissions, place, made.takeFile(), record)
        // From here on `deinit` cleans up, also when this initialiser throws.
        try requireNaming()
        try reserve(entry)
    }

    /// Opens the part file of an earlier transfer, to go on with it. What it has is left alone.
    ///
    /// - Throws: `incomplete` where it is not what was recorded, `destinationFull`, ...; what stands there stays then,
    ///   and the ledger's record is the caller's still.
    convenience init(
        reopening record: PartFileRecord, for label: DocumentLabel, _ entry: DocumentEntry.File,
        modified: FileIdentity.Time? = nil, permissions: UInt16? = nil, at place: PartPlace
    ) throws(DocumentError) {
        try place.folder.requireAbsent(label, place.naming)
        guard
            let file = try place.folder.reopenFile(record.name, inode: record.inode, for: label),
            // It had its size from the start: of one that was cut since, nobody knows what is left.
            (try? SystemCalls.status(of: file).st_size) == off_t(exactly: entry.size)
        else {
            throw DocumentError(.incomplete, label.description)
        }
        self.init(label, entry, modified, permissions, place, file, record)
        do {
            try protect()
            try reserve(entry)
        } catch {
            // It is as good as it was, and not to be discarded.
            state = .over
            throw error
        }
    }

    private init(
        _ label: DocumentLabel, _ entry: DocumentEntry.File, _ modified: FileIdentity.Time?, _ permissions: UInt16?,
        _ place: PartPlace, _ file: consuming OwnedDescriptor, _ record: PartFileRecord
    ) {
        self.label = label
        folder = place.folder
        naming = place.naming
        ledger = place.ledger
        output = PartOutput(of: file, size: entry.isSparse ? 0 : entry.size)
        self.file = file
        self.record = record
        self.modified = modified
        mode = DocumentEntry(path: .root, kind: .file(entry), permissions: permissions).mode(allowedBy: place.umask)
    }

    deinit {
        discard()
    }

    func takesWholeChunks(ofFile _: Int) -> Bool { output.takesWholeChunks }

    func write(_ bytes: UnsafeRawBufferPointer, toFile _: Int, at offset: UInt64) throws(DocumentError) {
        do {
            try output.write(bytes, to: file, at: offset)
        } catch {
            throw DocumentError(writingFailed: error, label)
        }
    }

    func clear(_ range: Range<UInt64>, ofFile _: Int) throws(DocumentError) {
        do {
            try SystemCalls.clear(range, of: file)
        } catch {
            throw DocumentError(writingFailed: error, label)
        }
    }

    func read(
        file _: Int, at offset: UInt64, into bytes: UnsafeMutableRawBufferPointer
    ) throws(DocumentError) -> Int {
        output.useCache(of: file)
        do {
            return try SystemCalls.read(file, into: bytes, at: offset)
        } catch {
            throw DocumentError(.readFailed, label.description, underlyingError: error)
        }
    }

    func giveBack(_ range: Range<UInt64>, ofFile _: Int) { SystemCalls.giveBack(range, of: file) }

    func heldByteCount(ofFile _: Int) -> UInt64 {
        UInt64(clamping: (try? SystemCalls.status(of: file))?.st_blocks ?? 0) * 512
    }

    func leaveCache(_ range: Range<UInt64>, ofFile _: Int) { SystemCalls.leaveCache(range, of: file) }

    /// It was looked at when it was opened, and cannot be exchanged since.
    func isThere(file _: Int) -> Bool { true }

    func descriptorToSynchronize() throws(DocumentError) -> DescriptorToSynchronize {
        // Opened anew: Linux tells an error of writing back once for each opening, and ``synchronize()`` has to hear of
        // it too.
        guard let file = try folder.reopenFile(record.name, inode: record.inode, for: label) else {
            throw DocumentError(.writeFailed, label.description, underlyingError: .staleNFSFileHandle)
        }
        return DescriptorToSynchronize(file: file, isFolder: false)
    }

    func prepare(unless _: () -> Bool) throws(DocumentError) {
        do throws(Errno) {
            try SystemCalls.setMode(mode, of: file)
            if let modified { try SystemCalls.setTime(modified, of: file) }
        } catch {
            throw DocumentError(writingFailed: error, label)
        }
    }

    func synchronize() throws(DocumentError) {
        do {
            try SystemCalls.synchronize(file)
        } catch {
            throw DocumentError(writingFailed: error, label)
        }
    }

    func place() throws(DocumentError) -> FilePath { try place(withLink: false) }

    /// As ``place()``.
    ///
    /// - Parameter withLink: takes the road of file systems that cannot rename without replacing at once.
    func place(withLink: Bool) throws(DocumentError) -> FilePath {
        guard folder.holds(record.name, inode: record.inode) else {
            throw DocumentError(.writeFailed, label.description, underlyingError: .noSuchFileOrDirectory)
        }
        let placed = try folder.rename(record.name, to: label, naming, isFolder: false, withLink: withLink)
        // Somebody who may write to the folder can exchange the part file between a look and the renaming: what stands
        // under the name now has to be what was received.
        guard folder.holds(placed.bytes, inode: record.inode) else {
            throw DocumentError(.writeFailed, label.description, underlyingError: .staleNFSFileHandle)
        }
        state = .over
        do {
            // Before the record goes, which may be on another disk: a power cut can take the name away until then.
            try folder.synchronize()
        } catch {
            // The document is whole and has its name; only a power cut in the next seconds could take the name away.
            // Saying "failed" here would be the greater untruth.
        }
        ledger.remove(record)
        return folder.path(of: placed)
    }

    /// Removes the part file, once. Something else that somebody put under its name stays.
    func discard() {
        guard case .open = state else { return }
        state = .over
        if folder.holds(record.name, inode: record.inode) { folder.remove(record.name) }
        ledger.remove(record)
    }

    @discardableResult
    func keep() -> Bool {
        guard case .open = state else { return false }
        state = .over
        guard !folder.hasLost(record.name, inode: record.inode) else {
            ledger.remove(record)
            return false
        }
        ledger.release(record)
        return true
    }

    /// Takes back the permissions that it arrives with: an earlier attempt may have set those of another version.
    private func protect() throws(DocumentError) {
        do {
            try SystemCalls.setMode(0o600, of: file)
        } catch {
            throw DocumentError(writingFailed: error, label)
        }
    }

    /// Makes sure, before a byte is asked for, that the file system can name a file without replacing another.
    private func requireNaming() throws(DocumentError) {
        guard !folder.isKnownToName else { return }
        let other = PartFileRecord(of: label, in: folder)
        try ledger.enter(other)
        defer { ledger.remove(other) }
        try folder.rename(record.name, toPartFile: other.name, for: label)
        try folder.rename(other.name, toPartFile: record.name, for: label)
    }

    /// Sets the size, and reserves the room unless the document has holes.
    private func reserve(_ entry: DocumentEntry.File) throws(DocumentError) {
        let size = entry.size
        guard size > 0 else { return }
        guard size <= UInt64(Int64.max) else { throw DocumentError(.tooLarge, label.description) }
        let number = file.rawValue
        do throws(Errno) {
            if !entry.isSparse {
                // Asked first: reserving more than there is would fill the disk for everybody before it fails.
                let reserved = UInt64(try SystemCalls.status(of: file).st_blocks) * 512
                try requireRoom(size - min(size, reserved))
                do throws(Errno) {
                    try SystemCalls.kernel { baton_reserve(number, 0, Int64(size)) }
                    hasReservedRoom = true
                } catch {
                    guard error == .notSupportedOnSocket || error == .notSupported || error == .noFunction else {
                        throw error
                    }
                }
            }
            try SystemCalls.call { ftruncate(number, off_t(size)) }
        } catch {
            throw DocumentError(writingFailed: error, label)
        }
    }

    /// What is free now has to be enough; on file systems that cannot reserve, nobody keeps it for us.
    private func requireRoom(_ size: UInt64) throws(Errno) {
        if let free = SystemCalls.freeByteCount(of: file), free < size { throw .noSpace }
    }

    private static func make(
        _ label: DocumentLabel, _ folder: DestinationFolder, _ ledger: PartFileLedger
    ) throws(DocumentError) -> Made {
        for _ in 0..<8 {
            var record = PartFileRecord(of: label, in: folder)
            // First without an inode, so that no moment exists in which the file has no record.
            try ledger.enter(record)
            do {
                if let file = try folder.makeFile(record.name, for: label) {
                    record.inode = UInt64(try SystemCalls.status(of: file).st_ino)
                    try ledger.enter(record)
                    return Made(file: file, record: record)
                }
                ledger.remove(record)
            } catch {
                if record.inode != 0, folder.holds(record.name, inode: record.inode) { folder.remove(record.name) }
                ledger.remove(record)
                throw error as? DocumentError ?? DocumentError(writingFailed: error as? Errno, label)
            }
        }
        throw DocumentError(.writeFailed, label.description, underlyingError: .fileExists)
    }
}
