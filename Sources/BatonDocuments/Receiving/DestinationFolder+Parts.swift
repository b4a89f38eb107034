// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import CLinux
import Glibc
import SystemPackage

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

    /// Opens a file or folder that an earlier transfer has made, and makes it this user's alone: the attempt before may
    /// have given it its final permissions.
    ///
    /// - Returns: nil for anything but the one of this inode and this user, with no other name.
    func reopen(
        _ name: [UInt8], inode: UInt64, isFolder: Bool, for label: DocumentLabel
    ) throws(DocumentError) -> OwnedDescriptor? {
        let flags = isFolder ? O_RDONLY | O_DIRECTORY : O_RDWR | O_NOFOLLOW | O_NONBLOCK
        do throws(Errno) {
            let found: OwnedDescriptor
            do throws(Errno) {
                found = try SystemCalls.open(name, beneath: file, flags)
            } catch .permissionDenied {
                try requireOwn(name, inode)
                try SystemCalls.restoreAccess(name, in: file)
                found = try SystemCalls.open(name, beneath: file, flags)
            }
            let status = try SystemCalls.status(of: found)
            guard fileSystem.number(of: status) == inode, status.st_uid == geteuid() else { return nil }
            // A file that has a second name somewhere would be written to there as well.
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

    private func requireOwn(_ name: [UInt8], _ inode: UInt64) throws(Errno) {
        let found = fileSystem.number(of: try SystemCalls.status(ofName: name, in: file))
        guard found == inode else { throw .noSuchFileOrDirectory }
    }

    /// Gives a part its final name, never in the place of something else.
    ///
    /// - Returns: the name that it has got.
    /// - Throws: `destinationExists`, also if all names with a number are taken; `destinationUnsuitable` where the file
    ///   system can promise neither way, and the errors of making a file. Nothing has changed then.
    func rename(
        _ name: [UInt8], to label: DocumentLabel, _ naming: DocumentNaming, isFolder: Bool
    ) throws(DocumentError) -> DocumentLabel {
        let wanted = naming.label ?? label
        var (candidate, number) = (wanted, 1)
        while true {
            do throws(Errno) {
                try rename(name, candidate.bytes)
                return candidate
            } catch {
                guard error == .fileExists else { throw DocumentError(namingFailed: error, candidate, in: path) }
                guard naming.renames, number < DocumentNaming.highestNumber else {
                    throw DocumentError(.destinationExists, path(of: candidate).displayed, underlyingError: error)
                }
                number += 1
                candidate = wanted.numbered(number, isFolder: isFolder)
            }
        }
    }

    /// Gives a part another part's name, likewise.
    func rename(_ name: [UInt8], toPart other: [UInt8], for label: DocumentLabel) throws(DocumentError) {
        do {
            try rename(name, other)
        } catch {
            throw DocumentError(namingFailed: error, label, in: path)
        }
    }

    /// - Throws: `notSupported` where the file system can neither rename without replacing nor give a second name.
    private func rename(_ name: [UInt8], _ to: [UInt8]) throws(Errno) {
        let folder = file.rawValue
        try SystemCalls.withName(name) { (from) throws(Errno) in
            try SystemCalls.withName(to) { (to) throws(Errno) in
                do throws(Errno) {
                    try SystemCalls.kernel { baton_rename_without_replacing(folder, from, to) }
                    return
                } catch {
                    // Some file systems (NFS among them) cannot promise it. A second name cannot replace anything
                    // either.
                    guard [.invalidArgument, .noFunction, .notSupported].contains(error) else { throw error }
                }
                do throws(Errno) {
                    try SystemCalls.call { linkat(folder, from, folder, to, 0) }
                } catch {
                    throw error == .notPermitted || error == .noFunction ? .notSupported : error
                }
                // It stands under its own name now; a part name that stays is an extra, not a failure.
                try? SystemCalls.remove(from, from: file)
            }
        }
    }

    /// Whether a name is a regular file or a folder and has this inode: not something that was put in its place.
    func holds(_ name: [UInt8], inode: UInt64, isFolder: Bool) -> Bool {
        guard let status = try? SystemCalls.status(ofName: name, in: file) else { return false }
        return status.st_mode & S_IFMT == (isFolder ? S_IFDIR : S_IFREG) && fileSystem.number(of: status) == inode
    }

    /// The inode of an open file or folder.
    func inode(of opened: borrowing OwnedDescriptor, _ label: DocumentLabel) throws(DocumentError) -> UInt64 {
        do {
            return fileSystem.number(of: try SystemCalls.status(of: opened))
        } catch {
            throw DocumentError(writingFailed: error, label)
        }
    }

    /// The inode of a name in the folder, whatever it is; nil where nothing has the name.
    ///
    /// - Throws: `writeFailed`, `busy`, ...: the disk does not answer, and nobody knows.
    func inode(of name: [UInt8], for label: DocumentLabel) throws(DocumentError) -> UInt64? {
        do throws(Errno) {
            return fileSystem.number(of: try SystemCalls.status(ofName: name, in: file))
        } catch .noSuchFileOrDirectory, .notDirectory {
            return nil
        } catch {
            throw DocumentError(creatingFailed: error, label, in: path)
        }
    }

    /// Whether a name in the folder is certainly gone, or something else's: a disk that does not answer has lost
    /// nothing.
    func hasLost(_ name: [UInt8], inode: UInt64) -> Bool {
        do {
            return fileSystem.number(of: try SystemCalls.status(ofName: name, in: file)) != inode
        } catch {
            return error == .noSuchFileOrDirectory
        }
    }

    /// Makes sure that what is free now is enough.
    ///
    /// - Parameters:
    ///   - byteCount: bytes that are needed.
    ///   - entryCount: files and folders that will be made.
    /// - Throws: `destinationFull`.
    func requireRoom(for byteCount: UInt64, entries entryCount: Int, _ label: DocumentLabel) throws(DocumentError) {
        let number = file.rawValue
        var status = statvfs()
        guard (try? SystemCalls.call { fstatvfs(number, &status) }) != nil, status.f_blocks > 0 else { return }
        let (free, isLarge) = UInt64(status.f_bavail).multipliedReportingOverflow(by: UInt64(status.f_frsize))
        // File systems that make inodes as they are needed say that they have none.
        let hasInodes = status.f_files == 0 || UInt64(status.f_favail) >= UInt64(entryCount)
        guard isLarge || byteCount <= free, hasInodes else {
            throw DocumentError(.destinationFull, label.description, underlyingError: .noSpace)
        }
    }

    /// Bytes that are free for this user; nil where the file system does not say.
    var freeByteCount: UInt64? { SystemCalls.freeByteCount(of: file) }

    /// Bytes of a block of its file system.
    var blockSize: UInt64 {
        let number = file.rawValue
        var status = statvfs()
        _ = try? SystemCalls.call { fstatvfs(number, &status) }
        return max(1, UInt64(status.f_frsize))
    }
}

extension SystemCalls {
    /// Bytes that are free for this user on the file system of an open file; nil where it does not say.
    static func freeByteCount(of file: borrowing OwnedDescriptor) -> UInt64? {
        let number = file.rawValue
        var status = statvfs()
        guard (try? call { fstatvfs(number, &status) }) != nil, status.f_blocks > 0 else { return nil }
        let (free, overflow) = UInt64(status.f_bavail).multipliedReportingOverflow(by: UInt64(status.f_frsize))
        return overflow ? nil : free
    }
}
