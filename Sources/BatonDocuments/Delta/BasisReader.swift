// SPDX-License-Identifier: Apache-2.0

package import BatonEventLoop
package import SystemPackage

/// Reads what the other device may build upon (the *bases*: files, or stretches of them), and makes the wire form of
/// its signatures.
///
/// A step reads 256 KiB, so that the caller can give up, or send a batch, between two. Over all bases at most
/// `PieceSignature.limit` signatures are made; what comes after is not offered. It blocks on the disk: call it from a
/// thread that may. Owns the one buffer.
package struct BasisReader: ~Copyable {
    /// Bytes read in one step.
    package static let stepSize = 256 << 10

    /// How many signatures were made so far.
    package private(set) var signatureCount = 0

    private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.stepSize, alignment: 4096)
    private var chunker: ContentDefinedChunker
    private var hash = PieceHash()
    private var offset: UInt64 = 0

    /// A reader at the start of the first basis.
    package init(size: PieceSize) {
        chunker = ContentDefinedChunker(size: size)
    }

    deinit {
        buffer.deallocate()
    }

    /// Reads on in a basis, and appends the signatures of the pieces that end there to `batch`.
    ///
    /// - Parameter stretch: where the basis is in its file, the same for all of its steps.
    /// - Returns: false at the end of the basis (or when the limit is reached); the next call begins another one.
    /// - Throws: what reading failed with. The next bytes are another basis then.
    package mutating func step(
        in file: borrowing OwnedDescriptor, _ stretch: Range<UInt64>, appendingTo batch: inout [UInt8]
    ) throws(Errno) -> Bool {
        let room = UnsafeMutableRawBufferPointer(
            rebasing: buffer[..<Int(min(UInt64(buffer.count), UInt64(stretch.count) - offset))])
        let count: Int
        do {
            count = try SystemCalls.read(file, into: room, at: stretch.lowerBound + offset)
        } catch {
            skip()
            throw error
        }
        offset += UInt64(count)
        var rest = UnsafeRawBufferPointer(rebasing: buffer[..<count])
        while !rest.isEmpty {
            let before = chunker.pieceLength
            let cut = chunker.nextCut(in: rest)
            let length = cut ?? rest.count
            hash.update(UnsafeRawBufferPointer(rebasing: rest[..<length]))
            if cut != nil { append(before + length, to: &batch) }
            rest = UnsafeRawBufferPointer(rebasing: rest[length...])
        }
        let isAtEnd = count < buffer.count
        if isAtEnd, chunker.pieceLength > 0 {
            append(chunker.pieceLength, to: &batch)
            chunker.reset()
        }
        guard isAtEnd || signatureCount == PieceSignature.limit else { return true }
        offset = 0
        return false
    }

    /// Ends a piece of so many bytes.
    private mutating func append(_ length: Int, to batch: inout [UInt8]) {
        let digest = hash.finish()
        guard signatureCount < PieceSignature.limit else { return }
        signatureCount += 1
        PieceSignature(length: UInt32(length), digest: digest).append(to: &batch)
    }

    /// Leaves the rest of a basis out; the next call begins another one.
    package mutating func skip() {
        chunker.reset()
        _ = hash.finish()
        offset = 0
    }
}

extension BasisReader: @unchecked Sendable {}  // reason: it alone owns its buffer, and it is not copied
