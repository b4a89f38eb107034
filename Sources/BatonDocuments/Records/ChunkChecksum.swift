// SPDX-License-Identifier: Apache-2.0

import CXXHash

/// The XXH3-128 checksum of a chunk (seed 0, default secret).
///
/// It finds damage by disks, memory and mistakes; against people there is TLS.
package struct ChunkChecksum: Sendable, Hashable {
    /// The checksum's more significant half: the first 8 bytes on the wire.
    package let high: UInt64
    /// The less significant half: the last 8 bytes.
    package let low: UInt64

    /// The checksum of these bytes: about 20 µs for 1 MiB in cache.
    package init(of bytes: UnsafeRawBufferPointer) {
        self = withUnsafeTemporaryAllocation(byteCount: ChunkRecord.checksumSize, alignment: 8) { checksum in
            baton_xxh3_128(bytes.baseAddress, bytes.count, checksum.baseAddress)
            return ChunkChecksum(canonical: UnsafeRawBufferPointer(checksum))
        }
    }

    init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// The checksum that stands at `bytes` in its canonical form (big endian). There have to be 16 bytes.
    package init(canonical bytes: UnsafeRawBufferPointer) {
        high = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 0, as: UInt64.self))
        low = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
    }

    /// Writes the canonical form to the first 16 bytes of `bytes`.
    package func write(to bytes: UnsafeMutableRawBufferPointer) {
        bytes.storeBytes(of: high.bigEndian, toByteOffset: 0, as: UInt64.self)
        bytes.storeBytes(of: low.bigEndian, toByteOffset: 8, as: UInt64.self)
    }
}

extension ChunkChecksum {
    private static let wholeZeros = computed(ofZeros: ChunkLayout.chunkSize)

    /// The checksum of so many bytes of zeros, at most ``ChunkLayout/chunkSize``. That of a whole chunk is computed
    /// once.
    static func ofZeros(_ count: Int) -> ChunkChecksum {
        count == ChunkLayout.chunkSize ? wholeZeros : computed(ofZeros: count)
    }

    private static func computed(ofZeros count: Int) -> ChunkChecksum {
        let zeros = UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 16)
        defer { zeros.deallocate() }
        zeros.initializeMemory(as: UInt8.self, repeating: 0)
        return ChunkChecksum(of: UnsafeRawBufferPointer(zeros))
    }
}
