// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import Glibc
import SystemPackage

/// An open folder with files that only its owner may read; closes its descriptor when it goes.
///
/// Everything happens relative to the descriptor, so that the folder may be renamed underneath, and no link is
/// followed.
struct AccountFolder: ~Copyable {
    /// No file here is longer, in bytes; a longer one is not ours.
    static let maximumFileCount = 128 * 1024

    /// Where the folder was when it was opened; for messages.
    let path: FilePath
    private let descriptor: Int32

    static func open(_ path: FilePath, checkingAccess: Bool = true) throws(AccountError) -> AccountFolder? {
        let descriptor = retrying { Glibc.open(path.string, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) }
        guard descriptor >= 0 else {
            if errno == ENOENT { return nil }
            throw .system(doing: "open", path: path, error: Errno(rawValue: errno))
        }
        let folder = AccountFolder(path: path, descriptor: descriptor)
        if checkingAccess { try checkAccess(of: descriptor, path: path, kind: S_IFDIR) }
        return folder
    }

    deinit { _ = close(descriptor) }

    /// Reads a whole file, or returns nil when there is none.
    ///
    /// - Throws: ``AccountError/exposed(path:isFolder:)`` when others can read it.
    func read(_ name: String) throws(AccountError) -> SecretBytes? {
        let path = path.appending(name)
        // Not blocking: opening a pipe that somebody put here must not hang.
        let file = retrying { openat(descriptor, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) }
        guard file >= 0 else {
            if errno == ENOENT { return nil }
            throw .system(doing: "open", path: path, error: Errno(rawValue: errno))
        }
        defer { _ = close(file) }
        try checkAccess(of: file, path: path, kind: S_IFREG)
        do throws(SecretReadingError) {
            return try SecretBytes(
                readingFrom: FileDescriptor(rawValue: file), limit: Self.maximumFileCount, until: .input)
        } catch {
            switch error {
            case .nothingToRead: throw .damaged(path: path, reason: "it is empty")
            case .tooLong(let limit): throw .damaged(path: path, reason: "it is longer than \(limit) bytes")
            case .failed(let error): throw .system(doing: "read", path: path, error: error)
            }
        }
    }

    /// Writes a file so that a reader, or a crash, sees the old content or the new and nothing between.
    func write(_ name: String, _ bytes: UnsafeRawBufferPointer) throws(AccountError) {
        try system("write", path.appending(name)) { () throws(Errno) in
            try DurableFile.replace(name, in: descriptor, with: bytes)
        }
    }

    /// Locks the folder itself (`flock(2)`) until this value goes or the process ends. No file is left behind.
    ///
    /// - Returns: false if another process has locked it.
    func lock() throws(AccountError) -> Bool {
        if retrying({ flock(descriptor, LOCK_EX | LOCK_NB) }) == 0 { return true }
        guard errno == EWOULDBLOCK else { throw .system(doing: "lock", path: path, error: Errno(rawValue: errno)) }
        return false
    }

    /// Makes the names in the folder survive a power cut.
    func synchronize() throws(AccountError) {
        try system("write", path) { () throws(Errno) in try DurableFile.synchronize(descriptor) }
    }

    func names() throws(AccountError) -> [String] {
        try system("read", path) { () throws(Errno) in try DurableFile.names(in: descriptor) }
    }

    /// Overwrites every file with zeros and removes it. A file that cannot be removed does not stop the others.
    ///
    /// Overwriting is best effort: a flash disk or a copying file system may keep the old blocks.
    ///
    /// - Throws: the first error, after everything else is done.
    func wipe() throws(AccountError) {
        var first: AccountError?
        for name in try names() {
            overwrite(name)
            do throws(AccountError) {
                try check(unlinkat(descriptor, name, 0), "remove", path.appending(name))
            } catch {
                first = first ?? error
            }
        }
        if let first { throw first }
    }

    /// Removes the beginnings of writes that were killed; only for the one process that writes here.
    func removeTemporaries() throws(AccountError) {
        for name in try names() where name.hasPrefix(".") {
            overwrite(name)
            try check(unlinkat(descriptor, name, 0), "remove", path.appending(name))
        }
    }

    private func overwrite(_ name: String) {
        let file = retrying { openat(descriptor, name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) }
        guard file >= 0 else { return }
        defer { _ = close(file) }
        var status = stat()
        // A file with a second name is somebody else's as well.
        guard fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_nlink == 1 else { return }
        let zeros = [UInt8](repeating: 0, count: 4096)
        var left = Int(min(status.st_size, off_t(Self.maximumFileCount)))
        while left > 0 {
            let count = Glibc.write(file, zeros, min(left, zeros.count))
            if count <= 0 { break }
            left -= count
        }
        _ = fsync(file)
    }
}

/// Refuses a path that others can read, that another user owns, or that is neither a file nor a folder.
private func checkAccess(of descriptor: Int32, path: FilePath, kind: mode_t) throws(AccountError) {
    var status = stat()
    try check(fstat(descriptor, &status), "open", path)
    guard status.st_mode & S_IFMT == kind else { throw .damaged(path: path, reason: "it is not a file") }
    guard status.st_uid == geteuid() else { throw .foreign(path: path) }
    guard status.st_mode & 0o077 == 0 else { throw .exposed(path: path, isFolder: kind == S_IFDIR) }
}

func check(_ result: some BinaryInteger, _ doing: String, _ path: FilePath) throws(AccountError) {
    guard result >= 0 else { throw .system(doing: doing, path: path, error: Errno(rawValue: errno)) }
}

/// Says what was being done when the system refused something.
func system<Value>(
    _ doing: String, _ path: FilePath, _ body: () throws(Errno) -> Value
) throws(AccountError) -> Value {
    do {
        return try body()
    } catch {
        throw .system(doing: doing, path: path, error: error)
    }
}

func retrying(_ call: () -> Int32) -> Int32 {
    while true {
        let result = call()
        if result >= 0 || errno != EINTR { return result }
    }
}
