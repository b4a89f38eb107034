// SPDX-License-Identifier: Apache-2.0

import BatonProtocol

@testable import BatonDocuments

/// Chunk records in every encoding, cut anywhere: what a device that is asked for a document sends.
///
/// No byte is handed on beyond its chunk, and a chunk counts as intact only with the checksum of its bytes. The cuts of
/// the stream make no difference. An input says how large the document's files are, and then for each chunk what its
/// record is made of.
enum ChunkRecordsTarget: FuzzTarget {
    static let name = "chunk-records"
    static let maximumLength = 1024

    private struct Outcome: Equatable {
        var verified: [UInt64] = []
        var error: DocumentError.Code?
        var isComplete = false
    }

    static func run(_ bytes: UnsafeRawBufferPointer) throws {
        var input = Input(bytes)
        let setting = input.byte()
        let sizes = (0...(setting & 3)).map { _ in input.number(2) & 0x1FFF }
        guard let layout = ChunkLayout(fileSizes: sizes) else { return }
        let pieceSize = Int(input.byte())
        let takesEncoded = setting & 0x80 == 0
        var stream: [UInt8] = []
        for chunk in layout.allChunks { stream += try record(ofSize: layout.size(of: chunk), &input) }
        stream += input.remainder()
        let whole = try outcome(of: [stream[...]], layout, takesEncoded: takesEncoded)
        let cut = try outcome(of: stream.pieces(of: max(1, pieceSize)), layout, takesEncoded: takesEncoded)
        expect(whole == cut, "pieces of \(pieceSize) bytes make a difference: \(whole), \(cut)")
    }

    /// A record as an honest sender makes it, or anything.
    private static func record(ofSize size: Int, _ input: inout Input) throws -> [UInt8] {
        let kind = input.byte()
        let content = (0..<size).map { UInt8(truncatingIfNeeded: $0 / 9) & (kind >> 4) }
        let checksum = content.withUnsafeBytes { ChunkChecksum(of: $0) }
        let trailer = [UInt8](number: checksum.high, bytes: 8) + [UInt8](number: checksum.low, bytes: 8)
        switch kind & 7 {
        case 0: return [0, input.byte()] + content + trailer
        case 1: return [1, input.byte()] + trailer
        case 2:
            var compressor = try ChunkCompressor()
            var frame = [UInt8](repeating: 0, count: size)
            let count = frame.withUnsafeMutableBytes { frame in
                content.withUnsafeBytes { compressor.compress($0, into: frame) }
            }
            return [2, 0] + [UInt8](number: UInt64(count ?? 0), bytes: 4) + frame[..<(count ?? 0)] + trailer
        case 3:
            let payload = input.bytes(Int(input.byte()))
            return [3, 0] + [UInt8](number: UInt64(payload.count), bytes: 4) + payload + trailer
        case 4: return [2, 0] + [UInt8](number: input.number(4), bytes: 4) + input.bytes(Int(input.byte())) + trailer
        case _: return input.bytes(Int(input.byte()))
        }
    }

    private static func outcome(
        of pieces: [ArraySlice<UInt8>], _ layout: ChunkLayout, takesEncoded: Bool
    ) throws -> Outcome {
        let label = try DocumentLabel(Array("note.txt".utf8))
        guard var verifier = ChunkVerifier(layout: layout, ranges: [layout.allChunks], label: label) else {
            throw FuzzError("there are no such chunks")
        }
        var decoder = ChunkDecoder(label: label)
        let bases = Bases(of: try DocumentTree(file: .init(size: layout.documentSize), called: label))
        var outcome = Outcome()
        do throws(DocumentError) {
            for piece in pieces {
                let buffer = Buffer(copying: piece)
                try verifier.receive(
                    buffer.bytes,
                    decode: takesEncoded
                        ? { (encoding, payload, content) throws(DocumentError) in
                            try decoder.decode(encoding, payload, into: content, from: bases)
                        } : nil
                ) { (chunk) throws(DocumentError) in
                    take(chunk, layout, into: &outcome)
                }
                withExtendedLifetime(buffer) {}
            }
            try verifier.finish()
            outcome.isComplete = true
        } catch {
            outcome.error = error.code
        }
        expect(verifier.verifiedChunkCount == UInt64(outcome.verified.count), "another number of chunks is intact")
        expect(outcome.isComplete == (outcome.error == nil && verifier.isComplete), "it is not whole")
        return outcome
    }

    private static func take(_ chunk: ChunkVerifier.Chunk, _ layout: ChunkLayout, into outcome: inout Outcome) {
        expect(chunk.number == UInt64(outcome.verified.count), "chunk \(chunk.number) is out of order")
        let content = chunk.content.map { Array($0) } ?? [UInt8](repeating: 0, count: layout.size(of: chunk.number))
        expect(content.count == layout.size(of: chunk.number), "a chunk is intact that is not there")
        expect(content.withUnsafeBytes { ChunkChecksum(of: $0) } == chunk.checksum, "its checksum is another")
        outcome.verified.append(chunk.number)
    }

    static func seeds() -> [[UInt8]] {
        let delta: [UInt8] = [6, 1, 2, 3] + [UInt8](repeating: 5, count: 32)
        return [
            [0, 0, 100, 0, 0xF0, 1], [0, 0, 100, 7, 0xF1, 2], [0, 0x1F, 0xFF, 200, 0xF2],
            [1, 0, 50, 0, 60, 3, 0x10, 0, 0x22],
            [0, 0, 3, 1, 3, 36] + delta, [3, 0, 1, 0, 0, 0, 2, 1, 0, 5, 0, 0, 0, 1, 0, 2], [0x80, 0, 200, 9, 0xF2],
            [0, 0, 4, 0, 4, 0xFF, 0xFF, 0xFF, 0xFF, 2, 1, 1], [0, 0, 4, 2, 7, 30] + [UInt8](repeating: 9, count: 30),
            [0, 0, 10, 0, 0x30, 9, 1, 2, 3],
        ]
    }
}
