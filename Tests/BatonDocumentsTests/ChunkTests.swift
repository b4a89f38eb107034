// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import SystemPackage
import Testing

@testable import BatonDocuments

@Suite("Chunk layout")
struct ChunkLayoutTests {
    let megabyte = UInt64(1 << 20)

    @Test func emptyDocumentHasNoChunk() throws {
        let layout = try #require(ChunkLayout(fileSizes: [0]))
        #expect(layout.chunkCount == 0)
        #expect(layout.byteCount(of: layout.allChunks) == 0)
        #expect(!layout.contains(0..<1))
    }

    @Test func lastChunkIsWhatIsLeft() throws {
        let layout = try #require(ChunkLayout(fileSizes: [2 * megabyte + 1]))
        #expect(layout.chunkCount == 3)
        #expect(layout.size(of: 1) == 1 << 20)
        #expect(layout.size(of: 2) == 1)
        #expect(layout.offset(of: 2) == 2 * megabyte)
        #expect(layout.byteCount(of: 1..<3) == megabyte + 1)
        #expect(try #require(ChunkLayout(fileSizes: [megabyte])).chunkCount == 1)
    }

    @Test func largestFileOffsetIsTheBound() throws {
        let layout = try #require(ChunkLayout(fileSizes: [UInt64(Int64.max)]))
        #expect(layout.size(of: layout.chunkCount - 1) == (1 << 20) - 1)
        #expect(layout.byteCount(of: layout.allChunks) == UInt64(Int64.max))
        #expect(ChunkLayout(fileSizes: [UInt64(Int64.max) + 1]) == nil)
    }

    @Test(arguments: [
        ("", "99aa06d3014798d86001c324468d497f"), ("Baton", "af8c70d416dca992012bac9b750897f7"),
        (String(repeating: "\0", count: 1 << 20), "b6ef17a3448492b6918780b90550bf34"),
    ])
    func checksumIsCanonicalXXH3(_ text: String, _ expected: String) {
        let checksum = Array(text.utf8).withUnsafeBytes { ChunkChecksum(of: $0) }
        let wire = [UInt8](unsafeUninitializedCapacity: 16) { room, count in
            checksum.write(to: UnsafeMutableRawBufferPointer(room))
            count = 16
        }
        #expect(wire.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() == expected)
        #expect(wire.withUnsafeBytes { ChunkChecksum(canonical: $0) } == checksum)
    }
}

@Suite("Chunk verifier")
struct ChunkVerifierTests {
    let label = try? DocumentLabel(Array("report.pdf".utf8))

    @Test("Where the next record begins is known wherever the last one was cut")
    func nextRecord() throws {
        let megabyte = 1 << 20
        let content = DocumentFixture.content(megabyte + 50, seed: 12)
        let records = DocumentFixture.records(content)
        let zeros = DocumentFixture.record([UInt8](repeating: 0, count: megabyte), encoding: 1, saying: [])
        let cuts = [2, 3, 1000, megabyte + 1, megabyte + 2, megabyte + 3, DocumentFixture.recordSize]
        for cut in cuts + [DocumentFixture.recordSize + 2, DocumentFixture.recordSize + 40] {
            let layout = try #require(ChunkLayout(fileSizes: [UInt64(content.count)]))
            let label = try #require(label)
            guard
                var verifier = ChunkVerifier(layout: layout, ranges: [0..<2], label: label),
                var empty = ChunkVerifier(layout: layout, ranges: [0..<2], label: label)
            else { throw DocumentError(.badRange, "") }
            #expect(verifier.bytesToNextRecord == 0)
            try records[..<cut].withUnsafeBytes { try verifier.receive($0) { _ in } }
            let ends = [DocumentFixture.recordSize, records.count]
            #expect(verifier.bytesToNextRecord == (ends.first { $0 >= cut } ?? 0) - cut, "\(cut)")
            let taken = min(cut, zeros.count)
            try zeros[..<taken].withUnsafeBytes { try empty.receive($0) { _ in } }
            #expect(empty.bytesToNextRecord == zeros.count - taken, "\(cut)")
        }
    }

    func verify(
        _ wire: [UInt8], size: Int, chunks: Range<UInt64>? = nil, slices: (Int) -> Int
    ) throws -> (content: [UInt8], verified: [UInt64]) {
        let layout = try #require(ChunkLayout(fileSizes: [UInt64(size)]))
        let chunks = chunks ?? layout.allChunks
        guard var verifier = ChunkVerifier(layout: layout, ranges: [chunks], label: try #require(label)) else {
            throw DocumentError(.badRange, "")
        }
        var content: [UInt8] = []
        var verified: [UInt64] = []
        var position = 0
        while position < wire.count {
            let end = min(wire.count, position + max(1, slices(position)))
            try wire[position..<end].withUnsafeBytes { slice in
                try verifier.receive(slice) { chunk in
                    let bytes = chunk.content ?? UnsafeRawBufferPointer(start: nil, count: 0)
                    #expect(bytes.count == layout.size(of: chunk.number))
                    #expect(bytes.count < 1 << 20 || UInt(bitPattern: bytes.baseAddress).isMultiple(of: 4096))
                    content.append(contentsOf: bytes)
                    verified.append(chunk.number)
                }
            }
            position = end
        }
        try verifier.finish()
        return (content, verified)
    }

    @Test func anySlicingGivesTheSame() throws {
        let content = DocumentFixture.content(2 * DocumentFixture.megabyte + 777, seed: 1)
        let wire = DocumentFixture.records(content)
        let record = DocumentFixture.recordSize
        for slice in [1 << 16, 3, 4, wire.count, record - 1, record, record + 1, record + 2] {
            // One byte at a time only around the seams: everything else would take minutes in a debug build.
            let found = try verify(wire, size: content.count) { position in
                let toSeam = record - position % record
                guard slice < 5 else { return slice }
                return toSeam < 40 || toSeam > 1 << 20 ? slice - 2 : toSeam - 30
            }
            #expect(found.content == content)
            #expect(found.verified == [0, 1, 2])
        }
    }

    @Test func randomSlicing() throws {
        var generator = SystemRandomNumberGenerator()
        let seed = generator.next()
        let content = DocumentFixture.content(DocumentFixture.megabyte + 5, seed: seed)
        let wire = DocumentFixture.records(content)
        var lengths = DocumentFixture.content(100_000, seed: seed &+ 1).makeIterator()
        let found = try verify(wire, size: content.count) { _ in
            Int(lengths.next() ?? 1) * Int(lengths.next() ?? 1)
        }
        #expect(found.content == content, "seed \(seed)")
        #expect(found.verified == [0, 1], "seed \(seed)")
    }

    @Test func aRangeStartsAtItsChunk() throws {
        let content = DocumentFixture.content(2 * DocumentFixture.megabyte + 9, seed: 2)
        let wire = Array(DocumentFixture.records(content).dropFirst(DocumentFixture.recordSize))
        let found = try verify(wire, size: content.count, chunks: 1..<3) { _ in 100_000 }
        #expect(found.content == Array(content.dropFirst(DocumentFixture.megabyte)))
        #expect(found.verified == [1, 2])
    }

    @Test func emptyDocumentIsCompleteAtOnce() throws {
        #expect(try verify([], size: 0) { _ in 1 }.verified.isEmpty)
    }

    @Test(arguments: [2, 500, 1001, 1002, 1017])
    func everyFlippedBitIsFound(_ position: Int) async throws {
        var wire = DocumentFixture.records(DocumentFixture.content(1000, seed: 3))
        wire[position] ^= 0x10
        let code = await DocumentFixture.code { _ = try verify(wire, size: 1000) { _ in 64 } }
        #expect(code == .checksumMismatch)
    }

    @Test func missingAndSurplusBytesAreFound() async throws {
        let wire = DocumentFixture.records(DocumentFixture.content(1000, seed: 4))
        for count in [0, 1, 1000, wire.count - 1] {
            let code = await DocumentFixture.code { _ = try verify(Array(wire.prefix(count)), size: 1000) { _ in 99 } }
            #expect(code == .incomplete)
        }
        let code = await DocumentFixture.code { _ = try verify(wire + [0], size: 1000) { _ in 4096 } }
        #expect(code == .excess)
    }

    @Test func nothingIsAcceptedAfterAnError() async throws {
        let layout = try #require(ChunkLayout(fileSizes: [10]))
        guard var verifier = ChunkVerifier(layout: layout, ranges: [0..<1], label: try #require(label)) else { return }
        let bad = [UInt8](repeating: 0, count: 28)
        for expected in [DocumentError.Code.checksumMismatch, .cancelled] {
            do {
                try bad.withUnsafeBytes { try verifier.receive($0) { _ in } }
                Issue.record("damage was accepted")
            } catch {
                #expect((error as? DocumentError)?.code == expected)
            }
        }
        let isComplete = verifier.isComplete
        #expect(!isComplete)
    }

    @Test func chunksBeyondTheDocumentAreRefused() throws {
        let layout = try #require(ChunkLayout(fileSizes: [10]))
        if ChunkVerifier(layout: layout, ranges: [0..<1, 0..<2], label: try #require(label)) != nil {
            Issue.record("a chunk that does not exist was accepted")
        }
    }
}
