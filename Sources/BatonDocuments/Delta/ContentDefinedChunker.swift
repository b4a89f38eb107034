// SPDX-License-Identifier: Apache-2.0

/// Cuts a stream of bytes into pieces at places that the content alone decides. So an insertion moves the cuts behind
/// it along with the bytes, and the other pieces stay what they were.
///
/// FastCDC: the gear hash with normalised chunking (Xia et al., "FastCDC: a Fast and Efficient Content-Defined Chunking
/// Approach for Data Deduplication", USENIX ATC 2016). For each byte, `hash = 2 * hash + gear[byte]` modulo 2^64. A
/// piece ends after the byte
///
/// - from the minimum on, short of the average: where the hash's first `log2(average) + 2` bits are 0;
/// - from the average on: where its first `log2(average) - 2` bits are 0;
/// - at the maximum, and at the file's end.
///
/// The hash of a piece starts as 0, 64 bytes before its minimum: unlike in the paper, no cut is decided by fewer than
/// 64 bytes. A pure value; each stream has one, and bytes may come in slices of any size.
package struct ContentDefinedChunker: Sendable, Hashable {
    /// How many bytes decide a cut.
    static let window = 64

    package let size: PieceSize
    /// Bytes of the piece that is under way. At the end of the file they are its last piece.
    package private(set) var pieceLength = 0

    private var hash: UInt64 = 0

    /// A chunker at the start of a file.
    package init(size: PieceSize) {
        self.size = size
    }

    /// Begins a new piece, as at the start of a file.
    package mutating func reset() {
        pieceLength = 0
        hash = 0
    }

    /// Takes the next bytes of the stream, as far as the piece that is under way goes.
    ///
    /// - Returns: how many of the bytes belong to that piece, which ends with them (1 or more); the next byte begins a
    ///   new one. Nil when all were taken and the piece goes on.
    package mutating func nextCut(in bytes: UnsafeRawBufferPointer) -> Int? {
        guard let start = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self) else { return nil }
        let before = pieceLength
        let end = min(bytes.count, size.maximum - before)
        // Where in `bytes` the piece has a certain length.
        func place(_ length: Int) -> Int { max(0, min(length - before, end)) }
        var position = place(size.minimum - Self.window)
        let cut = GearTable.numbers.withUnsafeBufferPointer { table -> Int? in
            guard let gear = table.baseAddress else { return nil }
            let strict = UInt64(1) << UInt64(62 - size.exponent)
            let easy = UInt64(1) << UInt64(66 - size.exponent)
            return roll(&position, to: place(size.minimum - 1), below: 0, start, gear)
                ?? roll(&position, to: place(size.average - 1), below: strict, start, gear)
                ?? roll(&position, to: end, below: easy, start, gear)
        }
        if let end = cut ?? (before + end == size.maximum ? end : nil) {
            reset()
            return end
        }
        pieceLength = before + end
        return nil
    }

    /// Rolls the hash over the bytes from `position` up to `end`.
    ///
    /// - Returns: the place behind the first byte after which the hash is below `bound`; nil where there is none.
    @inline(__always)
    private mutating func roll(
        _ position: inout Int, to end: Int, below bound: UInt64, _ bytes: UnsafePointer<UInt8>,
        _ gear: UnsafePointer<UInt64>
    ) -> Int? {
        var rolled = hash
        var next = position
        while next < end {
            rolled = (rolled &<< 1) &+ gear[Int(bytes[next])]
            next &+= 1
            if rolled < bound { return next }
        }
        position = next
        hash = rolled
        return nil
    }
}

/// The 256 numbers of the rolling hash: part of the wire format, since both devices have to cut alike.
///
/// Number `n` is output `n + 1` of SplitMix64 (Steele, Lea, Flood: "Fast Splittable Pseudorandom Number Generators",
/// 2014) from the seed 0x4261746F6E434443, the characters "BatonCDC".
enum GearTable {
    static let numbers: [UInt64] = {
        var state: UInt64 = 0x4261_746F_6E43_4443
        return (0..<256).map { _ in
            state &+= 0x9E37_79B9_7F4A_7C15
            var mixed = state
            mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
            mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
            return mixed ^ (mixed >> 31)
        }
    }()
}
