// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import CLinux
import Glibc
import SystemPackage

/// Access for the owner to a part that has its final permissions already, such as those of a read-only folder.
///
/// The transfer that set them could not put the part in place. Another one goes on with it or removes it.
extension SystemCalls {
    /// Opens a folder to change what is in it, as ``openFolder(_:within:)``.
    static func openOwnFolder(
        _ name: some Collection<UInt8>, within folder: borrowing OwnedDescriptor
    ) throws(Errno) -> OwnedDescriptor {
        let opened: OwnedDescriptor
        do throws(Errno) {
            opened = try openFolder(name, within: folder)
        } catch .permissionDenied {
            try restoreAccess(name, in: folder)
            opened = try openFolder(name, within: folder)
        }
        try restoreAccess(to: opened)
        return opened
    }

    /// Gives the owner of an open folder all access, and nobody else any. Other users' folders are left alone.
    static func restoreAccess(to folder: borrowing OwnedDescriptor) throws(Errno) {
        let status = try status(of: folder)
        guard status.st_uid == geteuid(), status.st_mode & 0o700 != 0o700 else { return }
        try setMode(0o700, of: folder)
    }

    /// The same for a file or folder by its name, which nobody can open before.
    ///
    /// - Parameter inode: the only one that is meant; nil, the default, means any.
    /// - Throws: `permissionDenied` if it is not this user's own, or a file with a second name.
    static func restoreAccess(
        _ name: some Collection<UInt8>, in folder: borrowing OwnedDescriptor, inode: UInt64? = nil
    ) throws(Errno) {
        let number = folder.rawValue
        let found = OwnedDescriptor(
            takingOwnershipOf: try withName(name) { (name) throws(Errno) in
                try kernel { baton_look_beneath(number, name) }
            })
        let status = try status(of: found)
        let isFolder = status.st_mode & S_IFMT == S_IFDIR
        guard
            status.st_uid == geteuid(), isFolder || status.st_mode & S_IFMT == S_IFREG && status.st_nlink == 1,
            inode.map({ $0 == UInt64(status.st_ino) }) ?? true
        else { throw .permissionDenied }
        // fchmod(2) takes no descriptor that was not opened for reading or writing.
        let path = FilePath("/proc/self/fd/\(found.rawValue)")
        try call { path.withPlatformString { chmod($0, isFolder ? 0o700 : 0o600) } }
    }
}
