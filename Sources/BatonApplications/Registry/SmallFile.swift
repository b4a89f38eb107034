// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import Glibc
package import SystemPackage

/// Files of a few kilobytes, read and replaced whole.
package enum SmallFile {
    /// Which state of a file this is: an edit within one tick of the file system's clock that keeps the size is not
    /// seen.
    struct Version: Sendable, Hashable {
        private let inode: Inode
        private let size: Int64
        private let times: [UInt8]

        /// - Returns: `nil` if there is no regular file.
        init?(of path: FilePath) {
            guard let status = try? path.stat(), status.type == .regular else { return nil }
            inode = status.inode
            size = status.size
            // When content and entry last changed, compared as they are.
            times = withUnsafeBytes(of: (status.st_mtim, status.st_ctim)) { Array($0) }
        }
    }

    /// Reads a file.
    ///
    /// - Parameter isOwnersOnly: whether to refuse a file that another user owns or can write to, with
    ///   `Errno.permissionDenied`.
    /// - Throws: `Errno.fileTooLarge` over `limit`; `Errno.invalidArgument` if the path is no regular file.
    package static func read(_ path: FilePath, limit: Int, isOwnersOnly: Bool = false) throws(Errno) -> [UInt8] {
        // Not blocking, so that a pipe does not hang; it is no file and is refused.
        let number = try call { path.withPlatformString { open($0, O_RDONLY | O_NONBLOCK | O_CLOEXEC) } }
        let file = OwnedDescriptor(takingOwnershipOf: number)
        var status = stat()
        _ = try call { fstat(number, &status) }
        guard status.st_mode & S_IFMT == S_IFREG else { throw .invalidArgument }
        if isOwnersOnly {
            let isOurs = status.st_uid == geteuid() || status.st_uid == 0
            guard isOurs, status.st_mode & 0o022 == 0 else { throw .permissionDenied }
        }
        // The size is a hint only: the file may grow meanwhile.
        var bytes = [UInt8](repeating: 0, count: min(limit, max(0, Int(status.st_size))) + 1)
        var count = 0
        while count < bytes.count {
            let start = count
            let got = try bytes.withUnsafeMutableBufferPointer { (room) throws(Errno) in
                let base = room.baseAddress! + start
                let left = room.count - start
                return try call { Int32(clamping: Glibc.read(number, base, left)) }
            }
            if got == 0 { break }
            count += Int(got)
        }
        try? file.close()
        guard count <= limit, count < bytes.count || count == 0 else { throw .fileTooLarge }
        return Array(bytes.prefix(count))
    }

    /// Writes a file so that a reader, or a crash, sees the old content or the new and nothing between: 0600.
    package static func replace(_ path: FilePath, with bytes: [UInt8]) throws(Errno) {
        let name = path.lastComponent?.string ?? ""
        let folder = path.removingLastComponent()
        let temporary = folder.appending(".\(name.prefix(200)).\(String(UInt64.random(in: .min ... .max), radix: 36))")
        let number = try call {
            temporary.withPlatformString { open($0, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600) }
        }
        do throws(Errno) {
            let file = OwnedDescriptor(takingOwnershipOf: number)
            var written = 0
            while written < bytes.count {
                let start = written
                written += Int(
                    try bytes.withUnsafeBufferPointer { (bytes) throws(Errno) in
                        let base = bytes.baseAddress! + start
                        let left = bytes.count - start
                        return try call { Int32(clamping: Glibc.write(number, base, left)) }
                    })
            }
            // The umask may have taken the owner's own rights away.
            _ = try call { fchmod(number, 0o600) }
            _ = try call { fsync(number) }
            try file.close()
            _ = try call { temporary.withPlatformString { from in path.withPlatformString { rename(from, $0) } } }
        } catch {
            _ = temporary.withPlatformString { unlink($0) }
            throw error
        }
        try synchronize(folder.isEmpty ? "." : folder)
    }

    /// Makes the names in a folder durable. A file system that cannot do that (EINVAL) is taken as done.
    private static func synchronize(_ folder: FilePath) throws(Errno) {
        let number = try call { folder.withPlatformString { open($0, O_RDONLY | O_DIRECTORY | O_CLOEXEC) } }
        let descriptor = OwnedDescriptor(takingOwnershipOf: number)
        defer { withExtendedLifetime(descriptor) {} }
        do throws(Errno) {
            _ = try call { fsync(number) }
        } catch .invalidArgument {
            return
        }
    }

    /// Removes a file.
    static func remove(_ path: FilePath) throws(Errno) {
        _ = try call { unlink(path.string) }
    }

    /// The names in a folder, without `.` and `..`, in no order; the first `limit` that the system gives.
    static func names(in folder: FilePath, limit: Int) throws(Errno) -> [String] {
        guard let stream = opendir(folder.string) else { throw Errno(rawValue: errno) }
        defer { closedir(stream) }
        var names: [String] = []
        while names.count < limit, let entry = readdir(stream) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names
    }

    /// Makes a folder with mode 0700, and those that are missing above it.
    static func makeFolder(_ path: FilePath) throws(Errno) {
        do throws(Errno) {
            _ = try call { mkdir(path.string, 0o700) }
        } catch {
            switch error {
            case .fileExists: return
            case .noSuchFileOrDirectory where !path.removingLastComponent().isEmpty:
                try makeFolder(path.removingLastComponent())
                _ = try call { mkdir(path.string, 0o700) }
            case _: throw error
            }
        }
    }

    /// Calls again when a signal interrupted.
    static func call(_ body: () -> Int32) throws(Errno) -> Int32 {
        while true {
            let result = body()
            if result >= 0 { return result }
            let error = Errno(rawValue: errno)
            if error != .interrupted { throw error }
        }
    }
}
