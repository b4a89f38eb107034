// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import CLinux
import Glibc
import SystemPackage

/// Removes a folder with all that is in it: never through a link, never outside of it, and never across to another file
/// system that somebody has mounted there.
///
/// It holds a descriptor for each level. Every call blocks on the disk.
enum FolderRemoval {
    /// The most names that one removal takes away: ten times what a document can have. Somebody who makes files as fast
    /// as they are removed would keep it busy for ever.
    static let nameLimit = 10 * DocumentTree.entryLimit
    /// Levels below the folder: twice as many as a document has. What is deeper is none of it, and stays.
    private static let depthLimit = 2 * EntryPath.maximumDepth

    /// Removes all that is in a folder, and leaves the folder.
    static func removeContents(of folder: borrowing OwnedDescriptor) throws(Errno) {
        var left = nameLimit
        try removeContents(of: folder, depth: 0, &left)
    }

    private static func removeContents(
        of folder: borrowing OwnedDescriptor, depth: Int, _ left: inout Int
    ) throws(Errno) {
        guard depth < depthLimit else { throw .directoryNotEmpty }
        let number = folder.rawValue
        while true {
            try SystemCalls.call { lseek(number, 0, SEEK_SET) }
            let names = try SystemCalls.names(in: folder, atLeast: 1)
            guard !names.isEmpty else { return }
            left -= names.count
            guard left >= 0 else { throw .directoryNotEmpty }
            for name in names { try remove(name, from: folder, depth: depth, &left) }
        }
    }

    private static func remove(
        _ name: [UInt8], from folder: borrowing OwnedDescriptor, depth: Int, _ left: inout Int
    ) throws(Errno) {
        do throws(Errno) {
            do throws(Errno) {
                return try SystemCalls.remove(name, from: folder, isFolder: false)
            } catch .isDirectory {}
            try removeContents(of: try SystemCalls.openOwnFolder(name, within: folder), depth: depth + 1, &left)
            try SystemCalls.remove(name, from: folder, isFolder: true)
        } catch .noSuchFileOrDirectory {}
    }
}

/// Access for the owner to a part that has its final permissions already, such as those of a read-only folder.
///
/// The transfer that set them could not put the part in place. Another one goes on with it or removes it.
extension SystemCalls {
    /// Opens a folder to change what is in it, as ``openFolder(_:within:)``.
    static func openOwnFolder(
        _ name: some Collection<UInt8>, within folder: borrowing OwnedDescriptor
    ) throws(Errno) -> OwnedDescriptor {
        // First, so that the access to what is mounted there is left alone.
        do throws(Errno) {
            _ = try openFolder(name, within: folder)
        } catch .permissionDenied {}
        try restoreAccess(name, in: folder)
        return try openFolder(name, within: folder)
    }

    /// Gives the owner of a file or folder, by its path beneath a folder, all access, and nobody else any, if the owner
    /// has not all. Those of other users are refused then.
    ///
    /// - Returns: its status before.
    @discardableResult
    static func restoreAccess(
        _ path: some Collection<UInt8>, in folder: borrowing OwnedDescriptor
    ) throws(Errno) -> stat {
        let found = try look(at: path, beneath: folder)
        let status = try status(of: found)
        let isFolder = status.st_mode & S_IFMT == S_IFDIR
        let wanted: mode_t = isFolder ? 0o700 : 0o600
        guard isFolder || status.st_mode & S_IFMT == S_IFREG, status.st_mode & wanted != wanted else { return status }
        guard status.st_uid == geteuid(), isFolder || status.st_nlink == 1 else { throw .permissionDenied }
        // fchmod(2) takes no descriptor that was not opened for reading or writing.
        let path = FilePath("/proc/self/fd/\(found.rawValue)")
        try call { path.withPlatformString { chmod($0, wanted) } }
        return status
    }
}
