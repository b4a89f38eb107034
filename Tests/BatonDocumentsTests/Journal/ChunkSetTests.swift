// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import BatonDocuments

@Suite("Sets of chunks")
struct ChunkSetTests {
    @Test("What comes in order is one range, whatever its length")
    func inOrder() {
        var chunks = ChunkSet()
        for chunk in 0..<UInt64(100_000) { chunks.insert(chunk) }
        #expect(Array(chunks.ranges) == [0..<100_000])
        #expect(Array(chunks.missing(in: 0..<100_001).ranges) == [100_000..<100_001])
    }

    @Test("Bytes and files are told by the layout")
    func bytes() throws {
        let layout = try #require(ChunkLayout(fileSizes: [5, 0, 1 << 20 + 1, 9]))
        var chunks = ChunkSet()
        for chunk in [0, 2, 3] as [UInt64] { chunks.insert(chunk) }
        #expect(chunks.byteCount(in: layout) == 5 + 1 + 9)
        #expect(Array(chunks.files(in: layout).ranges) == [0..<1, 2..<4])
        #expect(Array(chunks.missing(in: layout.allChunks).files(in: layout).ranges) == [2..<3])
        #expect(ChunkSet(layout.allChunks).files(in: layout).ranges.first == 0..<4)
    }
}
