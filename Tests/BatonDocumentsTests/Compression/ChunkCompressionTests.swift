// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import CZstd
import Testing

@testable import BatonDocuments

@Suite("Chunk compression")
struct ChunkCompressionTests {
    static let chunk = ChunkLayout.chunkSize

    /// Words in random order: shrinks to about a third.
    static func text(_ count: Int, _ generator: inout SeededGenerator) -> [UInt8] {
        let words = (0..<500).map { _ in generator.bytes(Int.random(in: 2...9, using: &generator)) + [32] }
        var bytes: [UInt8] = []
        while bytes.count < count { bytes += words.randomElement(using: &generator) ?? [] }
        return Array(bytes.prefix(count))
    }

    private func frame(_ content: [UInt8], with compressor: inout ChunkCompressor, room: Int? = nil) -> [UInt8]? {
        var frame = [UInt8](repeating: 0, count: room ?? content.count)
        let count = frame.withUnsafeMutableBytes { room in
            content.withUnsafeBytes { compressor.compress($0, into: room) }
        }
        return count.map { Array(frame[..<$0]) }
    }

    private func content(
        of frame: [UInt8], size: Int, with decompressor: inout ChunkDecompressor
    ) throws(CompressionError) -> [UInt8] {
        // A border behind the content shows that nothing is written there.
        var room = [UInt8](repeating: 0xA5, count: size + 64)
        let error: CompressionError? = room.withUnsafeMutableBytes { room in
            frame.withUnsafeBytes { frame in
                do throws(CompressionError) {
                    try decompressor.decompress(frame, into: UnsafeMutableRawBufferPointer(rebasing: room[..<size]))
                    return nil
                } catch {
                    return error
                }
            }
        }
        #expect(room[size...].allSatisfy { $0 == 0xA5 })
        if let error { throw error }
        return Array(room[..<size])
    }

    /// A frame as other programs may make it.
    private func frame(_ content: [UInt8], _ settings: [(ZSTD_cParameter, Int32)]) throws -> [UInt8] {
        let context = try #require(ZSTD_createCCtx())
        defer { ZSTD_freeCCtx(context) }
        for (parameter, value) in settings {
            #expect(ZSTD_isError(ZSTD_CCtx_setParameter(context, parameter, value)) == 0)
        }
        var frame = [UInt8](repeating: 0, count: ZSTD_compressBound(content.count))
        let count = ZSTD_compress2(context, &frame, frame.count, content, content.count)
        #expect(ZSTD_isError(count) == 0)
        return Array(frame[..<count])
    }

    @Test func whatIsCompressedComesBack() throws {
        var generator = SeededGenerator()
        var compressor = try ChunkCompressor()
        var decompressor = try ChunkDecompressor()
        for size in [100, 1000, 4096, 100_000, Self.chunk - 1, Self.chunk] {
            let content = Self.text(size, &generator)
            guard let frame = frame(content, with: &compressor) else {
                #expect(size < 4096, "\(size) bytes went plain, \(generator)")
                continue
            }
            #expect(frame.count < size - size / 16)
            #expect(try self.content(of: frame, size: size, with: &decompressor) == content, "\(generator)")
        }
    }

    @Test func whatDoesNotShrinkGoesPlain() throws {
        var generator = SeededGenerator(seed: 3)
        var compressor = try ChunkCompressor()
        #expect(frame([], with: &compressor) == nil)
        #expect(frame([1], with: &compressor) == nil)
        #expect(frame(generator.bytes(Self.chunk), with: &compressor) == nil)
        let zeros = [UInt8](repeating: 0, count: Self.chunk)
        #expect(frame(zeros, with: &compressor, room: 10) == nil)
        // After a failure the compressor is as good as before.
        #expect(try #require(frame(zeros, with: &compressor)).count < 100)
    }

    @Test func framesOfOtherFormsAreRefused() throws {
        var generator = SeededGenerator(seed: 5)
        var decompressor = try ChunkDecompressor()
        let text = Self.text(100_000, &generator)
        let good = try frame(text, [])
        let size = text.count
        #expect(try content(of: good, size: size, with: &decompressor) == text)
        #expect(try content(of: frame(text, [(ZSTD_c_checksumFlag, 1)]), size: size, with: &decompressor) == text)
        let skippable: [UInt8] = [0x50, 0x2A, 0x4D, 0x18, 1, 0, 0, 0, 9]
        var wide = try frame(text, [(ZSTD_c_windowLog, 16)])
        #expect(wide[4] & 0x20 == 0)
        #expect(try content(of: wide, size: size, with: &decompressor) == text)
        // A window of an eighth more than 1 MiB.
        wide[5] = 10 << 3 | 1
        var dictionary = good
        dictionary[4] |= 1
        var reserved = good
        reserved[4] |= 8
        let refused: [[UInt8]] = [
            [], Array(good[..<5]), [UInt8](repeating: 0, count: 100),
            skippable, skippable + good,
            [0x27, 0xB5, 0x2F, 0xFD] + good[4...],
            wide, dictionary, reserved,
            try frame(text, [(ZSTD_c_contentSizeFlag, 0)]),
            try frame(Array(text.dropLast()), []), try frame(text + [1], []),
            try frame([UInt8](repeating: 0, count: 64 << 20), [(ZSTD_c_windowLog, 20)]),
            try frame([UInt8](repeating: 0, count: 64 << 20), [(ZSTD_c_windowLog, 21)]),
            good + [0], good + skippable, good + good,
            Array(good.dropLast()), Array(good[..<20]),
        ]
        for (number, bytes) in refused.enumerated() {
            #expect(throws: CompressionError.self, "case \(number)") {
                try content(of: bytes, size: size, with: &decompressor)
            }
        }
        #expect(try content(of: good, size: size, with: &decompressor) == text)
    }

    /// A damaged frame writes nothing beyond the chunk, and the decompressor still works afterwards.
    @Test func damagedFramesDoNoHarm() throws {
        var generator = SeededGenerator()
        let seed = generator.description
        var decompressor = try ChunkDecompressor()
        let text = Self.text(20_000, &generator)
        let good = try frame(text, [])
        var refused = 0
        for _ in 0..<3000 {
            var bytes = good
            for _ in 0..<Int.random(in: 1...4, using: &generator) {
                bytes[Int.random(in: 0..<bytes.count, using: &generator)] = .random(in: 0...255, using: &generator)
            }
            do throws(CompressionError) {
                #expect(try content(of: bytes, size: text.count, with: &decompressor).count == text.count)
            } catch {
                refused += 1
            }
        }
        #expect(refused > 300, "\(seed)")
        #expect(try content(of: good, size: text.count, with: &decompressor) == text)
    }
}
