// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import Glibc
package import SystemPackage

/// Where files really are, as the kernel has it. Every call blocks on the disk.
package enum FileLookup {
    /// The kind of an entry beneath a folder.
    package enum Found: Sendable, Hashable {
        /// A regular file, with its size in bytes.
        case file(size: UInt64)
        /// A folder.
        case folder
        /// Something that is neither, such as a pipe.
        case other
        /// Nothing: neither there nor anywhere else, because the way to it does not leave the folder.
        case missing
        /// A link on the way leaves the folder, or is absolute.
        case outside
    }

    /// The path without links and `..`, as `realpath(3)` has it.
    ///
    /// - Throws: why it cannot be told, `noSuchFileOrDirectory` for what is not there.
    package static func resolved(_ path: FilePath) throws(Errno) -> FilePath {
        guard let resolved = path.withPlatformString({ Glibc.realpath($0, nil) }) else { throw Errno(rawValue: errno) }
        defer { free(resolved) }
        return FilePath(platformString: resolved)
    }

    /// Looks a path up beneath a folder, and never leaves it: `openat2` with `RESOLVE_BENEATH` and
    /// `RESOLVE_NO_MAGICLINKS`. Links that do not leave it are followed.
    ///
    /// - Parameters:
    ///   - components: names, each without `/` and NUL and neither `.` nor `..`; none is the folder itself.
    ///   - folder: links on the way to it are followed: it is the user's own choice.
    /// - Throws: what the system says when it can tell neither, `noFunction` before Linux 5.6.
    package static func find(_ components: [[UInt8]], beneath folder: FilePath) throws(Errno) -> Found {
        let root = try SystemCalls.open(folder, O_RDONLY | O_DIRECTORY)
        let path = components.isEmpty ? [UInt8(ascii: ".")] : Array(components.joined(separator: [UInt8(ascii: "/")]))
        let found: OwnedDescriptor
        do {
            found = try SystemCalls.look(at: path, beneath: root, followingLinks: true)
        } catch .noSuchFileOrDirectory, .notDirectory {
            return .missing
        } catch .improperLink, .tooManySymbolicLinkLevels {
            return .outside
        }
        let status = try SystemCalls.status(of: found)
        switch status.st_mode & S_IFMT {
        case S_IFREG: return .file(size: UInt64(clamping: status.st_size))
        case S_IFDIR: return .folder
        case _: return .other
        }
    }
}
