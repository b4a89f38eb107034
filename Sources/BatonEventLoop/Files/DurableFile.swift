// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc
package import SystemPackage

/// Files of a few kilobytes, read and replaced whole.
package enum DurableFile {
    /// A state of a file. An edit of the same size within one tick of the file system's clock is not seen.
    package struct Version: Sendable, Hashable {
        private let inode: UInt64
        private let size: Int64
        /// When content and entry last changed: seconds and nanoseconds each.
        private let times: [Int64]

        /// The state as the kernel has it in memory. Never waits for a disk or a server, so an event loop may ask.
        ///
        /// A change that another machine makes on a network drive shows up when the kernel looks at the folder again:
        /// within a minute for NFS.
        ///
        /// - Throws: the answer of the kernel, such as `Errno.noSuchFileOrDirectory`;
        ///   `Errno.resourceTemporarilyUnavailable` if it would have to wait; another error before Linux 5.12.
        package init(inMemoryOf path: FilePath) throws(Errno) {
            var state = baton_file_state()
            let result = path.withPlatformString { baton_cached_state($0, &state) }
            guard result >= 0 else { throw Errno(rawValue: -result) }
            (inode, size) = (state.inode, state.size)
            times = withUnsafeBytes(of: state.times) { Array($0.bindMemory(to: Int64.self)) }
        }
    }

    /// Reads a file.
    ///
    /// - Parameter isOwnersOnly: whether to refuse a file that another user owns or can write to, with
    ///   `Errno.notPermitted`.
    /// - Throws: `Errno.fileTooLarge` over `limit`; `Errno.invalidArgument` if the path is no regular file.
    package static func read(_ path: FilePath, limit: Int, isOwnersOnly: Bool = false) throws(Errno) -> [UInt8] {
        // Not blocking, so that a pipe does not hang; it is no file and is refused.
        let number = try call { path.withPlatformString { open($0, O_RDONLY | O_NONBLOCK | O_CLOEXEC) } }
        let file = OwnedDescriptor(takingOwnershipOf: number)
        defer { withExtendedLifetime(file) {} }
        let status = try file.fileDescriptor.stat()
        guard status.type == .regular else { throw .invalidArgument }
        if isOwnersOnly {
            let isOurs = status.userID.rawValue == geteuid() || status.userID.rawValue == 0
            guard isOurs, status.permissions.rawValue & 0o022 == 0 else { throw .notPermitted }
        }
        // The size is a hint only: the file may grow meanwhile.
        var bytes = [UInt8](repeating: 0, count: min(limit, max(0, Int(status.size))) + 1)
        var count = 0
        while count < bytes.count {
            let start = count
            let got = try bytes.withUnsafeMutableBufferPointer { (room) throws(Errno) in
                let (base, left) = (room.baseAddress! + start, room.count - start)
                return try call { Glibc.read(number, base, left) }
            }
            if got == 0 { break }
            count += got
        }
        guard count < bytes.count else { throw .fileTooLarge }
        return Array(bytes.prefix(count))
    }

    /// Replaces a file so that a reader, or a crash, sees the old content or the new and nothing between (0600).
    package static func replace(_ path: FilePath, with bytes: [UInt8]) throws(Errno) {
        let folder = try openFolder(path.removingLastComponent())
        defer { withExtendedLifetime(folder) {} }
        let name = path.lastComponent?.string ?? ""
        try bytes.withUnsafeBufferPointer { (bytes) throws(Errno) in
            try replace(name, in: folder.rawValue, with: UnsafeRawBufferPointer(bytes))
        }
    }

    /// Replaces a file in an open folder: writes another file beside it, syncs that, renames it, and syncs the folder.
    ///
    /// A crash may leave a file behind whose name begins with a dot.
    package static func replace(_ name: String, in folder: Int32, with bytes: UnsafeRawBufferPointer) throws(Errno) {
        let temporary = ".\(name.prefix(200)).\(String(UInt64.random(in: .min ... .max), radix: 36))"
        let number = try call {
            openat(folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        }
        do throws(Errno) {
            let file = OwnedDescriptor(takingOwnershipOf: number)
            var written = 0
            while let base = bytes.baseAddress, written < bytes.count {
                written += try call { Glibc.write(number, base + written, bytes.count - written) }
            }
            // The umask may have taken the owner's own rights away.
            _ = try call { fchmod(number, 0o600) }
            _ = try call { fsync(number) }
            try file.close()
            _ = try call { renameat(folder, temporary, folder, name) }
        } catch {
            _ = unlinkat(folder, temporary, 0)
            throw error
        }
        try synchronize(folder)
    }

    /// Makes the names in a folder durable. A file system that cannot do that (EINVAL) is taken as done.
    package static func synchronize(_ folder: Int32) throws(Errno) {
        do throws(Errno) {
            _ = try call { fsync(folder) }
        } catch .invalidArgument {
            return
        }
    }

    /// Removes a file.
    package static func remove(_ path: FilePath) throws(Errno) {
        _ = try call { unlink(path.string) }
    }

    /// The names in a folder, without `.` and `..`, in no order; the first `limit` that the system gives.
    package static func names(in folder: FilePath, limit: Int) throws(Errno) -> [String] {
        let folder = try openFolder(folder)
        defer { withExtendedLifetime(folder) {} }
        return try names(in: folder.rawValue, limit: limit)
    }

    /// The names in an open folder.
    package static func names(in folder: Int32, limit: Int = .max) throws(Errno) -> [String] {
        // Another descriptor, which has a position of its own.
        let number = try call { openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
        guard let stream = fdopendir(number) else { throw Errno(rawValue: errno) }
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
    package static func makeFolder(_ path: FilePath) throws(Errno) {
        func make() -> Errno? {
            guard case .failure(let error) = SystemCall.retrying({ mkdir(path.string, 0o700) }) else { return nil }
            return error == .fileExists ? nil : error
        }
        guard let error = make() else { return }
        guard error == .noSuchFileOrDirectory, !path.removingLastComponent().isEmpty else { throw error }
        try makeFolder(path.removingLastComponent())
        if let error = make() { throw error }
    }

    /// Opens a folder; an empty path is the current one.
    static func openFolder(_ path: FilePath) throws(Errno) -> OwnedDescriptor {
        let path = path.isEmpty ? "." : path
        let number = try call { path.withPlatformString { open($0, O_RDONLY | O_DIRECTORY | O_CLOEXEC) } }
        return OwnedDescriptor(takingOwnershipOf: number)
    }

    private static func call<Value: FixedWidthInteger & SignedInteger>(_ body: () -> Value) throws(Errno) -> Value {
        try SystemCall.retrying(body).get()
    }
}
