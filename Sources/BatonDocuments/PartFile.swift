import BatonEventLoop
import CLinux
import Glibc
import SystemPackage

/// The file that a document is written to until it is whole: hidden, beside its destination, and gone unless it is
/// committed.
///
/// Belongs to the thread that made it. Every call blocks on the disk, `deinit` as well.
final class PartFile {
    private enum State {
        case open
        case committed
        case discarded
    }

    /// Bytes written between two pushes towards the disk: 32 MiB. Measured with 1 GiB: the last `fsync` falls from 240
    /// to 35 ms and the whole write is a third faster; 8 MiB was no better alone and slower on a busy machine.
    static let writebackInterval: UInt64 = 32 << 20

    /// A part file that was just made, and its record.
    private struct Made: ~Copyable {
        let file: OwnedDescriptor
        let record: PartFileRecord

        consuming func takeFile() -> OwnedDescriptor { file }
    }

    /// The document's name.
    let label: DocumentLabel

    private let folder: DestinationFolder
    private let ledger: PartFileLedger
    private let file: OwnedDescriptor
    private let record: PartFileRecord
    private let umask: mode_t
    private var state = State.open
    private var writebackStart: UInt64 = 0

    /// Makes the part file and reserves `size` bytes for it.
    ///
    /// - Parameter umask: the permission bits that the user does not want.
    /// - Throws: `destinationExists`, `destinationNotWritable`, `destinationFull`, `badName`, `tooLarge`, ... Nothing is
    ///   left behind then.
    init(
        for label: DocumentLabel, size: UInt64, in folder: DestinationFolder, ledger: PartFileLedger,
        umask: mode_t = ProcessUmask.current
    ) throws(DocumentError) {
        try folder.requireAbsent(label)
        let made = try Self.make(label, folder, ledger)
        self.label = label
        self.folder = folder
        self.ledger = ledger
        self.umask = umask
        record = made.record
        file = made.takeFile()
        // From here on `deinit` cleans up, also when this initialiser throws.
        try requireNaming()
        try reserve(size)
    }

    deinit {
        discard()
    }

    /// Writes bytes at an offset, and now and then starts to move them to the disk.
    func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(DocumentError) {
        do {
            try SystemCalls.write(bytes, to: file, at: offset)
        } catch {
            throw DocumentError(writingFailed: error, label)
        }
        let end = offset + UInt64(bytes.count)
        if end >= writebackStart + Self.writebackInterval {
            let (number, start) = (file.rawValue, writebackStart)
            // Advice: where it is refused, the last fsync does all of it.
            _ = baton_start_writeback(number, Int64(start), Int64(end - start))
            writebackStart = end
        }
    }

    /// Makes the content durable, gives it its permissions and its name, and makes that durable.
    ///
    /// - Parameter permissions: the origin's bits; set-id and sticky bits and what the umask takes away are dropped, and
    ///   the owner may read it in any case.
    /// - Throws: `destinationExists`, ... The part file is still there then, to be discarded.
    func commit(permissions: UInt16, withLink: Bool = false) throws(DocumentError) -> FilePath {
        let mode = mode_t(permissions & 0o777 | 0o400) & ~umask
        let number = file.rawValue
        do throws(Errno) {
            do throws(Errno) {
                try SystemCalls.call { fchmod(number, mode) }
            } catch {
                // FAT and its kin have no permissions to set.
                guard error == .notPermitted || error == .notSupported else { throw error }
            }
            try SystemCalls.synchronize(file)
        } catch {
            throw DocumentError(writingFailed: error, label)
        }
        guard folder.holds(record.name, inode: record.inode) else {
            throw DocumentError(.writeFailed, label.description, underlyingError: .noSuchFileOrDirectory)
        }
        try folder.rename(record.name, to: label, withLink: withLink)
        // Somebody who may write to the folder can exchange the part file between a look and the renaming: what stands
        // under the name now has to be what was received.
        guard folder.holds(label.bytes, inode: record.inode) else {
            throw DocumentError(.writeFailed, label.description, underlyingError: .staleNFSFileHandle)
        }
        state = .committed
        ledger.remove(record)
        do {
            try folder.synchronize()
        } catch {
            // The document is whole and has its name; only a power cut in the next seconds could take the name away.
            // Saying "failed" here would be the greater untruth.
        }
        return folder.path(of: label)
    }

    /// Removes the part file, once. Something else that somebody put under its name stays.
    func discard() {
        guard case .open = state else { return }
        state = .discarded
        if folder.holds(record.name, inode: record.inode) { folder.remove(record.name) }
        ledger.remove(record)
    }

    /// Makes sure, before a byte is asked for, that the file system can name a file without replacing another.
    private func requireNaming() throws(DocumentError) {
        guard !folder.isKnownToName else { return }
        let tag = PartFileName.makeTag()
        let other = PartFileRecord(folder: folder.resolvedPath, name: PartFileName.make(for: label, tag: tag), tag: tag)
        try ledger.enter(other)
        defer { ledger.remove(other) }
        try folder.rename(record.name, toPartFile: other.name, for: label)
        try folder.rename(other.name, toPartFile: record.name, for: label)
    }

    private func reserve(_ size: UInt64) throws(DocumentError) {
        guard size > 0 else { return }
        guard size <= UInt64(Int64.max) else { throw DocumentError(.tooLarge, label.description) }
        let number = file.rawValue
        // Asked first: reserving more than there is would fill the disk for everybody before it fails.
        try requireRoom(size)
        do {
            try SystemCalls.kernel { baton_reserve(number, 0, Int64(size)) }
        } catch .notSupportedOnSocket, .notSupported, .noFunction {
            return
        } catch {
            throw DocumentError(writingFailed: error, label)
        }
    }

    /// What is free now has to be enough; on file systems that cannot reserve, nobody keeps it for us.
    private func requireRoom(_ size: UInt64) throws(DocumentError) {
        let number = file.rawValue
        var status = statvfs()
        guard (try? SystemCalls.call { fstatvfs(number, &status) }) != nil, status.f_blocks > 0 else { return }
        let (free, overflow) = UInt64(status.f_bavail).multipliedReportingOverflow(by: UInt64(status.f_frsize))
        if !overflow, free < size {
            throw DocumentError(.destinationFull, label.description, underlyingError: .noSpace)
        }
    }

    private static func make(
        _ label: DocumentLabel, _ folder: DestinationFolder, _ ledger: PartFileLedger
    ) throws(DocumentError) -> Made {
        for _ in 0..<8 {
            let tag = PartFileName.makeTag()
            var record = PartFileRecord(
                folder: folder.resolvedPath, name: PartFileName.make(for: label, tag: tag), tag: tag)
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
