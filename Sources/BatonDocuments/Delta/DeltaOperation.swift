// SPDX-License-Identifier: Apache-2.0

/// How a stretch of a chunk's content is to be had.
///
/// On the wire a number, `2 * length + 1` for a copy and `2 * length` for a literal; then for a copy the number of the
/// file and the offset in it, for a literal its bytes. Numbers are LEB128 (DWARF 5, section 7.6: 7 bits a byte, the
/// least first), in as few bytes as they fit in.
package enum DeltaOperation {
    /// `length` bytes at `offset` of the receiver's file number `basis`.
    case copy(basis: Int, offset: UInt64, length: Int)
    /// These bytes, on loan from the delta.
    case literal(UnsafeRawBufferPointer)
}

/// Numbers as LEB128.
enum DeltaNumber {
    /// The most bytes of a number.
    static let maximumByteCount = 10

    /// How many bytes a number takes.
    static func byteCount(of number: UInt64) -> Int {
        max(1, (UInt64.bitWidth - number.leadingZeroBitCount + 6) / 7)
    }

    /// Writes a number, which has to fit.
    static func write(_ number: UInt64, to bytes: UnsafeMutableRawBufferPointer, at position: inout Int) {
        var rest = number
        while rest >= 0x80 {
            bytes[position] = UInt8(truncatingIfNeeded: rest) | 0x80
            position += 1
            rest >>= 7
        }
        bytes[position] = UInt8(rest)
        position += 1
    }

    /// Reads a number.
    ///
    /// - Throws: `badNumber` where it ends early, has more bytes than it needs, or does not fit in 64 bits.
    static func read(_ bytes: UnsafeRawBufferPointer, at position: inout Int) throws(DeltaError) -> UInt64 {
        var number: UInt64 = 0
        for index in 0..<maximumByteCount {
            guard position < bytes.count else { throw .badNumber }
            let byte = bytes[position]
            position += 1
            // The tenth byte has room for the 64th bit alone.
            if index == maximumByteCount - 1, byte > 1 { throw .badNumber }
            number |= UInt64(byte & 0x7F) << UInt64(7 * index)
            if byte < 0x80 {
                guard byte > 0 || index == 0 else { throw .badNumber }
                return number
            }
        }
        throw .badNumber
    }
}
