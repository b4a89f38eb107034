// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import Glibc
import SystemPackage

/// A folder of a ``Home``, made if it is missing.
package enum HomeFolder {
    /// The content of a folder.
    package enum Kind: Sendable {
        /// Settings of the user. The folder may be behind a symbolic link, and others may read it.
        case configuration
        /// Secrets or the socket. The folder is no link, and only this user may enter it.
        case secret
    }

    /// Makes the folder for this user alone, or checks an existing one.
    ///
    /// - Throws: ``HomeFolderError`` if it belongs to another user, others may write to it, or it is a link.
    package static func prepare(_ path: String, _ kind: Kind) throws(HomeFolderError) {
        if let reason = reason(against: path, kind) { throw HomeFolderError(path: path, reason: reason) }
    }

    private static func reason(against path: String, _ kind: Kind) -> String? {
        do throws(Errno) {
            try DurableFile.makeFolder(FilePath(path))
        } catch {
            return "\(error)"
        }
        // Through a descriptor, so that the checked folder is the one that changes, and never the target of a link.
        let number = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | (kind == .secret ? O_NOFOLLOW : 0))
        guard number >= 0 else {
            let error = Errno(rawValue: errno)
            let isOther = [.notDirectory, .tooManySymbolicLinkLevels].contains(error)
            return isOther ? "it has to be a folder, and not a symbolic link" : "\(error)"
        }
        let folder = OwnedDescriptor(takingOwnershipOf: number)
        var status = stat()
        guard fstat(folder.rawValue, &status) == 0 else { return "\(Errno(rawValue: errno))" }
        guard status.st_uid == geteuid() else { return "it belongs to another user" }
        switch kind {
        case .configuration where status.st_mode & 0o022 != 0:
            return "others may write to it: chmod go-w"
        case .secret where status.st_mode & 0o077 != 0:
            return fchmod(folder.rawValue, 0o700) == 0 ? nil : "\(Errno(rawValue: errno))"
        case .configuration, .secret:
            return nil
        }
    }
}

/// The reason why a folder of a home cannot be used.
package struct HomeFolderError: Error, Sendable {
    package let path: String
    /// Without a full stop.
    package let reason: String
}
