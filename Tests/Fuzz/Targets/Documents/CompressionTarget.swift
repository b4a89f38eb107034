// SPDX-License-Identifier: Apache-2.0

@testable import BatonDocuments

/// A compressed chunk, as a peer may send it: it fills the chunk's place exactly, or is refused.
///
/// And any content: what is made of it is smaller and comes back.
enum CompressionTarget: FuzzTarget {
    static let name = "compression"
    static let maximumLength = 4096

    /// The largest chunk that is asked for: a file's last one can have any size, and small ones are quick.
    private static let largest = 64 << 10
    /// Bytes behind the chunk, where a byte too many shows.
    private static let border = 64

    static func run(_ bytes: UnsafeRawBufferPointer) throws {
        var input = Input(bytes)
        let size = Int(input.number(3)) % (largest + 1)
        let rest = input.remainder()
        try checkFrame(rest, size: size)
        try checkContent(rest)
    }

    private static func checkFrame(_ frame: [UInt8], size: Int) throws {
        var decompressor = try ChunkDecompressor()
        var room = [UInt8](repeating: 0xA5, count: size + border)
        room.withUnsafeMutableBytes { room in
            frame.withUnsafeBytes { frame in
                let place = UnsafeMutableRawBufferPointer(rebasing: room[..<size])
                _ = try? decompressor.decompress(frame, into: place)
            }
        }
        expect(room[size...].allSatisfy { $0 == 0xA5 }, "something was written beyond the chunk")
    }

    private static func checkContent(_ content: [UInt8]) throws {
        var compressor = try ChunkCompressor()
        var decompressor = try ChunkDecompressor()
        var frame = [UInt8](repeating: 0, count: content.count)
        let count = frame.withUnsafeMutableBytes { frame in
            content.withUnsafeBytes { compressor.compress($0, into: frame) }
        }
        guard let count else { return }
        expect(count < content.count, "\(count) bytes for \(content.count)")
        var again = [UInt8](repeating: 0, count: content.count)
        try again.withUnsafeMutableBytes { again in
            try frame.withUnsafeBytes {
                try decompressor.decompress(UnsafeRawBufferPointer(rebasing: $0[..<count]), into: again)
            }
        }
        expect(again == content, "the content came back changed")
    }

    static func seeds() throws -> [[UInt8]] {
        var compressor = try ChunkCompressor()
        let texts = [
            [UInt8](repeating: 0, count: 300), (0..<900).map { UInt8($0 % 97) },
            Array(String(repeating: "to be or not to be, ", count: 40).utf8),
        ]
        var seeds = texts.map { [UInt8](number: UInt64($0.count), bytes: 3) + $0 }
        for text in texts {
            var frame = [UInt8](repeating: 0, count: text.count)
            let count = frame.withUnsafeMutableBytes { frame in
                text.withUnsafeBytes { compressor.compress($0, into: frame) }
            }
            seeds.append([UInt8](number: UInt64(text.count), bytes: 3) + frame[..<(count ?? 0)])
        }
        return seeds
    }
}
