// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonProtocol
import BatonTestSupport
import Glibc
import Synchronization
import SystemPackage
import Testing

@testable import BatonDocuments

@Suite("Document reader")
struct DocumentReaderTests {
    let scratch: ScratchFolder
    let pool = BufferPool(budget: 4 << 20)

    init() throws {
        scratch = try ScratchFolder()
    }

    func source(_ content: [UInt8]) throws -> ScannedDocument {
        let path = try scratch.makeFile("document", content)
        try DocumentFixture.backdate(path)
        return try DocumentScan.scan(path)
    }

    /// Everything that is left, as it goes to the wire.
    func drain(_ reader: DocumentReader) async throws -> [UInt8] {
        var wire: [UInt8] = []
        while let records = try await reader.next(from: pool) {
            wire.append(contentsOf: records.buffer.bytes)
            pool.release(records.buffer)
        }
        return wire
    }

    @Test(arguments: [0, 1, 1 << 20, (1 << 20) + 1, 3 * (1 << 20) - 1])
    func recordsAreAsSpecified(_ size: Int) async throws {
        let content = DocumentFixture.content(size, seed: 10)
        let reader = try await DocumentReader.open(try source(content))
        #expect(try await drain(reader) == DocumentFixture.records(content))
        #expect(try await reader.next(from: pool) == nil)
        #expect(pool.lentCount == 0)
        #expect(DocumentFixture.openFiles(in: scratch.filePath).isEmpty)
    }

    @Test func relativePathMeansTheCurrentFolder() async throws {
        _ = try scratch.makeFolder("folder")
        try scratch.makeFile("folder/a", [1, 2, 3])
        await #expect(processExitsWith: .success) { [place = scratch.path as String] in
            try SystemCalls.call { chdir(place) }
            let found = try DocumentScan.scan("folder")
            let reader = try await DocumentReader.open(found)
            let pool = BufferPool()
            let records = try #require(try await reader.next(from: pool))
            #expect(Array(records.buffer.bytes) == DocumentFixture.record([1, 2, 3]))
        }
    }

    @Test func anyRangeOfChunks() async throws {
        let content = DocumentFixture.content(3 * DocumentFixture.megabyte + 100, seed: 11)
        let source = try source(content)
        let wire = DocumentFixture.records(content)
        let record = DocumentFixture.recordSize
        for range in [0..<1, 1..<3, 3..<4, 4..<4] as [Range<UInt64>] {
            let reader = try await DocumentReader.open(source, ranges: [range])
            let expected = Array(wire.prefix(Int(range.upperBound) * record).dropFirst(Int(range.lowerBound) * record))
            #expect(try await drain(reader) == expected)
        }
        let code = await DocumentFixture.code { _ = try await DocumentReader.open(source, ranges: [3..<5]) }
        #expect(code == .badRange)
    }

    enum Change: CaseIterable {
        case editedInPlace, truncated, grown, replaced, removed, sameBytesAgain
    }

    func apply(_ change: Change, to path: FilePath) throws {
        switch change {
        case .editedInPlace: try DocumentFixture.write([0xAA], to: path, at: 100)
        case .truncated: try SystemCalls.call { truncate(path.string, 10) }
        case .grown: try DocumentFixture.write([1, 2, 3], to: path, at: 4 << 20)
        case .replaced:
            let other = try scratch.makeFile("other", DocumentFixture.content(4 << 20, seed: 99))
            try SystemCalls.call { rename(other.string, path.string) }
        case .removed: try SystemCalls.call { unlink(path.string) }
        case .sameBytesAgain: try DocumentFixture.write(DocumentFixture.content(16, seed: 12), to: path)
        }
    }

    @Test(arguments: Change.allCases) func changeWhileReadIsNoticed(_ change: Change) async throws {
        let source = try source(DocumentFixture.content(4 << 20, seed: 12))
        let reader = try await DocumentReader.open(source)
        for _ in 0..<2 { pool.release(try #require(try await reader.next(from: pool)).buffer) }
        try apply(change, to: source.path)
        let code = await DocumentFixture.code { _ = try await drain(reader) }
        #expect(code == .sourceChanged)
        // And it stays so.
        #expect(await DocumentFixture.code { _ = try await reader.next(from: pool) } == .sourceChanged)
        #expect(pool.lentCount == 0)
        #expect(DocumentFixture.openFiles(in: scratch.filePath).isEmpty)
    }

    @Test(arguments: Change.allCases) func changeBeforeTheLastChunkIsNoticed(_ change: Change) async throws {
        let source = try source(DocumentFixture.content(4 << 20, seed: 12))
        let reader = try await DocumentReader.open(source)
        for _ in 0..<3 { pool.release(try #require(try await reader.next(from: pool)).buffer) }
        try apply(change, to: source.path)
        #expect(await DocumentFixture.code { _ = try await reader.next(from: pool) } == .sourceChanged)
    }

    @Test(arguments: Change.allCases) func changeBeforeOpeningIsNoticed(_ change: Change) async throws {
        let source = try source(DocumentFixture.content(4 << 20, seed: 12))
        try apply(change, to: source.path)
        let code = await DocumentFixture.code { _ = try await DocumentReader.open(source) }
        #expect(code == .sourceChanged)
        #expect(DocumentFixture.openFiles(in: scratch.filePath).isEmpty)
    }

    @Test func writerThatNeverStopsIsNoticed() async throws {
        let source = try source(DocumentFixture.content(16 << 20, seed: 13))
        let reader = try await DocumentReader.open(source)
        pool.release(try #require(try await reader.next(from: pool)).buffer)
        let counter = SharedCounter()
        let writing = Task.detached { [path = source.path] in
            let file = try SystemCalls.open(path, O_WRONLY)
            while !Task.isCancelled {
                let bytes = DocumentFixture.content(64, seed: UInt64(counter.value))
                let offset = UInt64(counter.value % 100_000) * 64
                try bytes.withUnsafeBytes { try SystemCalls.write($0, to: file, at: offset) }
                counter.increment()
                try? await Task.sleep(for: .microseconds(100))
            }
        }
        #expect(await eventually { counter.value > 0 })
        #expect(await DocumentFixture.code { _ = try await drain(reader) } == .sourceChanged)
        writing.cancel()
        try await writing.value
    }

    @Test func waitsForABufferAndCanBeCancelled() async throws {
        let small = BufferPool(budget: 1)
        let reader = try await DocumentReader.open(
            try source(DocumentFixture.content(2 << 20, seed: 14)))
        let first = try #require(try await reader.next(from: small)).buffer
        let waiting = Task { try await reader.next(from: small) }
        #expect(await eventually { small.waiterCount == 1 })
        waiting.cancel()
        #expect(await DocumentFixture.code { _ = try await waiting.value } == .cancelled)
        small.release(first)
        let second = try #require(try await reader.next(from: small)).buffer
        let wire = DocumentFixture.records(DocumentFixture.content(2 << 20, seed: 14))
        #expect(Array(second.bytes) == Array(wire.suffix(second.count)))
        small.release(second)
        #expect(small.lentCount == 0)
    }

    @Test func closingEndsItAndClosesTheFile() async throws {
        let reader = try await DocumentReader.open(
            try source(DocumentFixture.content(2 << 20, seed: 15)))
        #expect(DocumentFixture.openFiles(in: scratch.filePath).count == 1)
        await reader.close()
        #expect(try await reader.next(from: pool) == nil)
        #expect(DocumentFixture.openFiles(in: scratch.filePath).isEmpty)
    }

    @Test func droppingClosesTheFile() async throws {
        let source = try source([1, 2, 3])
        _ = try await DocumentReader.open(source)
        #expect(await eventually { DocumentFixture.openFiles(in: scratch.filePath).isEmpty })
    }
}

/// A number that several tasks share.
final class SharedCounter: Sendable {
    private let count = Mutex(0)

    var value: Int { count.withLock { $0 } }

    func increment() { count.withLock { $0 += 1 } }
}
