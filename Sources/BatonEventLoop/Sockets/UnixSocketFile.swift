// SPDX-License-Identifier: Apache-2.0

import Glibc
import SystemPackage

/// The file of a Unix-domain listener: made with mode 0600, replaced only if its program is dead, removed with this
/// object.
///
/// A lock on the folder serializes programs that start at once. Without it, two could find the file of a dead program,
/// and the slower one would remove the file that the faster one has just made. Baton's programs hold it for
/// microseconds, and other programs have no reason to take it.
final class UnixSocketFile: Sendable {
    private let folder: SharedDescriptor
    private let path: String
    private let device: dev_t
    private let inode: ino_t

    /// Binds a fresh socket to a path and makes it listen.
    ///
    /// - Throws: `addressInUse` if a program or another user has the file, `notFound` without the folder, `other` if
    ///   the path is longer than 107 bytes or something else than a socket is there.
    init(listeningOn descriptor: Int32, at path: FilePath, backlog: Int32) throws(SocketError) {
        let activity = "listening at \(path)"
        func check<Value>(_ result: Result<Value, Errno>) throws(SocketError) -> Value {
            do { return try result.get() } catch { throw SocketError(error, while: activity) }
        }
        func bind() throws(SocketError) -> Result<Int32, Errno> {
            try SocketAddress.unix(path).withSystemAddress { pointer, length in
                SystemCall.once { Glibc.bind(descriptor, pointer, length) }
            }
        }
        let folder: SharedDescriptor
        do {
            folder = SharedDescriptor(try DurableFile.openFolder(path.removingLastComponent()))
        } catch {
            throw SocketError(error, while: activity)
        }
        _ = try check(SystemCall.retrying { flock(folder.rawValue, LOCK_EX) })
        defer { flock(folder.rawValue, LOCK_UN) }
        // Linux makes the file of a socket with the socket's mode, less the umask. So it is never open to others, and
        // the umask, which all threads share, stays unchanged.
        _ = try check(SystemCall.once { fchmod(descriptor, 0o600) })
        var bound = try bind()
        if case .failure(.addressInUse) = bound {
            try Self.removeStale(path, activity)
            bound = try bind()
        }
        _ = try check(bound)
        var status = stat()
        _ = try check(SystemCall.once { lstat(path.string, &status) })
        _ = try check(SystemCall.once { Glibc.listen(descriptor, backlog) })
        self.folder = folder
        self.path = path.string
        (device, inode) = (status.st_dev, status.st_ino)
    }

    deinit {
        flock(folder.rawValue, LOCK_EX)
        // Another file may have taken its place.
        var status = stat()
        if lstat(path, &status) == 0, status.st_dev == device, status.st_ino == inode { unlink(path) }
    }

    /// Removes a socket file whose program does not answer. The caller holds the lock.
    private static func removeStale(_ path: FilePath, _ activity: String) throws(SocketError) {
        var status = stat()
        // A plain file refuses connections like a dead socket, so its type is checked first.
        guard lstat(path.string, &status) == 0, status.st_mode & S_IFMT == S_IFSOCK else {
            throw SocketError(.notSocket, while: activity)
        }
        let probe = try SystemCall.streamSocket(AF_UNIX)
        let answer = try SocketAddress.unix(path).withSystemAddress { pointer, length in
            SystemCall.once { connect(probe.rawValue, pointer, length) }
        }
        // It is in use if it answers, its queue is full, or it is a socket of another kind or user.
        guard case .failure(.connectionRefused) = answer, unlink(path.string) == 0 else {
            throw SocketError(.addressInUse, while: activity)
        }
    }
}
