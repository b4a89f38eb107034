// SPDX-License-Identifier: Apache-2.0

/// The bytes of a record's field as they arrive, without an allocation: at most 16.
struct InlineField {
    private var storage: (UInt64, UInt64) = (0, 0)

    mutating func place(_ bytes: Slice<UnsafeRawBufferPointer>, at offset: Int) {
        withUnsafeMutableBytes(of: &storage) { all in
            UnsafeMutableRawBufferPointer(rebasing: all[offset..<offset + bytes.count])
                .copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes))
        }
    }

    func byte(at offset: Int) -> UInt8 { withUnsafeBytes(of: storage) { $0[offset] } }

    /// The first bytes as a number, big endian.
    func number(ofBytes count: Int) -> UInt64 {
        withUnsafeBytes(of: storage) { $0.prefix(count).reduce(0) { $0 << 8 | UInt64($1) } }
    }

    var checksum: ChunkChecksum { withUnsafeBytes(of: storage) { ChunkChecksum(canonical: $0) } }
}
