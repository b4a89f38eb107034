// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import FoundationEssentials
import Glibc
import SystemPackage

/// An open folder with files that only its owner may read.
///
/// Everything happens relative to the descriptor, so that the folder may be renamed underneath, and no link is
/// followed.
struct AccountFolder: ~Copyable {
    /// No file here is longer, in bytes; a longer one is not ours.
    static let maximumFileCount = 128 * 1024

    /// Where the folder was when it was opened; for messages.
    let path: FilePath
    private let descriptor: OwnedDescriptor

    static func open(_ path: FilePath, checkingAccess: Bool = true) throws(AccountError) -> AccountFolder? {
        let flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC
        guard let descriptor = try opened(path, { Glibc.open(path.string, flags) }) else { return nil }
        if checkingAccess { try checkAccess(of: descriptor, path: path, kind: S_IFDIR) }
        return AccountFolder(path: path, descriptor: descriptor)
    }

    /// Reads a whole file, or returns nil when there is none.
    ///
    /// - Throws: ``AccountError/exposed(path:isFolder:)`` when others can read it.
    func read(_ name: String) throws(AccountError) -> SecretBytes? {
        let path = path.appending(name)
        // Not blocking: opening a pipe that somebody put here must not hang.
        let flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC
        guard let file = try opened(path, { openat(descriptor.rawValue, name, flags) }) else { return nil }
        try checkAccess(of: file, path: path, kind: S_IFREG)
        do throws(SecretReadingError) {
            return try SecretBytes(readingFrom: file.fileDescriptor, limit: Self.maximumFileCount, until: .input)
        } catch {
            switch error {
            case .nothingToRead: throw .damaged(path: path, reason: "it is empty")
            case .tooLong(let limit): throw .damaged(path: path, reason: "it is longer than \(limit) bytes")
            case .failed(let error): throw .system(doing: "read", path: path, error: error)
            }
        }
    }

    /// Reads a file that must be there.
    func required(_ name: String) throws(AccountError) -> SecretBytes {
        guard let bytes = try read(name) else { throw .damaged(path: path.appending(name), reason: "it is missing") }
        return bytes
    }

    /// Writes a file so that a reader, or a crash, sees the old content or the new and nothing between.
    func write(_ name: String, _ bytes: UnsafeRawBufferPointer) throws(AccountError) {
        try system("write", path.appending(name)) { () throws(Errno) in
            try DurableFile.replace(name, in: descriptor.rawValue, with: bytes)
        }
    }

    func write(_ name: String, _ bytes: [UInt8]) throws(AccountError) {
        try bytes.withUnsafeBufferPointer { bytes throws(AccountError) in
            try write(name, UnsafeRawBufferPointer(bytes))
        }
    }

    func write(_ name: String, _ secret: SecretBytes) throws(AccountError) {
        try secret.withUnsafeBytes { bytes throws(AccountError) in try write(name, bytes) }
    }

    func write(_ name: String, json content: some Encodable) throws(AccountError) {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
        guard let text = try? encoder.encode(content) else { preconditionFailure("\(name) can be written as JSON") }
        try write(name, Array(text) + [UInt8(ascii: "\n")])
    }

    /// Locks the folder itself (`flock(2)`) until this value goes or the process ends. No file is left behind.
    ///
    /// - Returns: false if another process has locked it.
    func lock() throws(AccountError) -> Bool {
        if retrying({ flock(descriptor.rawValue, LOCK_EX | LOCK_NB) }) == 0 { return true }
        guard errno == EWOULDBLOCK else { throw .system(doing: "lock", path: path, error: Errno(rawValue: errno)) }
        return false
    }

    /// Makes the names in the folder survive a power cut.
    func synchronize() throws(AccountError) {
        try system("write", path) { () throws(Errno) in try DurableFile.synchronize(descriptor.rawValue) }
    }

    func names() throws(AccountError) -> [String] {
        try system("read", path) { () throws(Errno) in try DurableFile.names(in: descriptor.rawValue) }
    }

    /// Overwrites every file with zeros and removes it. A file that cannot be removed does not stop the others.
    ///
    /// Overwriting is best effort: a flash disk or a copying file system may keep the old blocks.
    ///
    /// - Parameter beginning: what the names of the files begin with; by default, any.
    /// - Throws: the first error, after everything else is done.
    func wipe(_ beginning: String = "") throws(AccountError) {
        var first: AccountError?
        for name in try names() where name.hasPrefix(beginning) {
            overwrite(name)
            do throws(AccountError) {
                try check(unlinkat(descriptor.rawValue, name, 0), "remove", path.appending(name))
            } catch {
                first = first ?? error
            }
        }
        if let first { throw first }
    }

    private func overwrite(_ name: String) {
        let file = retrying { openat(descriptor.rawValue, name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) }
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

/// Opens something; nil if it does not exist.
private func opened(_ path: FilePath, _ call: () -> Int32) throws(AccountError) -> OwnedDescriptor? {
    let number = retrying(call)
    if number < 0, errno == ENOENT { return nil }
    try check(number, "open", path)
    return OwnedDescriptor(takingOwnershipOf: number)
}

/// Refuses a path that others can read, that another user owns, or that is neither a file nor a folder.
private func checkAccess(
    of descriptor: borrowing OwnedDescriptor, path: FilePath, kind: mode_t
) throws(AccountError) {
    var status = stat()
    try check(fstat(descriptor.rawValue, &status), "open", path)
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
