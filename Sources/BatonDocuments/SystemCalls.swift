// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import CLinux
import Glibc
import SystemPackage

/// The file system calls of this room, each with the retry on EINTR and the error as a value, written once.
enum SystemCalls {
    /// The status of an open file or folder.
    static func status(of file: borrowing OwnedDescriptor) throws(Errno) -> stat {
        let number = file.rawValue
        var status = stat()
        try call { fstat(number, &status) }
        return status
    }

    /// Throws if this process may not make entries in an open folder, or its file system is read-only.
    static func requireWritable(_ folder: borrowing OwnedDescriptor) throws(Errno) {
        let number = folder.rawValue
        try call { faccessat(number, ".", W_OK | X_OK, AT_EACCESS) }
    }

    /// The status of a path; links are followed.
    static func status(at path: FilePath) throws(Errno) -> stat {
        var status = stat()
        try call { path.withPlatformString { stat($0, &status) } }
        return status
    }

    /// Opens a path with `open`'s flags; the descriptor is closed on exec.
    static func open(_ path: FilePath, _ flags: Int32, mode: mode_t = 0) throws(Errno) -> OwnedDescriptor {
        let number = try call { path.withPlatformString { Glibc.open($0, flags | O_CLOEXEC, mode) } }
        return OwnedDescriptor(takingOwnershipOf: number)
    }

    /// Reads at an offset until the buffer is full or the file ends.
    ///
    /// - Returns: the bytes read: fewer than asked for only at the end of the file.
    static func read(
        _ file: borrowing OwnedDescriptor, into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64
    ) throws(Errno) -> Int {
        let number = file.rawValue
        var taken = 0
        while taken < buffer.count, let start = buffer.baseAddress {
            let count = try call { pread(number, start + taken, buffer.count - taken, off_t(offset) + taken) }
            if count == 0 { break }
            taken += count
        }
        return taken
    }

    /// Drops what the page cache has of a range and the disk has taken, or has refused to take. Advice: a file system
    /// without a disk keeps it.
    static func leaveCache(_ range: Range<UInt64>, of file: borrowing OwnedDescriptor) {
        _ = posix_fadvise(file.rawValue, off_t(range.lowerBound), off_t(range.count), POSIX_FADV_DONTNEED)
    }

    /// The first `limit` bytes of a small file.
    static func contents(of path: FilePath, limit: Int) throws(Errno) -> [UInt8] {
        let file = try open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
        var bytes = [UInt8](repeating: 0, count: limit)
        let count = try bytes.withUnsafeMutableBufferPointer { (room) throws(Errno) in
            try read(file, into: UnsafeMutableRawBufferPointer(room), at: 0)
        }
        return Array(bytes.prefix(count))
    }

    /// Writes all bytes at an offset.
    static func write(
        _ bytes: UnsafeRawBufferPointer, to file: borrowing OwnedDescriptor, at offset: UInt64
    ) throws(Errno) {
        let number = file.rawValue
        var taken = 0
        while taken < bytes.count, let start = bytes.baseAddress {
            taken += try call { pwrite(number, start + taken, bytes.count - taken, off_t(offset) + taken) }
        }
    }

    /// Makes a file's or folder's state durable. File systems that cannot do it for a folder (EINVAL) are taken as
    /// done.
    static func synchronize(_ file: borrowing OwnedDescriptor) throws(Errno) {
        let number = file.rawValue
        do {
            try call { fsync(number) }
        } catch .invalidArgument {
            return
        }
    }

    /// Runs a call of the C library (-1 and `errno`), again as long as a signal interrupts it.
    @discardableResult
    static func call<Value: FixedWidthInteger>(_ body: () -> Value) throws(Errno) -> Value {
        while true {
            let value = body()
            if value != -1 { return value }
            let error = Errno(rawValue: errno)
            if error != .interrupted { throw error }
        }
    }

    /// Runs a call of CLinux (the negated error number), again as long as a signal interrupts it.
    @discardableResult
    static func kernel(_ body: () -> Int32) throws(Errno) -> Int32 {
        while true {
            let value = body()
            if value >= 0 { return value }
            if -value != EINTR { throw Errno(rawValue: -value) }
        }
    }
}
