// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import Glibc
import SystemPackage

/// What a destination does for documents that are folders.
extension DestinationFolder {
    /// Makes a new, empty folder that only this user can enter.
    ///
    /// - Returns: nil when the name is taken.
    func makeFolder(_ name: [UInt8], for label: DocumentLabel) throws(DocumentError) -> OwnedDescriptor? {
        do throws(Errno) {
            try SystemCalls.makeFolder(name, in: file, mode: 0o700)
            let folder = try SystemCalls.open(name, beneath: file, O_RDONLY | O_DIRECTORY)
            let status = try SystemCalls.status(of: folder)
            // Who may write to the destination can have put a folder of their own in its place.
            guard status.st_uid == geteuid(), status.st_mode & 0o777 & ~0o700 == 0 else { throw .notPermitted }
            return folder
        } catch .fileExists {
            return nil
        } catch {
            throw DocumentError(creatingFailed: error, label, in: path)
        }
    }

    /// Opens a folder that an earlier transfer has made.
    ///
    /// - Returns: nil for anything but a folder of this inode and this user.
    func reopenFolder(
        _ name: [UInt8], inode: UInt64, for label: DocumentLabel
    ) throws(DocumentError) -> OwnedDescriptor? {
        do throws(Errno) {
            try requireAnswer(to: .part)
            let folder: OwnedDescriptor
            do throws(Errno) {
                folder = try SystemCalls.open(name, beneath: file, O_RDONLY | O_DIRECTORY)
            } catch .permissionDenied {
                try SystemCalls.restoreAccess(name, in: file, inode: inode)
                folder = try SystemCalls.open(name, beneath: file, O_RDONLY | O_DIRECTORY)
            }
            let status = try SystemCalls.status(of: folder)
            guard UInt64(status.st_ino) == inode, status.st_uid == geteuid() else { return nil }
            // The next version may be more private than the one that an earlier attempt has finished.
            try SystemCalls.setMode(0o700, of: folder)
            return folder
        } catch .noSuchFileOrDirectory, .notDirectory, .tooManySymbolicLinkLevels, .improperLink {
            return nil
        } catch {
            throw DocumentError(creatingFailed: error, label, in: path)
        }
    }

    /// Whether a name in the destination is a folder and has this inode: not something that was put in its place.
    func holdsFolder(_ name: [UInt8], inode: UInt64) -> Bool {
        guard let status = try? SystemCalls.status(ofName: name, in: file) else { return false }
        return status.st_mode & S_IFMT == S_IFDIR && UInt64(status.st_ino) == inode
    }

    /// Makes sure, before a byte is asked for, that the file system can name a folder without replacing another.
    ///
    /// It is tried with an empty folder beside the document: who ends the process in that moment leaves that behind.
    func requireNaming(of label: DocumentLabel) throws(DocumentError) {
        guard !isKnownToName else { return }
        let name = PartFileName.make(for: label, tag: PartFileName.makeTag())
        let other = PartFileName.make(for: label, tag: PartFileName.makeTag())
        guard try makeFolder(name, for: label) != nil else {
            throw DocumentError(.writeFailed, label.description, underlyingError: .fileExists)
        }
        defer {
            for name in [name, other] { try? SystemCalls.remove(name, from: file, isFolder: true) }
        }
        try rename(name, toPartFile: other, for: label)
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

    /// Makes sure that what is free now is enough for a document.
    ///
    /// Files with holes count nothing: nobody knows what of them comes.
    ///
    /// - Parameters:
    ///   - others: files that need none.
    ///   - given: bytes that can be made free.
    func requireRoom(
        for tree: DocumentTree, without others: Set<Int>, given: UInt64 = 0
    ) throws(DocumentError) {
        let number = file.rawValue
        var status = statvfs()
        guard (try? SystemCalls.call { fstatvfs(number, &status) }) != nil, status.f_blocks > 0 else { return }
        let block = max(1, UInt64(status.f_frsize))
        var blocks: UInt64 = 0
        for index in 0..<tree.layout.fileCount where !others.contains(index) {
            guard let file = tree.entry(ofFile: index).file, !file.isSparse else { continue }
            blocks += file.size / block + (file.size % block == 0 ? 0 : 1)
        }
        // File systems that make inodes as they are needed say they have none.
        let hasInodes = status.f_files == 0 || UInt64(status.f_favail) >= UInt64(tree.entryCount - others.count)
        guard blocks <= UInt64(status.f_bavail) + given / block, hasInodes else {
            throw DocumentError(.destinationFull, tree.label.description, underlyingError: .noSpace)
        }
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
