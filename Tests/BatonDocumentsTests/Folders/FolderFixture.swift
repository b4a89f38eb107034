// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonTestSupport
import CLinux
import Foundation
import Glibc
import SystemPackage
import Testing

@testable import BatonDocuments

/// The content of a folder, read with plain calls and not by the code under test.
struct FolderSnapshot: Equatable {
    enum Kind: Equatable {
        case file(content: [UInt8], isExecutable: Bool)
        case folder
        case link([UInt8])
    }

    struct Item: Equatable {
        let kind: Kind
        /// Nanoseconds since 1970.
        let modified: Int
    }

    /// By path; the folder itself has none.
    private(set) var items: [[UInt8]: Item] = [:]
    /// Bytes that files have on the disk.
    private(set) var diskBytes: [[UInt8]: Int] = [:]

    init(_ root: FilePath) throws {
        try add(root, at: [])
    }

    static func == (one: FolderSnapshot, other: FolderSnapshot) -> Bool { one.items == other.items }

    /// The paths at which two folders differ, for people.
    func differences(from other: FolderSnapshot) -> [String] {
        Set(items.keys).union(other.items.keys).filter { items[$0] != other.items[$0] }.map { NameDisplay.escaped($0) }
            .sorted()
    }

    mutating func remove(_ path: [UInt8]) {
        items[path] = nil
    }

    private mutating func add(_ path: FilePath, at key: [UInt8]) throws {
        var status = stat()
        try SystemCalls.call { path.withPlatformString { lstat($0, &status) } }
        let modified = Int(status.st_mtim.tv_sec) * 1_000_000_000 + Int(status.st_mtim.tv_nsec)
        switch status.st_mode & S_IFMT {
        case S_IFREG:
            let isExecutable = status.st_mode & 0o100 != 0
            let content = status.st_size > 4 << 20 ? try Self.sum(path) : try DocumentFixture.read(path)
            items[key] = Item(kind: .file(content: content, isExecutable: isExecutable), modified: modified)
            diskBytes[key] = Int(status.st_blocks) * 512
        case S_IFDIR:
            items[key] = Item(kind: .folder, modified: modified)
            for name in DocumentFixture.components(in: path) {
                let bytes = name.withPlatformString { [UInt8](bytesOf: $0) }
                try add(path.appending(name), at: key.isEmpty ? bytes : key + [0x2F] + bytes)
            }
        case S_IFLNK:
            var target = [UInt8](repeating: 0, count: 5000)
            let count = target.withUnsafeMutableBytes { room in
                path.withPlatformString { readlink($0, room.baseAddress!.assumingMemoryBound(to: CChar.self), 5000) }
            }
            items[key] = Item(kind: .link(Array(target.prefix(count))), modified: modified)
        default:
            Issue.record("\(path) is of no kind that a document has")
        }
    }

    /// Size and checksum instead of a large content.
    private static func sum(_ path: FilePath) throws -> [UInt8] {
        let size = try SystemCalls.status(at: path).st_size
        let file = try SystemCalls.open(path, O_RDONLY)
        guard let start = mmap(nil, size, PROT_READ, MAP_PRIVATE, file.rawValue, 0), start != MAP_FAILED else {
            throw Errno(rawValue: errno)
        }
        defer { munmap(start, size) }
        let checksum = ChunkChecksum(of: UnsafeRawBufferPointer(start: start, count: size))
        return withUnsafeBytes(of: (size, checksum.high, checksum.low)) { Array($0) }
    }
}

/// A folder with a random tree in it, made from a seed.
struct RandomFolder {
    let path: FilePath
    /// The entries that no document can have.
    private(set) var leftOut: [[UInt8]] = []

    private var random: SeededGenerator
    private var budget: Int

    init(at path: FilePath, seed: UInt64, entries: Int) throws {
        self.path = path
        random = SeededGenerator(seed: seed)
        budget = entries
        try SystemCalls.call { path.withPlatformString { mkdir($0, 0o755) } }
        try fill(path, [], depth: 0)
        try setTime(path)
    }

    private mutating func fill(_ folder: FilePath, _ key: [UInt8], depth: Int) throws {
        var names: [[UInt8]] = []
        let count = Int.random(in: depth == 0 ? 6...12 : 0...6, using: &random)
        for _ in 0..<count where budget > 0 {
            budget -= 1
            let name = randomName()
            guard !names.contains(name) else { continue }
            let path = folder.appending(
                try #require(FilePath.Component(platformString: name.map { CChar(bitPattern: $0) } + [0])))
            let entry = key.isEmpty ? name : key + [0x2F] + name
            switch Int.random(in: 0..<10, using: &random) {
            case 0..<5: try makeFile(path)
            case 5..<8 where depth < 6:
                try SystemCalls.call { path.withPlatformString { mkdir($0, 0o755) } }
                try fill(path, entry, depth: depth + 1)
                try setTime(path)
            case 8:
                // The link's target need not exist.
                let sibling: [UInt8] = names.last ?? [0x78]
                let target: [UInt8] = Bool.random(using: &random) ? sibling : Array("./x/y".utf8)
                let isUpwards = depth > 0 && Bool.random(using: &random)
                try link(path, to: (isUpwards ? Array("../".utf8) : []) + target)
            default:
                leftOut.append(entry)
                switch Int.random(in: 0..<4, using: &random) {
                case 0: try link(path, to: Array("/etc/passwd".utf8))
                case 1: try link(path, to: Array((String(repeating: "../", count: depth + 1) + "x").utf8))
                case 2: try link(path, to: Array("x/../y".utf8))
                default: try SystemCalls.call { path.withPlatformString { mkfifo($0, 0o600) } }
                }
            }
            names.append(name)
        }
    }

    private mutating func randomName() -> [UInt8] {
        switch Int.random(in: 0..<12, using: &random) {
        case 0:
            let names = [".hidden", "a", "a.b", "a b", "-rf", "a\nb", "é", "..."]
            return Array(names[Int.random(in: 0..<names.count, using: &random)].utf8)
        case 1: return [UInt8](repeating: UInt8.random(in: 0x61...0x7A, using: &random), count: 255)
        case 2...4:
            let count = Int.random(in: 1...20, using: &random)
            let bytes = random.bytes(count).map { $0 == 0 || $0 == 0x2F ? 0xFF : $0 }
            return bytes == [0x2E] || bytes == [0x2E, 0x2E] ? [0x80] : bytes
        default: return Array("name\(Int.random(in: 0..<1000, using: &random))".utf8)
        }
    }

    private mutating func makeFile(_ path: FilePath) throws {
        let mode: mode_t = Bool.random(using: &random) ? 0o755 : 0o644
        switch Int.random(in: 0..<8, using: &random) {
        case 0: try DocumentFixture.write([], to: path, mode: mode)
        case 1:
            let size = Int.random(in: 1...(3 << 20), using: &random)
            try DocumentFixture.write(DocumentFixture.content(size, seed: random.next()), to: path, mode: mode)
        case 2: try makeSparse(path, mode)
        case 3: try DocumentFixture.write([UInt8](repeating: 0, count: 5000), to: path, mode: mode)
        default:
            let size = Int.random(in: 1...9000, using: &random)
            try DocumentFixture.write(DocumentFixture.content(size, seed: random.next()), to: path, mode: mode)
        }
        try setTime(path)
    }

    private mutating func makeSparse(_ path: FilePath, _ mode: mode_t) throws {
        let size = off_t.random(in: (4 << 20)...(24 << 20), using: &random)
        for _ in 0..<Int.random(in: 0...3, using: &random) {
            let offset = UInt64.random(in: 0..<UInt64(size) - 70_000, using: &random)
            try DocumentFixture.write(
                DocumentFixture.content(70_000, seed: random.next()), to: path, at: offset, mode: mode)
        }
        try DocumentFixture.write([], to: path, mode: mode)
        try SystemCalls.call { path.withPlatformString { truncate($0, size) } }
    }

    private mutating func link(_ path: FilePath, to target: [UInt8]) throws {
        let target = target.map { CChar(bitPattern: $0) } + [0]
        try SystemCalls.call { path.withPlatformString { symlink(target, $0) } }
        try setTime(path)
    }

    private mutating func setTime(_ path: FilePath) throws {
        let seconds = Int.random(in: 1...2_000_000_000, using: &random)
        let time = timespec(tv_sec: seconds, tv_nsec: Int.random(in: 0..<1_000_000_000, using: &random))
        var times = [time, time]
        try SystemCalls.call { path.withPlatformString { utimensat(AT_FDCWD, $0, &times, AT_SYMLINK_NOFOLLOW) } }
    }
}

/// Helpers that the folder tests share.
enum FolderFixture {
    /// Where a test makes parts by itself, with a ledger beside the destination.
    static func place(_ folder: FilePath, umask: mode_t = 0o022, ledger: FilePath? = nil) throws -> PartPlace {
        let state = ledger ?? folder.removingLastComponent().appending("ledger")
        let parts = try PartFileLedger(stateFolder: state)
        return PartPlace(
            folder: try DestinationFolder(folder), ledger: parts, umask: umask, records: try parts.openFolder())
    }

    /// Writes a file of a document to a part folder in pieces of random sizes, holes as holes.
    static func copy(
        _ index: Int, of files: DocumentFiles, into part: Part, _ random: inout SeededGenerator
    ) throws {
        let opened = try files.open(file: index)
        let isSparse = files.tree.entry(ofFile: index).file?.isSparse == true
        var offset: UInt64 = 0
        while offset < opened.size {
            let counts = isSparse ? [64 << 10] : [1 << 20, 64 << 10, Int.random(in: 1...300_000, using: &random)]
            let count = UInt64(counts[Int.random(in: 0..<counts.count, using: &random)])
            let range = offset..<min(opened.size, offset + count)
            if opened.isHole(range) {
                try part.clear(range, ofFile: index)
            } else {
                try part.write(try read(opened, range), toFile: index, at: offset)
            }
            offset = range.upperBound
        }
    }

    static func read(_ file: borrowing OpenedFile, _ range: Range<UInt64>) throws -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: Int(range.count))
        let count = try bytes.withUnsafeMutableBytes {
            try SystemCalls.read(file.descriptor, into: $0, at: range.lowerBound)
        }
        #expect(count == bytes.count)
        return bytes
    }

    /// A tree of entries, as another device could describe it.
    static func tree(_ entries: [(String, DocumentEntry.Kind)], called name: String = "folder") throws -> DocumentTree {
        var builder = DocumentTree.Builder(try DocumentLabel(Array(name.utf8)))
        try builder.append(DocumentEntry(path: .root, kind: .folder))
        for (path, kind) in entries {
            try builder.append(DocumentEntry(path: try EntryPath(Array(path.utf8)), kind: kind))
        }
        return try builder.finish()
    }

    static func file(_ size: Int, isSparse: Bool = false) -> DocumentEntry.Kind {
        .file(.init(size: UInt64(size), isSparse: isSparse))
    }
}
