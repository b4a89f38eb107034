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

    private func open(_ name: String = "file", in folder: FilePath? = nil) throws -> OwnedDescriptor {
        try SystemCalls.open((folder ?? scratch.filePath).appending(name), O_RDWR | O_CREAT, mode: 0o600)
    }

    /// Bytes in memory that is aligned, or a byte beside that.
    private func withAligned(_ bytes: [UInt8], shift: Int = 0, _ body: (UnsafeRawBufferPointer) throws -> Void) throws {
        let room = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count + shift, alignment: 4096)
        defer { room.deallocate() }
        let shifted = UnsafeMutableRawBufferPointer(rebasing: room[shift...])
        shifted.copyBytes(from: bytes)
        try body(UnsafeRawBufferPointer(shifted))
    }

    private func content(at name: String = "file", in folder: FilePath? = nil) throws -> [UInt8] {
        try DocumentFixture.read((folder ?? scratch.filePath).appending(name))
    }

    @Test("Whole chunks go past it and all else through it, and the file has the bytes that were written, in any order")
    func bothWays() throws {
        let file = try open()
        var output = PartOutput(of: file, size: PartOutput.directSize)
        // A file system that takes no direct writes, where the tests run, gets the same bytes through the cache.
        let isTaken = output.takesWholeChunks
        let bytes = DocumentFixture.content(4 * Self.chunk + 777, seed: 1)
        // The last and short one first; the second in two pieces; the fourth from memory that is not aligned.
        let end = 4 * Self.chunk
        try withAligned(Array(bytes[end...])) { try output.write($0, to: file, at: UInt64(end)) }
        #expect(!output.isDirect)
        try withAligned(Array(bytes[..<Self.chunk])) { try output.write($0, to: file, at: 0) }
        #expect(output.isDirect == isTaken)
        for (start, end) in [(Self.chunk, Self.chunk + 5000), (Self.chunk + 5000, 2 * Self.chunk)] {
            try withAligned(Array(bytes[start..<end])) { try output.write($0, to: file, at: UInt64(start)) }
            #expect(!output.isDirect)
        }
        try withAligned(Array(bytes[(2 * Self.chunk)..<(3 * Self.chunk)])) {
            try output.write($0, to: file, at: UInt64(2 * Self.chunk))
        }
        #expect(output.isDirect == isTaken)
        try withAligned(Array(bytes[(3 * Self.chunk)..<(4 * Self.chunk)]), shift: 2) {
            try output.write($0, to: file, at: UInt64(3 * Self.chunk))
        }
        #expect(!output.isDirect && output.takesWholeChunks == isTaken)
        #expect(try content() == bytes)
        // A write that bypasses the cache drops the cached content of its range.
        let other = DocumentFixture.content(Self.chunk, seed: 2)
        try withAligned(other) { try output.write($0, to: file, at: 0) }
        #expect(try content() == other + bytes[Self.chunk...])
        // Through the same descriptor any range can be read again.
        output.useCache(of: file)
        var some = [UInt8](repeating: 0, count: 13)
        let count = try some.withUnsafeMutableBytes { try SystemCalls.read(file, into: $0, at: 7) }
        #expect(count == 13 && some == Array(other[7..<20]))
    }

    @Test("From 32 MiB on, where there are no holes", arguments: [(-1, false), (0, false), (0, true)])
    func size(_ difference: Int, _ isSparse: Bool) throws {
        let probe = try open()
        let isTaken = PartOutput(of: probe, size: PartOutput.directSize).takesWholeChunks
        let ledger = try PartFileLedger(stateFolder: scratch.filePath.appending("parts"))
        let size = UInt64(Int(PartOutput.directSize) + difference)
        let tree = try DocumentFixture.tree(size, isSparse: isSparse)
        let place = try PartPlace(scratch.filePath, ledger)
        let file = try Part(creating: tree, at: place)
        let isDirect = isTaken && difference >= 0 && !isSparse
        try withAligned(DocumentFixture.content(Self.chunk, seed: 7)) { try file.write($0, toFile: 0, at: 0) }
        #expect(file.current?.output.isDirect == isDirect)
        file.discard()
        let entries = try FolderFixture.tree([("a", .file(try #require(tree[0].file)))])
        let folder = try Part(creating: entries, at: place)
        try withAligned(DocumentFixture.content(Self.chunk, seed: 7)) { try folder.write($0, toFile: 0, at: 0) }
        #expect(folder.current?.output.isDirect == isDirect)
        folder.discard()
    }

    @Test("A file system that refuses: the cache", .enabled(if: DocumentFixture.isRoot, DocumentFixture.needsRoot))
    func refused() throws {
        let mounted = try MountedFolder(ramfsAt: try scratch.makeFolder("ramfs"))
        let file = try open(in: mounted.path)
        #expect(!PartOutput(of: file, size: .max).takesWholeChunks)
        // An output is told that the file system takes them.
        var output = PartOutput(alignment: 512)
        #expect(output.takesWholeChunks)
        let bytes = DocumentFixture.content(Self.chunk, seed: 3)
        try withAligned(bytes) { try output.write($0, to: file, at: 0) }
        #expect(!output.takesWholeChunks && !output.isDirect)
        #expect(try content(in: mounted.path) == bytes)
    }

    @Test("A file system that asks for more than it said: the cache")
    func understated() throws {
        let file = try open()
        var output = PartOutput(alignment: 1)
        let bytes = DocumentFixture.content(2 * Self.chunk, seed: 4)
        try withAligned(Array(bytes[..<Self.chunk]), shift: 1) { try output.write($0, to: file, at: 0) }
        try withAligned(Array(bytes[Self.chunk...]), shift: 1) {
            try output.write($0, to: file, at: UInt64(Self.chunk))
        }
        #expect(try content() == bytes)
    }

    @Test("What cannot be aligned to within a page is not tried", arguments: [0, -1, 3, 8192])
    func alignment(_ alignment: Int) {
        #expect(!PartOutput(alignment: alignment).takesWholeChunks)
    }

    @Test("A disk that fills up says so", .enabled(if: DocumentFixture.isRoot, DocumentFixture.needsRoot))
    func full() throws {
        let mounted = try MountedFolder(tmpfsAt: try scratch.makeFolder("tmpfs"), size: 3 << 19)
        let file = try open(in: mounted.path)
        var output = PartOutput(alignment: 4096)
        let bytes = DocumentFixture.content(Self.chunk, seed: 5)
        try withAligned(bytes) { try output.write($0, to: file, at: 0) }
        #expect(throws: Errno.noSpace) {
            try withAligned(bytes) { try output.write($0, to: file, at: UInt64(Self.chunk)) }
        }
        #expect(try Array(content(in: mounted.path)[..<Self.chunk]) == bytes)
    }

    @Test("A large document that is cut off in the middle of a chunk goes on with that chunk")
    func goesOn() async throws {
        let fixture = try WriterFixture()
        let content = DocumentFixture.content(Int(PartOutput.directSize) + Self.chunk + 99, seed: 6)
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
