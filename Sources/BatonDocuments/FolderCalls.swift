// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import CLinux
import Glibc
import SystemPackage

/// The calls about what is in an open folder. Names are bytes, and the kernel is told to follow no link.
extension SystemCalls {
    /// Opens what a path of one or more names is beneath a folder: no component may be a link, and nothing leads out.
    static func open(
        _ path: some Collection<UInt8>, beneath folder: borrowing OwnedDescriptor, _ flags: Int32, mode: mode_t = 0
    ) throws(Errno) -> OwnedDescriptor {
        OwnedDescriptor(
            takingOwnershipOf: try kernel(path, in: folder) {
                baton_open_beneath($0, $1, UInt64(flags | O_CLOEXEC), UInt64(mode))
            })
    }

    /// The same for a folder that is on the same file system, and not another one that is mounted there.
    static func openFolder(
        _ name: some Collection<UInt8>, within folder: borrowing OwnedDescriptor
    ) throws(Errno) -> OwnedDescriptor {
        OwnedDescriptor(
            takingOwnershipOf: try kernel(name, in: folder) {
                baton_open_within($0, $1, UInt64(O_RDONLY | O_DIRECTORY | O_CLOEXEC))
            })
    }

    /// The same for something that is only looked at, whatever it is: a pipe or device is not opened by it.
    ///
    /// - Parameter followingLinks: whether links are followed that do not lead out. Default false.
    static func look(
        at path: some Collection<UInt8>, beneath folder: borrowing OwnedDescriptor, followingLinks: Bool = false
    ) throws(Errno) -> OwnedDescriptor {
        OwnedDescriptor(
            takingOwnershipOf: try kernel(path, in: folder) {
                followingLinks ? baton_find_beneath($0, $1) : baton_look_beneath($0, $1)
            })
    }

    /// The status of a name in a folder; a link itself is described, not followed.
    static func status(
        ofName name: some Collection<UInt8>, in folder: borrowing OwnedDescriptor
    ) throws(Errno) -> stat {
        var status = stat()
        try call(name, in: folder) { fstatat($0, $1, &status, AT_SYMLINK_NOFOLLOW) }
        return status
    }

    /// Where a link leads, at most `limit` bytes of it.
    static func target(
        ofLink name: some Collection<UInt8>, in folder: borrowing OwnedDescriptor, limit: Int
    ) throws(Errno) -> [UInt8] {
        var room = [CChar](repeating: 0, count: limit)
        let count = try call(name, in: folder) { readlinkat($0, $1, &room, limit) }
        return room.prefix(count).map { UInt8(bitPattern: $0) }
    }

    /// Makes a folder. One that is there already is an error.
    static func makeFolder(
        _ name: some Collection<UInt8>, in folder: borrowing OwnedDescriptor, mode: mode_t
    ) throws(Errno) {
        try call(name, in: folder) { mkdirat($0, $1, mode) }
    }

    /// Makes a link to a path, whatever is there. A name that is taken is an error.
    static func makeLink(
        _ name: some Collection<UInt8>, to target: [UInt8], in folder: borrowing OwnedDescriptor
    ) throws(Errno) {
        let number = folder.rawValue
        try withName(target) { (target) throws(Errno) in
            try withName(name) { (name) throws(Errno) in try call { symlinkat(target, number, name) } }
        }
    }

    /// Removes a name that is no folder, or an empty folder.
    static func remove(
        _ name: some Collection<UInt8>, from folder: borrowing OwnedDescriptor, isFolder: Bool
    ) throws(Errno) {
        try call(name, in: folder) { unlinkat($0, $1, isFolder ? AT_REMOVEDIR : 0) }
    }

    /// The names in a folder from where its descriptor stands, without the two dots; at most `limit` and what came with
    /// the last of them: some 64 KiB of names.
    static func names(in folder: borrowing OwnedDescriptor, atLeast limit: Int) throws(Errno) -> [[UInt8]] {
        let number = folder.rawValue
        var names: [[UInt8]] = []
        try withUnsafeTemporaryAllocation(byteCount: 64 << 10, alignment: 8) { room throws(Errno) in
            while names.count < limit {
                let count = try kernel { baton_read_folder(number, room.baseAddress, room.count) }
                if count == 0 { return }
                append(UnsafeRawBufferPointer(rebasing: room[..<Int(count)]), to: &names)
            }
        }
        return names
    }

    /// Takes entries apart: inode and offset (8 bytes each), length (2), type (1), and a name that ends with NUL.
    private static func append(_ entries: UnsafeRawBufferPointer, to names: inout [[UInt8]]) {
        let (lengthOffset, nameOffset) = (16, 19)
        var position = 0
        while position + nameOffset < entries.count {
            let length = Int(entries.loadUnaligned(fromByteOffset: position + lengthOffset, as: UInt16.self))
            let end = min(position + length, entries.count)
            guard end > position + nameOffset else { return }
            let name = entries[position + nameOffset..<end].prefix { $0 != 0 }
            position = end
            let dot = UInt8(ascii: ".")
            if name.elementsEqual([dot]) || name.elementsEqual([dot, dot]) { continue }
            names.append(Array(name))
        }
    }

    /// Runs a call of the C library that takes an open folder and a name in it.
    @discardableResult
    private static func call<Value: FixedWidthInteger>(
        _ name: some Collection<UInt8>, in folder: borrowing OwnedDescriptor,
        _ body: (Int32, UnsafePointer<CChar>) -> Value
    ) throws(Errno) -> Value {
        let number = folder.rawValue
        return try withName(name) { (name) throws(Errno) in try call { body(number, name) } }
    }

    /// The same for a call of CLinux.
    private static func kernel(
        _ name: some Collection<UInt8>, in folder: borrowing OwnedDescriptor,
        _ body: (Int32, UnsafePointer<CChar>) -> Int32
    ) throws(Errno) -> Int32 {
        let number = folder.rawValue
        return try withName(name) { (name) throws(Errno) in try kernel { body(number, name) } }
    }

    /// Calls `body` with bytes as a C string.
    @discardableResult
    static func withName<Value: ~Copyable>(
        _ name: some Collection<UInt8>, _ body: (UnsafePointer<CChar>) throws(Errno) -> Value
    ) throws(Errno) -> Value {
        try withUnsafeTemporaryAllocation(of: CChar.self, capacity: name.count + 1) { room throws(Errno) in
            var end = 0
            for byte in name {
                room[end] = CChar(bitPattern: byte)
                end += 1
            }
            room[end] = 0
            guard let start = room.baseAddress else { throw Errno.invalidArgument }
            return try body(UnsafePointer(start))
        }
    }

    /// Sets when a file's content last changed. File systems that cannot are taken as done.
    static func setTime(_ time: FileIdentity.Time, of file: borrowing OwnedDescriptor) throws(Errno) {
        let number = file.rawValue
        try setTime(time) { futimens(number, $0) }
    }

    /// The same for a name in a folder; of a link its own time is set, and not that of what it leads to.
    static func setTime(
        _ time: FileIdentity.Time, ofName name: some Collection<UInt8>, in folder: borrowing OwnedDescriptor
    ) throws(Errno) {
        let number = folder.rawValue
        try withName(name) { (name) throws(Errno) in
            try setTime(time) { utimensat(number, name, $0, AT_SYMLINK_NOFOLLOW) }
        }
    }

    private static func setTime(
        _ time: FileIdentity.Time, _ set: (UnsafePointer<timespec>) -> Int32
    ) throws(Errno) {
        let modified = timespec(tv_sec: Int(time.seconds), tv_nsec: min(max(0, Int(time.nanoseconds)), 999_999_999))
        // The time of the last access stays.
        let times = [timespec(tv_sec: 0, tv_nsec: Int(baton_omitted_time())), modified]
        do {
            try call { set(times) }
        } catch .notPermitted, .notSupported, .invalidArgument {
            return
        }
    }
}

/// Properties of a file system.
struct FileSystem: Sendable {
    /// A number that it keeps, whatever the number of the device on which it is found; nil where it tells none.
    let number: UInt64?
    /// Whether files keep their inode numbers. FAT, exFAT and most daemons of FUSE do not: Linux makes numbers up, and
    /// forgets them when the disk is unplugged or memory is short. An open file keeps its number in any case.
    private let keepsInodes: Bool

    /// The one that an open file or folder is on.
    init(of file: borrowing OwnedDescriptor) {
        let number = baton_file_system_number(file.rawValue)
        self.number = number == 0 ? nil : number
        keepsInodes = ![0x4D44, 0x2011_BAB0, 0x6573_5546].contains(baton_file_system(file.rawValue))
    }

    /// The one that a file or folder is on that can be opened for reading; blocks.
    init(at path: FilePath) throws(Errno) {
        self.init(of: try SystemCalls.open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY))
    }

    /// The inode by which a part is known again. Where inodes are not kept it is always 1, and a part is known by its
    /// random name alone.
    func number(of status: stat) -> UInt64 { keepsInodes ? UInt64(status.st_ino) : 1 }
}
