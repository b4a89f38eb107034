// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Files with holes.
extension Part {
    /// Blocks of zeros that are not written: 4 KiB, of which most file systems make holes.
    private static let holeSize = 4 << 10

    /// Writes what is not zero, and leaves holes for what is.
    func writeSparsely(
        _ bytes: UnsafeRawBufferPointer, to place: ChunkLayout.Place, from offset: Int
    ) throws(DocumentError) {
        // An earlier transfer may have left other bytes there.
        if offset == 0 { try clear(place.range, ofFile: place.file) }
        func write(_ run: Range<Int>) throws(DocumentError) {
            guard !run.isEmpty else { return }
            let piece = UnsafeRawBufferPointer(rebasing: bytes[run])
            try self.write(piece, toFile: place.file, at: place.offset + UInt64(offset + run.lowerBound))
        }
        // Blocks of the file, which do not begin where what has come begins.
        var (start, block) = (0, 0..<0)
        while block.upperBound < bytes.count {
            let end = block.upperBound + Self.holeSize - (offset + block.upperBound) % Self.holeSize
            block = block.upperBound..<min(bytes.count, end)
            guard UnsafeRawBufferPointer(rebasing: bytes[block]).isZero else { continue }
            try write(start..<block.lowerBound)
            start = block.upperBound
        }
        try write(start..<bytes.count)
    }
}

extension UnsafeRawBufferPointer {
    /// Whether every byte is zero.
    fileprivate var isZero: Bool {
        guard let start = baseAddress, count > 0 else { return true }
        // Each byte equals the one before it, and the first is zero.
        return self[0] == 0 && memcmp(start, start + 1, count - 1) == 0
    }
}
