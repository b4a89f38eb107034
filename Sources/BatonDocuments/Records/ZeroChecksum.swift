// SPDX-License-Identifier: Apache-2.0

/// Checksums of chunks that are all zeros: that of a whole chunk is computed once.
final class ZeroChecksum {
    private var whole: ChunkChecksum?

    func of(_ size: Int) -> ChunkChecksum {
        guard size == ChunkLayout.chunkSize else { return ChunkChecksum(ofZeros: size) }
        let checksum = whole ?? ChunkChecksum(ofZeros: size)
        whole = checksum
        return checksum
    }
}

extension ChunkChecksum {
    /// The checksum of so many bytes of zeros, at most ``ChunkLayout/chunkSize``.
    init(ofZeros count: Int) {
        let zeros = UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 16)
        defer { zeros.deallocate() }
        zeros.initializeMemory(as: UInt8.self, repeating: 0)
        self.init(of: UnsafeRawBufferPointer(zeros))
    }
}
