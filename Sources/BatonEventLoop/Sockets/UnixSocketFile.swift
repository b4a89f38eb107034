// SPDX-License-Identifier: Apache-2.0

import Glibc
import Synchronization
import SystemPackage

/// The file of a Unix-domain listener: made with mode 0600, replaced only if its program is dead, removed at the end.
///
/// Every call is relative to a descriptor of the folder. That also reaches paths longer than the 107 bytes of a
/// `sockaddr_un`, as `/proc/self/fd/N/name`. A lock on the folder serializes programs that start at once. Without it,
/// two could find the file of a dead program, and the slower one would remove the file that the faster one has just
/// made.
final class UnixSocketFile: Sendable {
    private let folder: SharedDescriptor
    private let name: String
    private let device: dev_t
    private let inode: ino_t
    private let isRemoved = Atomic<Bool>(false)

    /// The longest wait for the lock on the folder, which Baton's own programs hold for microseconds.
    private static let lockTimeout = Duration.seconds(1)

    private init(folder: SharedDescriptor, name: String, status: stat) {
        self.folder = folder
        self.name = name
        device = status.st_dev
        inode = status.st_ino
    }

    deinit {
        remove()
    }

    /// Binds a fresh socket to a path and makes it listen.
    ///
    /// - Throws: `addressInUse` if a program answers there, `notASocket` if something else is there, `pathTooLong` for
    ///   a *name* of more than about 85 bytes, `notFound` without the folder, `permissionDenied`.
    static func listen(_ descriptor: Int32, at path: FilePath, backlog: Int32) throws(SocketError) -> UnixSocketFile {
        let activity = "listening at \(path)"
        let name = try lastName(of: path)
        let folder = SharedDescriptor(try openFolder(of: path))
        let address = try shortAddress(of: path, name: name, in: folder.rawValue)

        // Linux makes the file of a socket with the socket's mode, less the umask. So it is never open to others, and
        // the umask, which all threads share, stays unchanged.
        try check(SystemCall.once { fchmod(descriptor, 0o600) }, activity)

        try lock(folder.rawValue, activity)
        defer { flock(folder.rawValue, LOCK_UN) }

        var bound = try address.withSystemAddress { pointer, length in
            SystemCall.once { bind(descriptor, pointer, length) }
        }
        if case .failure(.addressInUse) = bound {
            try removeStale(name: name, in: folder.rawValue, address, activity)
            bound = try address.withSystemAddress { pointer, length in
                SystemCall.once { bind(descriptor, pointer, length) }
            }
        }
        try check(bound, activity)
        var status = stat()
        do throws(SocketError) {
            try check(SystemCall.once { fstatat(folder.rawValue, name, &status, AT_SYMLINK_NOFOLLOW) }, activity)
            try check(SystemCall.once { Glibc.listen(descriptor, backlog) }, activity)
        } catch {
            unlinkat(folder.rawValue, name, 0)
            throw error
        }
        return UnixSocketFile(folder: folder, name: name, status: status)
    }

    /// Calls `connect` with an address, whatever the length of its path.
    ///
    /// - Returns: the result of the call.
    /// - Throws: the reason why the call could not be made.
    static func connect(_ descriptor: Int32, to address: SocketAddress) throws(SocketError) -> Result<Int32, Errno> {
        guard case .unix(let path) = address, path.length > SocketAddress.longestUnixPath else {
            return try address.withSystemAddress { pointer, length in
                SystemCall.once { Glibc.connect(descriptor, pointer, length) }
            }
        }
        let folder = try openFolder(of: path)
        let short = try shortAddress(of: path, name: try lastName(of: path), in: folder.rawValue)
        return try short.withSystemAddress { pointer, length in
            SystemCall.once { Glibc.connect(descriptor, pointer, length) }
        }
    }

    /// Removes the file, unless another one has taken its place. Idempotent.
    func remove() {
        guard isRemoved.compareExchange(expected: false, desired: true, ordering: .relaxed).exchanged else { return }
        // Without the lock, which somebody may hold for long, the check below has a race of a moment.
        try? Self.lock(folder.rawValue, "")
        defer { flock(folder.rawValue, LOCK_UN) }
        var status = stat()
        guard fstatat(folder.rawValue, name, &status, AT_SYMLINK_NOFOLLOW) == 0,
            status.st_dev == device, status.st_ino == inode
        else { return }
        unlinkat(folder.rawValue, name, 0)
    }

    // MARK: - Parts

    private static func lastName(of path: FilePath) throws(SocketError) -> String {
        guard let component = path.lastComponent, component.kind == .regular else {
            throw SocketError(.invalidAddress, while: "using the socket \(path)")
        }
        return component.string
    }

    private static func openFolder(of path: FilePath) throws(SocketError) -> OwnedDescriptor {
        let folder = path.removingLastComponent()
        do throws(Errno) {
            return try DurableFile.openFolder(folder)
        } catch {
            throw SocketError(error, while: "opening the folder \(folder)")
        }
    }

    /// The path itself if it fits, otherwise one through the open folder.
    private static func shortAddress(
        of path: FilePath, name: String, in folder: Int32
    ) throws(SocketError) -> SocketAddress {
        guard path.length > SocketAddress.longestUnixPath else { return .unix(path) }
        let short = FilePath("/proc/self/fd/\(folder)/\(name)")
        guard short.length <= SocketAddress.longestUnixPath else {
            throw SocketError(.pathTooLong, while: "using the socket \(path)")
        }
        return .unix(short)
    }

    private static func check(_ result: Result<Int32, Errno>, _ activity: String) throws(SocketError) {
        if case .failure(let error) = result { throw SocketError(error, while: activity) }
    }

    private static func lock(_ folder: Int32, _ activity: String) throws(SocketError) {
        let deadline = MonotonicClock.deadline(after: lockTimeout) ?? 0
        while flock(folder, LOCK_EX | LOCK_NB) != 0 {
            let error = Errno(rawValue: errno)
            guard error.meansWouldBlock || error == .interrupted else { throw SocketError(error, while: activity) }
            guard MonotonicClock.nanoseconds() < deadline else {
                throw SocketError(.addressInUse, while: activity, underlyingError: error)
            }
            poll(nil, 0, 5)
        }
    }

    /// Removes a socket file whose program does not answer. The caller holds the lock.
    private static func removeStale(
        name: String, in folder: Int32, _ address: SocketAddress, _ activity: String
    ) throws(SocketError) {
        var status = stat()
        switch SystemCall.once({ fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) }) {
        case .failure(.noSuchFileOrDirectory): return
        case .failure(let error): throw SocketError(error, while: activity)
        case .success: break
        }
        // A plain file refuses connections like a dead socket, so its type is checked first.
        guard status.st_mode & S_IFMT == S_IFSOCK else { throw SocketError(.notASocket, while: activity) }
        let probe = try SystemCall.streamSocket(AF_UNIX)
        let answer = try address.withSystemAddress { pointer, length in
            SystemCall.once { Glibc.connect(probe.rawValue, pointer, length) }
        }
        switch answer {
        case .failure(.noSuchFileOrDirectory): return
        case .failure(.connectionRefused):
            switch SystemCall.once({ unlinkat(folder, name, 0) }) {
            case .success, .failure(.noSuchFileOrDirectory): return
            case .failure(let error): throw SocketError(error, while: activity)
            }
        case .failure(.permissionDenied):
            throw SocketError(.permissionDenied, while: activity, underlyingError: .permissionDenied)
        case .success, .failure:
            // In use: it answered, or its queue is full, or it is a socket of another kind.
            throw SocketError(.addressInUse, while: activity, underlyingError: .addressInUse)
        }
    }
}
