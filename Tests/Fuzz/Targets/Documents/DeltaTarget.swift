// SPDX-License-Identifier: Apache-2.0

@testable import BatonDocuments

/// A delta, and the signatures that another one would be made from, as a peer may send them.
///
/// What is taken covers the chunk, lies within the files and the delta, and has one wire form; an index finds no place
/// that its files have not.
enum DeltaTarget: FuzzTarget {
    static let name = "delta"
    static let maximumLength = 2048

    static func run(_ bytes: UnsafeRawBufferPointer) {
        var input = Input(bytes)
        let kind = input.byte()
        if kind & 1 == 0 {
            checkDelta(&input, fileCount: Int(kind >> 1 & 3))
        } else {
            checkSignatures(&input, PieceSize(average: 1 << UInt64(14 + (kind >> 1) % 9)) ?? .smallest)
        }
    }

    private static func checkDelta(_ input: inout Input, fileCount: Int) {
        let size = Int(input.number(3)) % (ChunkLayout.chunkSize + 1)
        let sizes = (0..<fileCount).map { _ in input.number(8) >> 1 }
        input.remainder().withUnsafeBytes { delta in
            var decoder = DeltaDecoder(delta, contentSize: size, basisSizes: sizes)
            var (covered, count) = (0, 0)
            do throws(DeltaError) {
                while let operation = try decoder.next() {
                    count += 1
                    switch operation {
                    case .copy(let basis, let offset, let length):
                        expect(length > 0, "a copy of nothing")
                        expect(offset + UInt64(length) <= sizes[basis], "a copy from beyond the file's end")
                        covered += length
                    case .literal(let literal):
                        expect(!literal.isEmpty && literal.count <= delta.count, "a literal of \(literal.count) bytes")
                        // Reads them: the sanitizer knows whether they are there.
                        expect(literal.reduce(0) { $0 &+ Int($1) } >= 0, "bytes are negative")
                        covered += literal.count
                    }
                    expect(covered <= size && count <= DeltaDecoder.operationLimit, "more than the chunk")
                }
                expect(covered == size, "\(covered) of \(size) bytes are covered")
            } catch {
                expect(covered <= size, "\(covered) of \(size) bytes were covered before \(error)")
            }
        }
    }

    private static func checkSignatures(_ input: inout Input, _ size: PieceSize) {
        var index = SignatureIndex(size: size)
        var all: [(signature: PieceSignature, basis: Int)] = []
        do throws(DeltaError) {
            while !input.isEmpty {
                let basis = Int(input.byte())
                let batch = input.bytes(Int(input.byte()))
                try batch.withUnsafeBufferPointer { (batch) throws(DeltaError) in
                    try index.append(UnsafeRawBufferPointer(batch), basis: basis)
                }
                batch.withUnsafeBytes { bytes in
                    for start in stride(from: 0, to: bytes.count, by: PieceSignature.byteCount) {
                        all.append((PieceSignature(wire: .init(rebasing: bytes[start..<start + 20])), basis))
                    }
                }
            }
        } catch {
            return
        }
        expect(index.signatureCount == all.count, "\(index.signatureCount) of \(all.count) signatures")
        for (signature, basis) in all {
            let match = index.match(signature.digest, length: Int(signature.length))
            // Of two pieces with one digest the index keeps the first.
            let kept = all.first { $0.signature.digest == signature.digest }
            guard kept?.signature.length == signature.length else {
                expect(match == nil, "a piece of another length is found")
                continue
            }
            expect(match.map { $0.basis <= basis } ?? false, "a piece of file \(basis) is not found")
            let end = all.reduce(0) { $0 + ($1.basis == match?.basis ? UInt64($1.signature.length) : 0) }
            expect(match.map { $0.offset + UInt64(signature.length) <= end } ?? false, "a piece beyond the file's end")
        }
    }

    static func seeds() -> [[UInt8]] {
        let file = [UInt8](number: 2000, bytes: 8)
        let piece = [UInt8](number: 5000, bytes: 4) + [UInt8](repeating: 7, count: 16)
        let other = [UInt8](number: 6000, bytes: 4) + [UInt8](repeating: 9, count: 16)
        return [
            [0, 0, 0, 0], [0, 0, 0, 3, 6, 1, 2, 3], [2, 0, 0, 5] + file + [11, 0, 7],
            [2, 0, 0, 8] + file + [11, 0, 7, 6, 1, 2, 3], [4, 0, 1, 0] + file + file + [0x81, 4, 1, 0, 0x80, 4],
            [2, 0x10, 0, 0] + file + [0x81, 0x80, 0x80, 0x01, 0, 0],
            [1], [1, 0, 20] + piece, [1, 0, 40] + piece + other, [1, 0, 40] + piece + piece + [3, 20] + other,
            [1, 0, 20] + [UInt8](number: 5, bytes: 4) + [UInt8](repeating: 1, count: 16) + [1, 20] + piece,
            [17, 0, 20] + [UInt8](number: 16 << 20, bytes: 4) + [UInt8](repeating: 1, count: 16),
        ]
    }
}
