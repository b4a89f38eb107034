// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Testing

@testable import BatonDocuments

@Suite("Content-defined chunker")
struct ContentDefinedChunkerTests {
    /// The lengths of all pieces, the file coming in slices of `slice()` bytes.
    static func lengths(of content: [UInt8], _ size: PieceSize, slice: () -> Int = { .max }) -> [Int] {
        var chunker = ContentDefinedChunker(size: size)
        var lengths: [Int] = []
        var position = 0
        content.withUnsafeBytes { bytes in
            while position < bytes.count {
                let end = position + min(slice(), bytes.count - position)
                while position < end {
                    let before = chunker.pieceLength
                    if let cut = chunker.nextCut(in: UnsafeRawBufferPointer(rebasing: bytes[position..<end])) {
                        lengths.append(before + cut)
                        position += cut
                    } else {
                        position = end
                    }
                }
            }
        }
        return chunker.pieceLength > 0 ? lengths + [chunker.pieceLength] : lengths
    }

    /// Made by another implementation (a few lines of Python after the documentation comment).
    @Test func cutsAreThoseOfTheSpecification() throws {
        #expect(GearTable.numbers[0] == 0x178F_7080_2834_153A)
        #expect(GearTable.numbers[1] == 0x49BD_0A06_F9B6_9EE4)
        #expect(GearTable.numbers[255] == 0x442A_C9BC_770C_B1D6)
        var generator = SeededGenerator(seed: 1)
        #expect(
            Self.lengths(of: generator.bytes(400_000), .smallest) == [
                21279, 19254, 15673, 24208, 5005, 17076, 6644, 16785, 17340, 16854, 16302, 16757, 19125, 18544, 25941,
                16795, 24434, 23048, 16827, 16768, 16468, 17188, 11685,
            ])
        generator = SeededGenerator(seed: 2)
        let size = try #require(PieceSize(average: 65536))
        #expect(Self.lengths(of: generator.bytes(400_000), size) == [75150, 85578, 67088, 76255, 37200, 58729])
        let zeros = [UInt8](repeating: 0, count: 200_000)
        #expect(Self.lengths(of: zeros, .smallest) == [65536, 65536, 65536, 3392])
        #expect(Self.lengths(of: [], .smallest).isEmpty)
    }

    @Test func slicesDoNotMatter() throws {
        var generator = SeededGenerator()
        let seed = generator.description
        for content in [generator.bytes(700_000), [UInt8](repeating: 7, count: 300_000)] {
            let whole = Self.lengths(of: content, .smallest)
            for most in [1, 63, 64, 65, 4096, 20_000, 100_000] {
                let cut = Self.lengths(of: content, .smallest) { Int.random(in: 1...most, using: &generator) }
                #expect(cut == whole, "\(seed)")
            }
        }
    }

    @Test func lengthsKeepTheirBoundsAndTheirAverage() {
        var generator = SeededGenerator()
        let content = generator.bytes(8 << 20)
        let lengths = Self.lengths(of: content, .smallest)
        #expect(lengths.reduce(0, +) == content.count)
        #expect(lengths.dropLast().allSatisfy { (4096...65536).contains($0) }, "\(generator)")
        let mean = content.count / lengths.count
        #expect((16_000...22_000).contains(mean), "\(mean), \(generator)")
    }

    /// The content defines the cuts: after an insertion they fall at the same places of the content again.
    @Test func cutsFindBackBehindAnInsertion() {
        var generator = SeededGenerator()
        let seed = generator.description
        for _ in 0..<8 {
            let content = generator.bytes(1 << 20)
            let place = Int.random(in: 0..<500_000, using: &generator)
            let inserted = generator.bytes(Int.random(in: 1...100, using: &generator))
            let edited = Array(content[..<place]) + inserted + Array(content[place...])
            let before = Set(ends(of: content).map { $0 + inserted.count }.filter { $0 > place + 200_000 })
            let after = Set(ends(of: edited).filter { $0 > place + 200_000 })
            #expect(!before.isEmpty)
            #expect(before == after, "\(seed)")
        }
    }

    private func ends(of content: [UInt8]) -> [Int] {
        Self.lengths(of: content, .smallest).reduce(into: []) { $0.append(($0.last ?? 0) + $1) }
    }
}

@Suite("Piece size")
struct PieceSizeTests {
    @Test func onlyPowersOfTwoInItsRange() {
        let averages = (0..<64).compactMap { PieceSize(average: 1 << $0)?.average }
        #expect(averages == (14...22).map { 1 << $0 })
        for average: UInt64 in [0, 1, 16383, 16385, 24576, (4 << 20) + 1, .max] {
            #expect(PieceSize(average: average) == nil)
        }
        #expect(PieceSize.largest.minimum == 1 << 20)
        #expect(PieceSize.largest.maximum == 16 << 20)
    }

    @Test func signaturesOfTheBasesKeepTheirLimit() {
        let gigabyte: UInt64 = 1 << 30
        #expect(PieceSize.forBases(totalSize: 0, fileCount: 0) == .smallest)
        #expect(PieceSize.forBases(totalSize: gigabyte - 1, fileCount: 0).average == 16 << 10)
        #expect(PieceSize.forBases(totalSize: gigabyte, fileCount: 1).average == 32 << 10)
        #expect(PieceSize.forBases(totalSize: 64 * gigabyte, fileCount: 1).average == 2 << 20)
        #expect(PieceSize.forBases(totalSize: 1 << 60, fileCount: 1) == .largest)
        #expect(PieceSize.forBases(totalSize: gigabyte, fileCount: 60_000).average == 256 << 10)
        #expect(PieceSize.forBases(totalSize: 0, fileCount: 65_536) == .largest)
        #expect(PieceSize.forBases(totalSize: .max, fileCount: .max) == .largest)
    }
}
