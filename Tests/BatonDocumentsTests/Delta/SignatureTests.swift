// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import SystemPackage
import Testing

@testable import BatonDocuments

@Suite("Signatures")
struct SignatureTests {
    private func batch(_ lengths: [Int], digest: (Int) -> PieceDigest = { PieceDigest(high: UInt64($0), low: 1) })
        -> [UInt8]
    {
        var bytes: [UInt8] = []
        for (number, length) in lengths.enumerated() {
            PieceSignature(length: UInt32(length), digest: digest(number)).append(to: &bytes)
        }
        return bytes
    }

    /// The digest of the vector's first piece, made by another implementation.
    @Test func wireFormIsThatOfTheSpecification() throws {
        var generator = SeededGenerator(seed: 1)
        let content = generator.bytes(400_000)
        let bytes = try DeltaFixture.signatures(of: content)
        #expect(
            bytes[..<20].map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
                == "0000531f" + "572abb75e60a3425ef38b3ebccb175fd")
        let signature = bytes.withUnsafeBytes { PieceSignature(wire: $0) }
        #expect(signature.length == 21279)
        #expect(signature.digest == content.withUnsafeBytes { PieceDigest(of: .init(rebasing: $0[..<21279])) })
    }

    @Test func filesAreReadInStepsAsInOne() throws {
        let folder = try ScratchFolder()
        var generator = SeededGenerator()
        let sizes = [0, 1, BasisReader.stepSize, BasisReader.stepSize * 3 + 77, 5000]
        var reader = BasisReader(size: .smallest)
        for (number, size) in sizes.enumerated() {
            let content = generator.bytes(size)
            let file = try SystemCalls.open(folder.makeFile("basis-\(number)", content), 0)
            var read: [UInt8] = []
            var steps = 1
            while true {
                let before = read.count
                let goesOn = try reader.step(in: file, 0..<UInt64(size), appendingTo: &read)
                // Pieces of 4 KiB or more, and the last one of the file.
                #expect(read.count - before <= (BasisReader.stepSize / 4096 + 1) * PieceSignature.byteCount)
                guard goesOn else { break }
                steps += 1
            }
            #expect(steps == size / BasisReader.stepSize + 1)
            var whole: [UInt8] = []
            var chunker = ContentDefinedChunker(size: .smallest)
            var rest = content[...]
            while !rest.isEmpty {
                let length = rest.withUnsafeBytes { chunker.nextCut(in: $0) } ?? rest.count
                let digest = rest.prefix(length).withUnsafeBytes { PieceDigest(of: $0) }
                PieceSignature(length: UInt32(length), digest: digest).append(to: &whole)
                rest = rest.dropFirst(length)
            }
            #expect(read == whole, "\(generator)")
        }
    }

    @Test func indexFindsWhatIsThereAndWhere() throws {
        var index = SignatureIndex(size: .smallest)
        #expect(index.isEmpty)
        try index.append(batch([4096, 5000]), basis: 0)
        try index.append(batch([6000, 5]) { PieceDigest(high: UInt64($0), low: 2) }, basis: 0)
        try index.append(batch([7000]) { _ in PieceDigest(high: 9, low: 9) }, basis: 3)
        #expect(index.match(PieceDigest(high: 1, low: 1), length: 5000) == .init(basis: 0, offset: 4096))
        #expect(index.match(PieceDigest(high: 1, low: 2), length: 5) == .init(basis: 0, offset: 15096))
        #expect(index.match(PieceDigest(high: 9, low: 9), length: 7000) == .init(basis: 3, offset: 0))
        #expect(index.match(PieceDigest(high: 9, low: 9), length: 7001) == nil)
        #expect(index.match(PieceDigest(high: 9, low: 8), length: 7000) == nil)
        #expect(index.signatureCount == 5)
    }

    @Test func samePieceTwiceIsTheFirst() throws {
        var index = SignatureIndex(size: .smallest)
        try index.append(batch([5000, 5000, 5000]) { _ in PieceDigest(high: 1, low: 1) }, basis: 0)
        #expect(index.match(PieceDigest(high: 1, low: 1), length: 5000)?.offset == 0)
        #expect(index.signatureCount == 3)
    }

    @Test func hostileBatchesAreRefused() {
        let refused: [[([UInt8], Int)]] = [
            [(Array(batch([5000]).dropLast()), 0)], [([0], 0)], [(batch([0]), 0)], [(batch([65537]), 0)],
            [(batch([Int(UInt32.max)]), 0)], [(batch([4095, 4096]), 0)], [(batch([4095]), 0), (batch([1]), 0)],
            [(batch([5000]), 1), (batch([5000]), 0)], [(batch([5000]), -1)], [([], .max)],
        ]
        for (number, batches) in refused.enumerated() {
            var index = SignatureIndex(size: .smallest)
            #expect(throws: DeltaError.self, "case \(number)") {
                for (bytes, basis) in batches { try index.append(bytes, basis: basis) }
            }
        }
    }

    @Test func boundsHoldWithTheMostSignatures() throws {
        var index = SignatureIndex(size: .largest)
        let (limit, step) = (PieceSignature.limit, 3200)
        for start in stride(from: 0, to: limit, by: step) {
            let lengths = [Int](repeating: PieceSize.largest.maximum, count: min(step, limit - start))
            try index.append(batch(lengths) { PieceDigest(high: UInt64(start + $0), low: 0) }, basis: 0)
        }
        #expect(index.signatureCount == limit)
        let last = try #require(index.match(PieceDigest(high: UInt64(limit) - 1, low: 0), length: 16 << 20))
        #expect(last.offset == UInt64(limit - 1) * (16 << 20))
        #expect(throws: DeltaError.self) { try index.append(batch([5 << 20]), basis: 0) }
    }

    /// Digests that share all bits but a few: no order of them makes the table slow.
    @Test func chosenDigestsDoNotCollide() throws {
        var index = SignatureIndex(size: .smallest)
        let count = PieceSignature.limit
        let start = ContinuousClock.now
        try index.append(
            batch([Int](repeating: 5000, count: count)) { PieceDigest(high: UInt64($0) << 48, low: .max) }, basis: 0)
        // Half of all pairs would be compared: minutes in a debug build.
        #expect(ContinuousClock.now - start < .seconds(30))
        #expect(index.match(PieceDigest(high: 77 << 48, low: .max), length: 5000)?.offset == 77 * 5000)
    }

    @Test func readerStopsAtTheLimit() throws {
        let folder = try ScratchFolder()
        let file = try SystemCalls.open(folder.makeFile("one", [1]), 0)
        var reader = BasisReader(size: .smallest)
        var batch: [UInt8] = []
        for _ in 0..<PieceSignature.limit + 5 {
            #expect(try !reader.step(in: file, 0..<1, appendingTo: &batch))
        }
        #expect(reader.signatureCount == PieceSignature.limit)
        #expect(batch.count == PieceSignature.limit * PieceSignature.byteCount)
    }
}
