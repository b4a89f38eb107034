// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import Glibc
import SystemPackage

/// Removes a folder with all that is in it: never through a link, never outside of it, and never across to another file
/// system that somebody has mounted there.
///
/// It holds two descriptors however deep the folder is. Every call blocks on the disk.
enum FolderRemoval {
    /// The most names that one removal takes away: ten times what a document can have. Somebody who makes files as fast
    /// as they are removed would keep it busy for ever.
    static let nameLimit = 10 * DocumentTree.entryLimit

    /// Which folder one was, so that the way up is known to lead back to it.
    private struct Above {
        let device: dev_t
        let inode: ino_t
        /// What the folder below it is called in it.
        let name: [UInt8]
    }

    /// Removes a folder of this user by its name, if it is the one of this inode.
    ///
    /// - Returns: false for anything else, which stays.
    /// - Throws: what stood in the way. What was removed until then is gone.
    static func remove(
        _ name: [UInt8], inode: UInt64, from parent: borrowing OwnedDescriptor
    ) throws(Errno) -> Bool {
        let folder: OwnedDescriptor
        do throws(Errno) {
            do throws(Errno) {
                folder = try SystemCalls.openFolder(name, within: parent)
            } catch .permissionDenied {
                try SystemCalls.restoreAccess(name, in: parent, inode: inode)
                folder = try SystemCalls.openFolder(name, within: parent)
            }
        } catch .noSuchFileOrDirectory, .notDirectory, .tooManySymbolicLinkLevels, .improperLink {
            return false
        }
        let status = try SystemCalls.status(of: folder)
        guard UInt64(status.st_ino) == inode, status.st_uid == geteuid() else { return false }
        try removeContents(of: folder)
        // Another folder that was put in its place meanwhile goes only if it is empty.
        try SystemCalls.remove(name, from: parent, isFolder: true)
        return true
    }

    /// Removes all that is in a folder, and leaves the folder.
    ///
    /// - Throws: what stood in the way; `directoryNotEmpty` beyond ``nameLimit``.
    static func removeContents(of folder: borrowing OwnedDescriptor) throws(Errno) {
        try SystemCalls.restoreAccess(to: folder)
        var current = try SystemCalls.openFolder([UInt8(ascii: ".")], within: folder)
        var above: [Above] = []
        var left = nameLimit
        while true {
            let number = current.rawValue
            try SystemCalls.call { lseek(number, 0, SEEK_SET) }
            let names = try SystemCalls.names(in: current, atLeast: 1)
            guard !names.isEmpty else {
                guard let parent = above.popLast() else { return }
                current = try open(parent, above: current)
                try removeEmpty(parent.name, from: current)
                continue
            }
            left -= names.count
            guard left >= 0 else { throw .directoryNotEmpty }
            guard let name = try removeUntilFolder(names, from: current) else { continue }
            let status = try SystemCalls.status(of: current)
            above.append(Above(device: status.st_dev, inode: status.st_ino, name: name))
            current = try SystemCalls.openOwnFolder(name, within: current)
        }
    }

    /// Removes names up to a folder that has something in it.
    private static func removeUntilFolder(
        _ names: [[UInt8]], from folder: borrowing OwnedDescriptor
    ) throws(Errno) -> [UInt8]? {
        for name in names {
            do {
                try SystemCalls.remove(name, from: folder, isFolder: false)
            } catch .noSuchFileOrDirectory {
                continue
            } catch .isDirectory {
                guard try removeEmpty(name, from: folder) else { return name }
            }
        }
        return nil
    }

    /// - Returns: whether the folder is gone; false when there is something in it.
    @discardableResult
    private static func removeEmpty(
        _ name: [UInt8], from folder: borrowing OwnedDescriptor
    ) throws(Errno) -> Bool {
        do {
            try SystemCalls.remove(name, from: folder, isFolder: true)
            return true
        } catch .noSuchFileOrDirectory {
            return true
        } catch .directoryNotEmpty, .fileExists {
            return false
        }
    }

    /// Goes up, and makes sure to be where it came from: somebody may have moved the folder.
    private static func open(
        _ parent: Above, above folder: borrowing OwnedDescriptor
    ) throws(Errno) -> OwnedDescriptor {
        let number = folder.rawValue
        let found = OwnedDescriptor(
            takingOwnershipOf: try SystemCalls.call {
                openat(number, "..", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
            })
        let status = try SystemCalls.status(of: found)
        guard status.st_dev == parent.device, status.st_ino == parent.inode else { throw .staleNFSFileHandle }
        return found
    }
}
