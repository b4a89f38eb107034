// SPDX-License-Identifier: Apache-2.0

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
    /// - Throws: what is wrong with it. The decoder is then of no more use.
    package mutating func next() throws(DeltaError) -> DeltaOperation? {
        guard position < bytes.count else {
            guard remaining == 0 else { throw .incomplete }
            return nil
        }
        guard remaining > 0 else { throw .excess }
        guard operationCount < Self.operationLimit else { throw .tooManyOperations }
        operationCount += 1
        let head = try DeltaNumber.read(bytes, at: &position)
        guard let length = Int(exactly: head >> 1), length > 0, length <= remaining else { throw .badLength }
        remaining -= length
        return head & 1 == 1 ? try copy(length) : try literal(length)
    }

    private mutating func copy(_ length: Int) throws(DeltaError) -> DeltaOperation {
        let basis = try DeltaNumber.read(bytes, at: &position)
        let offset = try DeltaNumber.read(bytes, at: &position)
        guard basis < UInt64(basisSizes.count) else { throw .outsideBasis }
        let size = basisSizes[Int(basis)]
        guard offset <= size, UInt64(length) <= size - offset else { throw .outsideBasis }
        return .copy(basis: Int(basis), offset: offset, length: length)
    }

    private mutating func literal(_ length: Int) throws(DeltaError) -> DeltaOperation {
        guard length <= bytes.count - position else { throw .badLength }
        defer { position += length }
        return .literal(UnsafeRawBufferPointer(rebasing: bytes[position..<position + length]))
    }
}
