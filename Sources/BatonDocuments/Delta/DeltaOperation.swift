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
    static let maximumByteCount = 10

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

    static func read(_ bytes: UnsafeRawBufferPointer, at position: inout Int) throws(DeltaError) -> UInt64 {
        var number: UInt64 = 0
        for index in 0..<maximumByteCount {
            guard position < bytes.count else { throw DeltaError() }
            let byte = bytes[position]
            position += 1
            // The tenth byte has room for the 64th bit alone.
            if index == maximumByteCount - 1, byte > 1 { throw DeltaError() }
            number |= UInt64(byte & 0x7F) << UInt64(7 * index)
            if byte < 0x80 {
                guard byte > 0 || index == 0 else { throw DeltaError() }
                return number
            }
        }
        throw DeltaError()
    }
}

/// Signatures or a delta from another device are no such, which ends the request that they belong to and no more.
package struct DeltaError: Error, Sendable, Hashable {}

/// Takes a delta apart into its operations, each checked before it is handed out.
///
/// The operations together make exactly the chunk: copies lie within the files, literals within the delta. What they
/// make is to be compared with the ``ContentDigest``. A value that borrows the delta's bytes: use it while they are
/// there.
package struct DeltaDecoder {
    /// The most operations of a chunk: 1024. Pieces are 4 KiB or more but for those at a chunk's ends, so that 260 are
    /// enough; without a bound, a chunk could be put together from a million single bytes, each read on its own.
    package static let operationLimit = 1024
    /// Bytes that the operations of a chunk may take beyond its content: 64 KiB.
    package static let overhead = 64 << 10

    private let bytes: UnsafeRawBufferPointer
    private let basisSizes: [UInt64]
    private var position = 0
    private var remaining: Int
    private var operationCount = 0

    /// A decoder of these operations.
    ///
    /// - Parameters:
    ///   - bytes: the operations, without the digest that follows them.
    ///   - contentSize: bytes of the chunk.
    ///   - basisSizes: bytes of each file that signatures were made of, as many of them as can be read now.
    package init(_ bytes: UnsafeRawBufferPointer, contentSize: Int, basisSizes: [UInt64]) {
        self.bytes = bytes
        self.basisSizes = basisSizes
        remaining = contentSize
    }

    /// The next operation; nil when the chunk is whole and the delta at its end.
    ///
    /// - Throws: for a number that is not in its form, more than ``operationLimit`` operations, one that goes beyond
    ///   the chunk, the delta or a file, and for a chunk that is not whole at the end. The decoder is then of no more
    ///   use.
    package mutating func next() throws(DeltaError) -> DeltaOperation? {
        guard position < bytes.count else {
            guard remaining == 0 else { throw DeltaError() }
            return nil
        }
        guard remaining > 0 else { throw DeltaError() }
        guard operationCount < Self.operationLimit else { throw DeltaError() }
        operationCount += 1
        let head = try DeltaNumber.read(bytes, at: &position)
        guard let length = Int(exactly: head >> 1), length > 0, length <= remaining else { throw DeltaError() }
        remaining -= length
        return head & 1 == 1 ? try copy(length) : try literal(length)
    }

    private mutating func copy(_ length: Int) throws(DeltaError) -> DeltaOperation {
        let basis = try DeltaNumber.read(bytes, at: &position)
        let offset = try DeltaNumber.read(bytes, at: &position)
        guard basis < UInt64(basisSizes.count) else { throw DeltaError() }
        let size = basisSizes[Int(basis)]
        guard offset <= size, UInt64(length) <= size - offset else { throw DeltaError() }
        return .copy(basis: Int(basis), offset: offset, length: length)
    }

    private mutating func literal(_ length: Int) throws(DeltaError) -> DeltaOperation {
        guard length <= bytes.count - position else { throw DeltaError() }
        defer { position += length }
        return .literal(UnsafeRawBufferPointer(rebasing: bytes[position..<position + length]))
    }
}
