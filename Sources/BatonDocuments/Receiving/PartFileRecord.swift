// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import CLinux
import Glibc
import SystemPackage

/// One line of the ledger: which unfinished file is whose.
///
/// On disk: folder, name, inode (20 decimal digits) and file system, each ended by a NUL byte, in a file that is named
/// after the part file's random tag. A record that was cut short by a crash does not parse and names nothing.
struct PartFileRecord: Equatable {
    static let suffix = ".part-record"
    static let journalSuffix = ".journal"
    /// As many as the largest inode has.
    static let inodeDigits = 20
    /// PATH_MAX, NAME_MAX, the digits and the NULs, rounded up: what is longer is no record.
    static let maximumSize = 8192

    enum Removal: Equatable {
        case removed
        /// Nothing has its name: somebody has removed it.
        case gone
        /// Something else has its name.
        case doesNotFit
        /// The folder cannot be looked at, or has another file system in the place of the part's: a disk is not there.
        case unreachable
    }

    /// Absolute path of the destination folder.
    let folder: FilePath
    /// The part file's name in it.
    let name: [UInt8]
    /// The random letters in the name, which also name the record.
    let tag: String
    /// The part file's inode, or 0 as long as it was not made yet.
    var inode: UInt64 = 0
    /// The file system of the folder (``FileSystem/number``): the folder that a disk is mounted on is there without it
    /// as well, and has nothing in it. Nil where nobody can tell it from another one: the number of a device is the
    /// next one's that is plugged in.
    var fileSystem: UInt64?
}

extension PartFileRecord {
    /// A record of a new part for a document.
    init(of label: DocumentLabel, in folder: DestinationFolder) {
        let tag = PartFileName.makeTag()
        self.init(
            folder: folder.resolvedPath, name: PartFileName.make(for: label, tag: tag), tag: tag,
            fileSystem: folder.fileSystem.number)
    }

    /// Reads a record; nil when it is none.
    ///
    /// - Throws: what opening or reading it threw.
    init?(readingFrom path: FilePath) throws(Errno) {
        let bytes = try SystemCalls.contents(of: path, limit: Self.maximumSize + 1)
        guard bytes.count <= Self.maximumSize, bytes.last == 0 else { return nil }
        let fields = bytes.dropLast().split(separator: 0, omittingEmptySubsequences: false)
        guard
            fields.count == 4 || fields.count == 3, let label = try? DocumentLabel(fields[1]),
            let inode = UInt64(String(decoding: fields[2], as: UTF8.self)), let tag = path.stem
        else { return nil }
        let folder = FilePath(platformString: fields[0].map { CChar(bitPattern: $0) } + [0])
        guard folder.isAbsolute else { return nil }
        self.init(
            folder: folder, name: label.bytes, tag: tag, inode: inode,
            // Those of earlier versions do not say.
            fileSystem: fields.count == 4 ? UInt64(String(decoding: fields[3], as: UTF8.self)) : nil)
    }

    /// Writes the record, or over an earlier state of it: only the inode's digits change, in one call.
    ///
    /// In place rather than by renaming, because ext4 flushes what replaces another file: 9 ms instead of 0.05.
    func write(to path: FilePath) throws(Errno) {
        let digits = String(inode)
        let field = String(repeating: "0", count: Self.inodeDigits - digits.utf8.count) + digits
        let system = fileSystem.map(String.init) ?? ""
        let bytes =
            folder.withPlatformString { [UInt8](bytesOf: $0) } + [0] + name + [0] + Array(field.utf8) + [0]
            + Array(system.utf8) + [0]
        let file = try SystemCalls.open(path, O_WRONLY | O_CREAT | O_NOFOLLOW, mode: 0o600)
        try bytes.withUnsafeBufferPointer { (bytes) throws(Errno) in
            try SystemCalls.write(UnsafeRawBufferPointer(bytes), to: file, at: 0)
        }
    }

    /// Removes the recorded part file, of the folder that is at its path now.
    func removePart() -> Removal {
        guard let folder = try? SystemCalls.open(folder, O_RDONLY | O_DIRECTORY | O_NONBLOCK) else {
            return .unreachable
        }
        return removePart(from: folder, on: FileSystem(of: folder))
    }

    /// Whether a part whose name nothing has in its folder was removed, and is not on a disk that is not there.
    ///
    /// - Parameter system: the file system of the folder now.
    func isLost(on system: UInt64?) -> Bool {
        // A part that was never made is nowhere else.
        inode == 0 || system != nil && system == fileSystem
    }

    /// Removes the recorded part file from its folder.
    ///
    /// A record without inode is of a process that died between recording and making the file, or just after: then
    /// only an empty file of the (random) name can be ours.
    func removePart(from folder: borrowing OwnedDescriptor, on system: FileSystem) -> Removal {
        do throws(Errno) {
            let status = try SystemCalls.status(ofName: name, in: folder)
            let isFolder = status.st_mode & S_IFMT == S_IFDIR
            guard isFolder || status.st_mode & S_IFMT == S_IFREG else { return .doesNotFit }
            guard inode != 0 else {
                // Only an empty one can be ours.
                guard isFolder || status.st_size == 0 else { return .doesNotFit }
                try SystemCalls.remove(name, from: folder, isFolder: isFolder)
                return .removed
            }
            guard system.number(of: status) == inode else { return .doesNotFit }
            if isFolder {
                guard status.st_uid == geteuid() else { return .doesNotFit }
                // This empties the part, and no other folder that was put in its place meanwhile.
                let opened = try SystemCalls.openOwnFolder(name, within: folder)
                guard system.number(of: try SystemCalls.status(of: opened)) == inode else { return .doesNotFit }
                try FolderRemoval.removeContents(of: opened)
            }
            try SystemCalls.remove(name, from: folder, isFolder: isFolder)
            return .removed
        } catch {
            return error == .noSuchFileOrDirectory && isLost(on: system.number) ? .gone : .unreachable
        }
    }
}

/// The destination of a part, with everything that making one needs.
struct PartPlace: Sendable {
    let folder: DestinationFolder
    let ledger: PartFileLedger
    let umask: mode_t
    /// The folder of the ledger. A confined thread cannot open it.
    let records: OpenEntry
    var naming = DocumentNaming.own

    /// Makes the record of a part durable, and the names of part, record and journal. A journal that vouches for chunks
    /// is of no use if a power cut takes these away.
    func synchronize(_ record: PartFileRecord) throws(Errno) {
        try SystemCalls.synchronize(try SystemCalls.open(ledger.path(ofRecord: record.tag), O_WRONLY | O_NOFOLLOW))
        try SystemCalls.synchronize(records.descriptor)
        try SystemCalls.synchronize(folder.file)
    }
}

/// Names of part files: `.NAME.XXXXXXXX.baton-part`.
enum PartFileName {
    static let suffix = ".baton-part"
    private static let letters = Array("abcdefghijklmnopqrstuvwxyz234567".utf8)

    /// Eight random letters: 40 bits, so that nobody can put something in the way.
    static func makeTag() -> String {
        String(decoding: (0..<8).map { _ in letters[Int.random(in: 0..<letters.count)] }, as: UTF8.self)
    }

    /// The name, at most 255 bytes: the label's part is cut to what fits.
    static func make(for label: DocumentLabel, tag: String) -> [UInt8] {
        let ending = Array(".\(tag)\(suffix)".utf8)
        let stem = DocumentLabel.cut(label.bytes[...], DocumentLabel.maximumLength - 1 - ending.count)
        return [UInt8(ascii: ".")] + stem + ending
    }
}

/// The bits that the user does not want on new files.
enum ProcessUmask {
    /// Read from the kernel, because umask(2) can only tell by setting it for the whole process. 0o077 where that is
    /// not to be had: the safe side.
    static var current: mode_t {
        let bytes = (try? SystemCalls.contents(of: FilePath("/proc/self/status"), limit: 4096)) ?? []
        let lines = bytes.split(separator: UInt8(ascii: "\n"))
        let key = Array("Umask:".utf8)
        guard let line = lines.first(where: { $0.starts(with: key) }) else { return 0o077 }
        let digits = line.dropFirst(key.count).filter { $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "7") }
        return mode_t(String(decoding: digits, as: UTF8.self), radix: 8) ?? 0o077
    }
}
