// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Testing

@testable import BatonDocuments

@Suite("Sets of chunks")
struct ChunkSetTests {
    /// Rising runs of the numbers of a set: ranges as a model has them.
    private func runs(_ numbers: some Sequence<UInt64>) -> [Range<UInt64>] {
        var runs: [Range<UInt64>] = []
        for number in numbers.sorted() {
            if let last = runs.last, last.upperBound == number {
                runs[runs.count - 1] = last.lowerBound..<number + 1
            } else {
                runs.append(number..<number + 1)
            }
        }
        return runs
    }

    @Test("It has what a set of numbers has")
    func model() {
        var generator = SeededGenerator()
        for _ in 0..<40 {
            let limit = UInt64.random(in: 1...60, using: &generator)
            var (chunks, model) = (ChunkSet(), Set<UInt64>())
            for _ in 0..<Int.random(in: 0...80, using: &generator) {
                let chunk = UInt64.random(in: 0..<limit, using: &generator)
                chunks.insert(chunk)
                model.insert(chunk)
                #expect(chunks.ranges == runs(model), "\(generator)")
            }
            #expect(chunks.count == UInt64(model.count), "\(generator)")
            for chunk in 0..<limit + 2 { #expect(chunks.contains(chunk) == model.contains(chunk), "\(generator)") }
            for _ in 0..<20 {
                let low = UInt64.random(in: 0...limit, using: &generator)
                let range = low..<UInt64.random(in: low...limit + 3, using: &generator)
                let missing = runs(range.filter { !model.contains($0) })
                #expect(chunks.missing(in: range) == missing, "\(generator) \(range)")
                let most = Int.random(in: 0...5, using: &generator)
                #expect(chunks.missing(in: range, limit: most) == Array(missing.prefix(most)), "\(generator) \(range)")
                #expect(chunks.containsAny(range) == range.contains(where: model.contains), "\(generator) \(range)")
            }
        }
    }

    @Test("What comes in order is one range, whatever its length")
    func inOrder() {
        var chunks = ChunkSet()
        for chunk in 0..<UInt64(100_000) { chunks.insert(chunk) }
        #expect(chunks.ranges == [0..<100_000])
        #expect(chunks.missing(in: 0..<100_001) == [100_000..<100_001])
    }

    @Test("Bytes are counted by the layout")
    func bytes() throws {
        let layout = try #require(ChunkLayout(fileSizes: [5, 0, 1 << 20 + 1, 9]))
        var chunks = ChunkSet()
        for chunk in [0, 2, 3] as [UInt64] { chunks.insert(chunk) }
        #expect(chunks.byteCount(in: layout) == 5 + 1 + 9)
    }
}
