// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonProtocol
import BatonTestSupport
import Glibc
import SystemPackage
import Testing

@testable import BatonDocuments

@Suite("Writing past the page cache")
struct PartOutputTests {
    static let chunk = ChunkLayout.chunkSize

    let scratch: ScratchFolder

    init() throws {
        scratch = try ScratchFolder()
    }

    private func open(
        in folder: FilePath? = nil, size: UInt64 = OpenFile.directSize, alignment: Int? = nil
    ) throws -> OpenFile {
        let path = (folder ?? scratch.filePath).appending("file")
        let entry = OpenEntry(.root, try SystemCalls.open(path, O_RDWR | O_CREAT, mode: 0o600))
        if let alignment { return OpenFile(0, entry, size: size, alignment: alignment) }
        return OpenFile(0, entry, of: try DocumentFixture.tree(size))
    }

    /// Bytes in memory that is aligned, or a byte beside that.
    private func withAligned(_ bytes: [UInt8], shift: Int = 0, _ body: (UnsafeRawBufferPointer) throws -> Void) throws {
        let room = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count + shift, alignment: 4096)
        defer { room.deallocate() }
        let shifted = UnsafeMutableRawBufferPointer(rebasing: room[shift...])
        shifted.copyBytes(from: bytes)
        try body(UnsafeRawBufferPointer(shifted))
    }

    private func content(in folder: FilePath? = nil) throws -> [UInt8] {
        try DocumentFixture.read((folder ?? scratch.filePath).appending("file"))
    }

    @Test("Whole chunks go past it and all else through it, and the file has the bytes that were written, in any order")
    func bothWays() throws {
        let file = try open()
        // A file system that takes no direct writes, where the tests run, gets the same bytes through the cache.
        let isTaken = file.direct != nil
        let bytes = DocumentFixture.content(4 * Self.chunk + 777, seed: 1)
        // The last and short one first; the second in two pieces; the fourth from memory that is not aligned.
        let end = 4 * Self.chunk
        try withAligned(Array(bytes[end...])) { try file.write($0, at: UInt64(end)) }
        #expect(!file.isDirect)
        try withAligned(Array(bytes[..<Self.chunk])) { try file.write($0, at: 0) }
        #expect(file.isDirect == isTaken)
        for (start, end) in [(Self.chunk, Self.chunk + 5000), (Self.chunk + 5000, 2 * Self.chunk)] {
            try withAligned(Array(bytes[start..<end])) { try file.write($0, at: UInt64(start)) }
            #expect(!file.isDirect)
        }
        try withAligned(Array(bytes[(2 * Self.chunk)..<(3 * Self.chunk)])) {
            try file.write($0, at: UInt64(2 * Self.chunk))
        }
        #expect(file.isDirect == isTaken)
        try withAligned(Array(bytes[(3 * Self.chunk)..<(4 * Self.chunk)]), shift: 2) {
            try file.write($0, at: UInt64(3 * Self.chunk))
        }
        #expect(!file.isDirect && (file.direct != nil) == isTaken)
        #expect(try content() == bytes)
        // A write that bypasses the cache drops the cached content of its range.
        let other = DocumentFixture.content(Self.chunk, seed: 2)
        try withAligned(other) { try file.write($0, at: 0) }
        #expect(try content() == other + bytes[Self.chunk...])
    }

    @Test("From 32 MiB on, where there are no holes", arguments: [(-1, false), (0, false), (0, true)])
    func size(_ difference: Int, _ isSparse: Bool) throws {
        let isTaken = try open().direct != nil
        let ledger = try PartFileLedger(stateFolder: scratch.filePath.appending("parts"))
        let size = UInt64(Int(OpenFile.directSize) + difference)
        let tree = try DocumentFixture.tree(size, isSparse: isSparse)
        let place = try PartPlace(scratch.filePath, ledger)
        let file = try Part(creating: tree, at: place)
        let isDirect = isTaken && difference >= 0 && !isSparse
        try withAligned(DocumentFixture.content(Self.chunk, seed: 7)) { try file.write($0, toFile: 0, at: 0) }
        #expect(file.current?.isDirect == isDirect)
        file.discard()
        let entries = try FolderFixture.tree([("a", .file(try #require(tree[0].file)))])
        let folder = try Part(creating: entries, at: place)
        try withAligned(DocumentFixture.content(Self.chunk, seed: 7)) { try folder.write($0, toFile: 0, at: 0) }
        #expect(folder.current?.isDirect == isDirect)
        folder.discard()
    }

    @Test("A file system that refuses: the cache", .enabled(if: DocumentFixture.isRoot, DocumentFixture.needsRoot))
    func refused() throws {
        let mounted = try MountedFolder(ramfsAt: try scratch.makeFolder("ramfs"))
        #expect(try open(in: mounted.path).direct == nil)
        // It is told that the file system takes them.
        let file = try open(in: mounted.path, alignment: 512)
        #expect(file.direct == 512)
        let bytes = DocumentFixture.content(Self.chunk, seed: 3)
        try withAligned(bytes) { try file.write($0, at: 0) }
        #expect(file.direct == nil && !file.isDirect)
        #expect(try content(in: mounted.path) == bytes)
    }

    @Test("A file system that asks for more than it said: the cache")
    func understated() throws {
        let file = try open(alignment: 1)
        let bytes = DocumentFixture.content(2 * Self.chunk, seed: 4)
        try withAligned(Array(bytes[..<Self.chunk]), shift: 1) { try file.write($0, at: 0) }
        try withAligned(Array(bytes[Self.chunk...]), shift: 1) {
            try file.write($0, at: UInt64(Self.chunk))
        }
        #expect(try content() == bytes)
    }

    @Test("What cannot be aligned to within a page is not tried", arguments: [0, -1, 3, 8192])
    func alignment(_ alignment: Int) throws {
        #expect(try open(alignment: alignment).direct == nil)
    }

    @Test("A disk that fills up says so", .enabled(if: DocumentFixture.isRoot, DocumentFixture.needsRoot))
    func full() throws {
        let mounted = try MountedFolder(tmpfsAt: try scratch.makeFolder("tmpfs"), size: 3 << 19)
        let file = try open(in: mounted.path, alignment: 4096)
        let bytes = DocumentFixture.content(Self.chunk, seed: 5)
        try withAligned(bytes) { try file.write($0, at: 0) }
        #expect(throws: Errno.noSpace) {
            try withAligned(bytes) { try file.write($0, at: UInt64(Self.chunk)) }
        }
        #expect(try Array(content(in: mounted.path)[..<Self.chunk]) == bytes)
    }

    @Test("A large document that is cut off in the middle of a chunk goes on with that chunk")
    func goesOn() async throws {
        let fixture = try WriterFixture()
        let content = DocumentFixture.content(Int(OpenFile.directSize) + Self.chunk + 99, seed: 6)
        let tree = try DocumentFixture.tree(UInt64(content.count), version: 8)
        let first = try await fixture.writer(tree)
        let records = DocumentFixture.records(content)
        try await first.write(Array(records[..<(10 * DocumentFixture.recordSize + 600_000)]))
        #expect(await first.end() == 10 << 20)
        let second = try await fixture.writer(tree)
        let missing = try await second.missing()
        #expect(missing == [10..<tree.layout.chunkCount])
        try await second.write(ResumeFixture.records(missing, of: content), by: 1 << 20)
        #expect(try await second.commit() == fixture.document)
        #expect(try DocumentFixture.read(fixture.document) == content)
        fixture.expectOnly(["report.pdf"])
    }
}
