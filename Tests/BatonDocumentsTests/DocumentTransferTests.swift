// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import BatonTestSupport
import CLinux
import Foundation
import Glibc
import SystemPackage
import Testing

@testable import BatonDocuments

@Suite("Document from reader to writer")
struct DocumentTransferTests {
    /// Moves a whole document, as the two nodes do, without the network between them.
    static func transfer(
        _ source: ScannedDocument, to folder: FilePath, ledger: PartFileLedger, pool: BufferPool
    ) async throws -> FilePath {
        let writer = try await DocumentWriter.begun(source.tree, in: folder, ledger: ledger)
        let reader = try await DocumentReader.open(source, ranges: try await writer.missing())
        while let records = try await reader.next(from: pool) {
            defer { pool.release(records.buffer) }
            try await writer.write(records.buffer)
        }
        try await writer.finish()
        return try await writer.commit()
    }

    @Test func roundTripKeepsBytesPermissionsAndTime() async throws {
        let fixture = try WriterFixture()
        let content = DocumentFixture.content(5 << 20 + 12345, seed: 50)
        let path = try fixture.scratch.makeFile("run.sh", content, mode: 0o755)
        let pool = BufferPool()
        let arrived = try await Self.transfer(
            try DocumentScan.scan(path), to: fixture.folder, ledger: fixture.ledger, pool: pool)
        #expect(try DocumentFixture.read(arrived) == content)
        #expect(try SystemCalls.status(at: arrived).st_mode & 0o7777 == 0o755 & ~ProcessUmask.current)
        #expect(try DocumentScan.scan(arrived).tree[0].modified == DocumentScan.scan(path).tree[0].modified)
        #expect(pool.lentCount == 0)
        #expect(pool.allocatedCount == 1)
        fixture.expectOnly(["run.sh"])
        let isClosed = await eventually { DocumentFixture.openFiles(in: fixture.scratch.filePath).isEmpty }
        #expect(isClosed)
    }

    @Test func manyAtOnceShareTheBudget() async throws {
        let fixture = try WriterFixture()
        let pool = BufferPool(budget: 3 * ChunkRecord.capacity)
        let content = DocumentFixture.content(3 << 20, seed: 51)
        let sources = try (0..<12).map { number in
            try DocumentScan.scan(try fixture.scratch.makeFile("document \(number)", content))
        }
        try await withThrowingTaskGroup(of: FilePath.self) { group in
            for source in sources {
                group.addTask {
                    try await Self.transfer(source, to: fixture.folder, ledger: fixture.ledger, pool: pool)
                }
            }
            for try await path in group { #expect(try DocumentFixture.read(path) == content) }
        }
        #expect(pool.allocatedCount == 3)
        #expect(pool.lentCount == 0)
        #expect(fixture.names.count == 12)
        let isClosed = await eventually { DocumentFixture.openFiles(in: fixture.scratch.filePath).isEmpty }
        #expect(isClosed)
    }

    @Test func memoryStaysTheSameWhateverTheSize() async throws {
        let fixture = try WriterFixture()
        // In a process of its own, whose peak is its own.
        await #expect(processExitsWith: .success) { [path = fixture.scratch.path as String] in
            let scratch = FilePath(path)
            let ledger = try PartFileLedger(stateFolder: scratch.appending("parts"))
            let pool = BufferPool()
            func move(_ name: String, _ size: Int) async throws {
                let source = scratch.appending(name)
                try DocumentFixture.write([], to: source)
                try SystemCalls.call { truncate(source.string, size) }
                // As a file without holes, so that every byte goes through.
                let inspected = try Self.plain(source)
                let arrived = try await Self.transfer(
                    inspected, to: scratch.appending("destination"), ledger: ledger, pool: pool)
                #expect(try SystemCalls.status(at: arrived).st_size == size)
                try SystemCalls.call { unlink(arrived.string) }
            }
            try await move("small", 8 << 20)
            let before = try DocumentFixture.peakMemory()
            try await move("large", 1 << 30)
            #expect(try DocumentFixture.peakMemory() - before < 4 << 20)
            #expect(pool.allocatedCount <= 2)
        }
    }

    /// A file as if it had no holes.
    private static func plain(_ path: FilePath) throws -> ScannedDocument {
        let source = try DocumentSource(DocumentScan.scanFile(path))
        let version = FileVersion(of: FileIdentity(try SystemCalls.status(at: path)))
        let file = DocumentEntry.File(size: source.size, version: version)
        return ScannedDocument(path: path, tree: try DocumentTree(file: file, called: source.label), leftOut: .init())
    }

    @Test(.timeLimit(.minutes(2))) func sparseDocumentOfManyGigabytesCanBeReadAnywhere() async throws {
        let fixture = try WriterFixture()
        let path = try fixture.scratch.makeFile("huge", [])
        let size = 5 << 40
        guard truncate(path.string, size) == 0 else {
            // The file system's own limit: nothing of ours.
            #expect(errno == EFBIG)
            return
        }
        try DocumentFixture.write([1, 2, 3], to: path, at: UInt64(size - 3))
        let pool = BufferPool()
        let source = try Self.plain(path)
        let count = source.tree.layout.chunkCount
        let reader = try await DocumentReader.open(source, ranges: [count - 2..<count])
        pool.release(try #require(try await reader.next(from: pool)).buffer)
        let last = try #require(try await reader.next(from: pool)).buffer
        #expect(Array(last.bytes.dropLast(16).suffix(4)) == [0, 1, 2, 3])
        pool.release(last)
        #expect(try await reader.next(from: pool) == nil)
    }
}
