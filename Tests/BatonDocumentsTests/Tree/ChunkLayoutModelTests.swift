// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Testing

@testable import BatonDocuments

/// A document as a list of bytes, each of which knows its file: what a layout says, found by counting.
private struct NaiveLayout {
    private(set) var chunks: [ChunkLayout.Place] = []
    let sizes: [UInt64]

    init(_ sizes: [UInt64]) {
        self.sizes = sizes
        for (file, size) in sizes.enumerated() {
            var offset: UInt64 = 0
            while offset < size {
                let length = min(size - offset, 1 << 20)
                chunks.append(ChunkLayout.Place(file: file, offset: offset, size: Int(length)))
                offset += length
            }
        }
    }

    func start(ofFile file: Int) -> UInt64 { sizes[..<file].reduce(0, +) }

    func offset(of chunk: Int) -> UInt64 {
        chunk == chunks.count ? sizes.reduce(0, +) : start(ofFile: chunks[chunk].file) + chunks[chunk].offset
    }

    /// The chunks that share a byte with the range.
    func covering(_ bytes: Range<UInt64>) -> [Int] {
        chunks.indices.filter { chunk in
            let begin = offset(of: chunk)
            return !bytes.isEmpty && begin < bytes.upperBound && bytes.lowerBound < begin + UInt64(chunks[chunk].size)
        }
    }
}

@Suite("Layout of documents of many files")
struct ChunkLayoutModelTests {
    private func sizes(_ generator: inout SeededGenerator) -> [UInt64] {
        (0..<Int.random(in: 0...12, using: &generator)).map { _ in
            switch Int.random(in: 0..<5, using: &generator) {
            case 0: 0
            case 1: UInt64.random(in: 1...9, using: &generator)
            case 2: UInt64.random(in: 1...3, using: &generator) << 20
            case 3: UInt64.random(in: 1...3, using: &generator) << 20 + 1
            case _: UInt64.random(in: 0...5 << 20, using: &generator)
            }
        }
    }

    @Test("Places, offsets and sizes are those that counting finds")
    func model() throws {
        var generator = SeededGenerator()
        for _ in 0..<60 {
            let sizes = sizes(&generator)
            let comment = Comment("\(generator) \(sizes)")
            let naive = NaiveLayout(sizes)
            let layout = try #require(ChunkLayout(fileSizes: sizes), comment)
            #expect(layout.fileCount == sizes.count, comment)
            #expect(layout.documentSize == sizes.reduce(0, +), comment)
            #expect(layout.chunkCount == UInt64(naive.chunks.count), comment)
            #expect(layout.allChunks == 0..<UInt64(naive.chunks.count), comment)
            for (chunk, place) in naive.chunks.enumerated() {
                #expect(layout.place(of: UInt64(chunk)) == place, comment)
                #expect(layout.size(of: UInt64(chunk)) == place.size, comment)
            }
            for chunk in 0...naive.chunks.count {
                #expect(layout.offset(of: UInt64(chunk)) == naive.offset(of: chunk), comment)
            }
            for file in sizes.indices {
                #expect(layout.size(ofFile: file) == sizes[file], comment)
                let chunks = naive.chunks.indices.filter { naive.chunks[$0].file == file }.map { UInt64($0) }
                #expect(Array(layout.chunks(ofFile: file)) == chunks, comment)
            }
        }
    }

    @Test("The chunks that cover bytes are those that have one of them, and no other")
    func covering() throws {
        var generator = SeededGenerator()
        for _ in 0..<60 {
            let sizes = sizes(&generator)
            let naive = NaiveLayout(sizes)
            let layout = try #require(ChunkLayout(fileSizes: sizes))
            for _ in 0..<20 {
                let bounds = [
                    UInt64.random(in: 0...layout.documentSize, using: &generator),
                    UInt64.random(in: 0...layout.documentSize, using: &generator),
                ]
                let bytes = bounds.min()!..<bounds.max()!
                let comment = Comment("\(generator) \(sizes) \(bytes)")
                let found = layout.chunks(covering: bytes)
                #expect(found.map { Int($0) } == naive.covering(bytes), comment)
                #expect(layout.contains(found), comment)
                #expect(layout.byteCount(of: found) >= UInt64(bytes.count), comment)
            }
            let (one, other) = (
                UInt64.random(in: 0...layout.chunkCount, using: &generator),
                UInt64.random(in: 0...layout.chunkCount, using: &generator)
            )
            let range = min(one, other)..<max(one, other)
            let counted = range.reduce(UInt64(0)) { $0 + UInt64(naive.chunks[Int($1)].size) }
            #expect(layout.byteCount(of: range) == counted, "\(generator) \(sizes) \(range)")
        }
    }

    @Test("Empty files have no chunk, wherever they stand")
    func emptyFiles() throws {
        let layout = try #require(ChunkLayout(fileSizes: [0, 0, 5, 0, 7, 0]))
        #expect(layout.chunkCount == 2)
        #expect(layout.place(of: 0) == .init(file: 2, offset: 0, size: 5))
        #expect(layout.place(of: 1) == .init(file: 4, offset: 0, size: 7))
        #expect(layout.chunks(covering: 4..<6) == 0..<2)
        #expect(layout.chunks(covering: 5..<6) == 1..<2)
        #expect(layout.chunks(covering: 12..<12) == 2..<2)
        #expect(layout.chunks(ofFile: 3).isEmpty && layout.chunks(ofFile: 5).isEmpty)
        #expect(try #require(ChunkLayout(fileSizes: [])).chunkCount == 0)
        #expect(try #require(ChunkLayout(fileSizes: [0, 0])).allChunks.isEmpty)
    }

    @Test("The sum of all sizes is bounded as one file's size is")
    func bound() throws {
        let limit = UInt64(Int64.max)
        let layout = try #require(ChunkLayout(fileSizes: [limit - 1, 1]))
        #expect(layout.documentSize == limit)
        #expect(layout.place(of: layout.chunkCount - 1) == .init(file: 1, offset: 0, size: 1))
        #expect(layout.chunks(covering: 0..<limit) == layout.allChunks)
        #expect(ChunkLayout(fileSizes: [limit - 1, 2]) == nil)
        #expect(ChunkLayout(fileSizes: [limit, 1]) == nil)
        #expect(ChunkLayout(fileSizes: [1, .max]) == nil)
        #expect(ChunkLayout(fileSizes: [.max, .max]) == nil)
    }
}
