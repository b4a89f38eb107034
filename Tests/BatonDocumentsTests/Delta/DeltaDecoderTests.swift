// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Testing

@testable import BatonDocuments

@Suite("Delta decoder")
struct DeltaDecoderTests {
    /// Two files: 100 bytes, and the largest that there can be.
    private let sizes: [UInt64] = [100, UInt64(Int64.max)]

    private func decode(_ bytes: [UInt8], size: Int) throws(DeltaError) -> [String] {
        try bytes.withUnsafeBufferPointer { (bytes) throws(DeltaError) in
            var decoder = DeltaDecoder(UnsafeRawBufferPointer(bytes), contentSize: size, basisSizes: sizes)
            var operations: [String] = []
            while let operation = try decoder.next() {
                switch operation {
                case .copy(let basis, let offset, let length): operations.append("\(basis):\(offset)+\(length)")
                case .literal(let literal): operations.append("'\(literal.map { String($0) }.joined(separator: " "))'")
                }
            }
            return operations
        }
    }

    private func number(_ value: UInt64) -> [UInt8] {
        var position = 0
        var bytes = [UInt8](repeating: 0, count: DeltaNumber.maximumByteCount)
        bytes.withUnsafeMutableBytes { DeltaNumber.write(value, to: $0, at: &position) }
        #expect(position == max(1, (UInt64.bitWidth - value.leadingZeroBitCount + 6) / 7))
        return Array(bytes[..<position])
    }

    private func copy(_ basis: UInt64, _ offset: UInt64, _ length: UInt64) -> [UInt8] {
        number(length << 1 | 1) + number(basis) + number(offset)
    }

    @Test func operationsCoverTheChunk() throws {
        #expect(try decode([], size: 0).isEmpty)
        let far = UInt64(Int64.max) - 300
        let delta = copy(0, 97, 3) + [4, 7, 8] + copy(1, far, 300)
        #expect(try decode(delta, size: 305) == ["0:97+3", "'7 8'", "1:\(far)+300"])
    }

    @Test func operationsThatDoNotFitAreRefused() {
        let refused: [([UInt8], Int)] = [
            ([], 1), (copy(0, 0, 3), 4),
            (copy(0, 0, 3) + [0], 3), ([1], 0),
            ([0], 1), ([1, 0, 0], 1), (copy(0, 0, 4), 3),
            (copy(0, 0, UInt64.max >> 1), 3), ([6, 1, 2], 3), ([8, 1, 2, 3, 4], 3),
            (copy(2, 0, 1), 1), (copy(.max, 0, 1), 1),
            (copy(0, 98, 3), 3), (copy(0, 101, 1), 1),
            (copy(0, .max, 1), 1), (copy(1, UInt64(Int64.max), 1), 1),
            ([0x83], 3), ([7], 3), ([7, 0], 3), ([7, 0, 0x80], 3),
        ]
        for (number, (bytes, size)) in refused.enumerated() {
            #expect(throws: DeltaError.self, "case \(number)") { try decode(bytes, size: size) }
        }
    }

    @Test func numbersHaveOneForm() throws {
        for value: UInt64 in [0, 1, 127, 128, 16383, 16384, 1 << 32, 1 << 62, 1 << 63, .max] {
            let bytes = number(value)
            var position = 0
            #expect(try bytes.withUnsafeBytes { try DeltaNumber.read($0, at: &position) } == value)
            #expect(position == bytes.count)
        }
        #expect(number(.max).count == 10)
        let ten = [UInt8](repeating: 0xFF, count: 9)
        for bytes: [UInt8] in [[], [0x80], [0x80, 0], [0xFF, 0x80, 0], ten + [2], ten + [0x81, 0], ten + [0]] {
            var position = 0
            #expect(throws: DeltaError.self) {
                try bytes.withUnsafeBytes { try DeltaNumber.read($0, at: &position) }
            }
        }
    }

    @Test func numberOfOperationsIsBounded() throws {
        let most = DeltaDecoder.operationLimit
        let bytes = (0..<most).flatMap { _ in copy(0, 5, 1) }
        #expect(try decode(bytes, size: most).count == most)
        #expect(throws: DeltaError.self) { try decode(bytes + copy(0, 5, 1), size: most + 1) }
    }

    /// The decoder ends on any input: it refuses, or the operations cover the chunk and lie within the files.
    @Test func noiseIsRefusedOrFits() {
        var generator = SeededGenerator()
        let seed = generator.description
        let good = copy(0, 10, 20) + [6, 1, 2, 3] + copy(1, 1 << 40, 200) + copy(0, 0, 100)
        var accepted = 0
        for _ in 0..<20_000 {
            var bytes = good
            for _ in 0..<Int.random(in: 0...3, using: &generator) {
                bytes[Int.random(in: 0..<bytes.count, using: &generator)] = .random(in: 0...255, using: &generator)
            }
            bytes.removeLast(Int.random(in: 0...9, using: &generator) / 9)
            bytes.withUnsafeBytes { bytes in
                var decoder = DeltaDecoder(bytes, contentSize: 323, basisSizes: sizes)
                var covered = 0
                do throws(DeltaError) {
                    while let operation = try decoder.next() {
                        switch operation {
                        case .copy(let basis, let offset, let length):
                            #expect(offset + UInt64(length) <= sizes[basis], "\(seed)")
                            covered += length
                        case .literal(let literal):
                            covered += literal.count
                        }
                    }
                    #expect(covered == 323, "\(seed)")
                    accepted += 1
                } catch {
                    #expect(covered <= 323, "\(seed)")
                }
            }
        }
        #expect(accepted > 1000)
    }

    @Test func digestIsSHA256() {
        let digest = Array("Baton".utf8).withUnsafeBytes { ContentDigest(of: $0) }
        var bytes = [UInt8](repeating: 0, count: 32)
        bytes.withUnsafeMutableBytes { digest.write(to: $0) }
        #expect(
            bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
                == "bcc71aca9ddb9aa6e1edd00713c9028af26113094ebdd9e428ded61ea0b80cde")
        #expect(bytes.withUnsafeBytes { ContentDigest(wire: $0) } == digest)
        bytes[31] ^= 1
        #expect(bytes.withUnsafeBytes { ContentDigest(wire: $0) } != digest)
    }
}
