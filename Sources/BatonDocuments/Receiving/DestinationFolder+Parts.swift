// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import CLinux
import Glibc
import SystemPackage

/// The name of a document in its destination.
package struct DocumentNaming: Sendable, Hashable {
    /// The highest number that a document gets because its name is taken: 99.
    static let highestNumber = 99

    /// The name at its origin. If that is taken, the document does not arrive.
    package static let own = DocumentNaming(label: nil, renames: false)

    /// The user's own name for it; nil for the name at its origin.
    package let label: DocumentLabel?
    /// Whether the document gets a number if the name is taken, as in `film (2).bin`.
    package let renames: Bool

    /// A naming.
    package init(label: DocumentLabel?, renames: Bool) {
        self.label = label
        self.renames = renames
    }
}

/// The parts in a destination.
///
/// The name of a part is one component. The kernel is told to stay beneath the folder and to follow no link all the
/// same.
extension DestinationFolder {
    /// Makes a new, empty file or folder that only this user can open.
    func make(_ name: [UInt8], isFolder: Bool, for label: DocumentLabel) throws(DocumentError) -> OwnedDescriptor {
        do throws(Errno) {
            guard isFolder else {
                return try SystemCalls.open(name, beneath: file, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, mode: 0o600)
            }
            try SystemCalls.makeFolder(name, in: file, mode: 0o700)
            let folder = try SystemCalls.open(name, beneath: file, O_RDONLY | O_DIRECTORY)
            let status = try SystemCalls.status(of: folder)
            // Somebody who may write to the destination can have put another folder in its place.
            guard status.st_uid == geteuid(), status.st_mode & 0o777 & ~0o700 == 0 else { throw .notPermitted }
            return folder
        } catch {
            throw DocumentError(creatingFailed: error, label, in: path)
        }
    }

    /// Opens the file or folder of an earlier transfer, and makes it this user's alone: that transfer may have given it
    /// its final permissions.
    ///
    /// - Returns: nil unless it has this inode, belongs to this user and has no second name.
    func reopen(
        _ name: [UInt8], inode: UInt64, isFolder: Bool, for label: DocumentLabel
    ) throws(DocumentError) -> OwnedDescriptor? {
        let flags = isFolder ? O_RDONLY | O_DIRECTORY : O_RDWR | O_NOFOLLOW | O_NONBLOCK
        do throws(Errno) {
            let found: OwnedDescriptor
            do throws(Errno) {
                found = try SystemCalls.open(name, beneath: file, flags)
            } catch .permissionDenied {
                guard try self.inode(ofName: name) == inode else { return nil }
                try SystemCalls.restoreAccess(name, in: file)
                found = try SystemCalls.open(name, beneath: file, flags)
            }
            let status = try SystemCalls.status(of: found)
            guard fileSystem.number(of: status) == inode, status.st_uid == geteuid() else { return nil }
            // A file with a second name would be written to under that name as well.
            if !isFolder { try SystemCalls.requireOwn(status) }
            try SystemCalls.setMode(isFolder ? 0o700 : 0o600, of: found)
            return found
        } catch {
            guard error.saysAbsent || error == .illegalSeek || error == .tooManyLinks else {
                throw DocumentError(creatingFailed: error, label, in: path)
            }
            return nil
        }
    }

    /// Gives a part its final name, never in the place of something else.
    ///
    /// - Returns: the name that it has got.
    /// - Throws: `destinationExists`, also if all names with a number are taken; `destinationUnsuitable` if the file
    ///   system can promise neither way, ... Nothing has changed then.
    func rename(
        _ name: [UInt8], to label: DocumentLabel, _ naming: DocumentNaming, isFolder: Bool
    ) throws(DocumentError) -> DocumentLabel {
        let wanted = naming.label ?? label
        var candidate = wanted
        for number in 2... {
            do throws(Errno) {
                try rename(name, candidate.bytes)
                break
            } catch {
                guard error == .fileExists else { throw DocumentError(creatingFailed: error, candidate, in: path) }
                guard naming.renames, number <= DocumentNaming.highestNumber else {
                    throw DocumentError(.destinationExists, path(of: candidate).displayed, underlyingError: error)
                }
                candidate = wanted.numbered(number, isFolder: isFolder)
            }
        }
        return candidate
    }

    /// Gives a name to what has another, never in the place of something else.
    ///
    /// - Throws: `notSupported` if the file system cannot promise it.
    func rename(_ name: [UInt8], _ to: [UInt8]) throws(Errno) {
        let folder = file.rawValue
        try SystemCalls.withName(name) { (from) throws(Errno) in
            try SystemCalls.withName(to) { (to) throws(Errno) in
                do throws(Errno) {
                    try SystemCalls.kernel { baton_rename_without_replacing(folder, from, to) }
                    return
                } catch {
                    // Some file systems (NFS among them) cannot promise it. A second name replaces nothing either.
                    guard [.invalidArgument, .noFunction, .notSupported].contains(error) else { throw error }
                }
                do throws(Errno) {
                    try SystemCalls.call { linkat(folder, from, folder, to, 0) }
                } catch {
                    throw error == .notPermitted || error == .noFunction ? .notSupported : error
                }
                // The document has its name now; a part name that stays is an extra, not a failure.
                _ = try? SystemCalls.call { unlinkat(folder, from, 0) }
            }
        }
    }

    /// The inode of a name in the folder, whatever it is.
    func inode(ofName name: [UInt8]) throws(Errno) -> UInt64 {
        fileSystem.number(of: try SystemCalls.status(ofName: name, in: file))
    }

    /// Whether a name is a regular file or a folder and has this inode.
    func holds(_ name: [UInt8], inode: UInt64, isFolder: Bool) -> Bool {
        guard let status = try? SystemCalls.status(ofName: name, in: file) else { return false }
        return status.st_mode & S_IFMT == (isFolder ? S_IFDIR : S_IFREG) && fileSystem.number(of: status) == inode
    }

    /// Makes sure that the file system has room for so many bytes, and for so many new files and folders.
    func requireRoom(for byteCount: UInt64, entries entryCount: Int, _ label: DocumentLabel) throws(DocumentError) {
        guard let status = volume else { return }
        // File systems that make inodes as they are needed say that they have none.
        let hasInodes = status.f_files == 0 || UInt64(status.f_favail) >= UInt64(entryCount)
        guard byteCount <= freeByteCount ?? .max, hasInodes else {
            throw DocumentError(.destinationFull, label.description, underlyingError: .noSpace)
        }
    }

    /// Bytes that are free for this user; nil if the file system does not say.
    var freeByteCount: UInt64? {
        guard let status = volume else { return nil }
        let (free, overflow) = UInt64(status.f_bavail).multipliedReportingOverflow(by: UInt64(status.f_frsize))
        return overflow ? nil : free
    }

    /// Bytes of a block of its file system.
    var blockSize: UInt64 { max(1, UInt64(volume?.f_frsize ?? 1)) }

    private var volume: statvfs? {
        let number = file.rawValue
        var status = statvfs()
        guard (try? SystemCalls.call { fstatvfs(number, &status) }) != nil, status.f_blocks > 0 else { return nil }
        return status
    }
}
