// SPDX-License-Identifier: Apache-2.0

package import BatonEventLoop
package import SystemPackage

/// Cuts a file that comes in slices into pieces and tells their signatures, in order.
///
/// A value that holds one hash and no content. After the last slice of a file comes `finish`, and then the next file.
package struct SignatureBuilder {
    private var chunker: ContentDefinedChunker
    private var hash = PieceHash()

    /// A builder at the start of a file.
    package init(size: PieceSize) {
        chunker = ContentDefinedChunker(size: size)
    }

    /// Takes the next bytes of the file.
    package mutating func receive(_ bytes: UnsafeRawBufferPointer, handle: (PieceSignature) -> Void) {
        var rest = bytes
        while !rest.isEmpty {
            let before = chunker.pieceLength
            guard let length = chunker.nextCut(in: rest) else {
                hash.update(rest)
                return
            }
            hash.update(UnsafeRawBufferPointer(rebasing: rest[..<length]))
            handle(PieceSignature(length: UInt32(before + length), digest: hash.finish()))
            rest = UnsafeRawBufferPointer(rebasing: rest[length...])
        }
    }

    /// Ends the file: its last piece is what is left, if anything is.
    package mutating func finish(handle: (PieceSignature) -> Void) {
        guard chunker.pieceLength > 0 else { return }
        handle(PieceSignature(length: UInt32(chunker.pieceLength), digest: hash.finish()))
        chunker.reset()
    }

    /// Forgets the file that is under way.
    package mutating func reset() {
        chunker.reset()
        _ = hash.finish()
    }
}

/// Reads what the other device may build upon (the *bases*: files, or stretches of them), and makes the wire form of
/// its signatures.
///
/// A step reads 256 KiB, so that the caller can give up, or send a batch, between two. Over all bases at most
/// `PieceSignature.limit` signatures are made; what comes after is not offered. It blocks on the disk: call it from a
/// thread that may. Owns the one buffer.
package struct BasisReader: ~Copyable {
    /// Bytes read in one step.
    package static let stepSize = 256 << 10
    /// The most bytes that a step adds to a batch: pieces of 4 KiB or more, and the last one of the file.
    package static let stepGrowth = (stepSize / PieceSize.smallest.minimum + 1) * PieceSignature.byteCount

    /// How many signatures were made so far.
    package private(set) var signatureCount = 0

    private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.stepSize, alignment: 4096)
    private var builder: SignatureBuilder
    private var offset: UInt64 = 0
    /// Nanoseconds.
    private var processorTime: UInt64 = 0

    /// A reader at the start of the first basis.
    package init(size: PieceSize) {
        builder = SignatureBuilder(size: size)
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
        let start = MonotonicClock.nanoseconds()
        defer { processorTime += MonotonicClock.nanoseconds() - start }
        offset += UInt64(count)
        var made = signatureCount
        let append = { (signature: PieceSignature, batch: inout [UInt8]) in
            guard made < PieceSignature.limit else { return }
            made += 1
            signature.append(to: &batch)
        }
        builder.receive(UnsafeRawBufferPointer(rebasing: buffer[..<count])) { append($0, &batch) }
        let isAtEnd = count < buffer.count
        if isAtEnd { builder.finish { append($0, &batch) } }
        signatureCount = made
        guard isAtEnd || made == PieceSignature.limit else { return true }
        offset = 0
        return false
    }

    /// How long cutting and hashing took since this was asked last. The rest of a step's time is the disk's.
    package mutating func takeProcessorTime() -> Duration {
        defer { processorTime = 0 }
        return .nanoseconds(processorTime)
    }

    /// Leaves the rest of a basis out; the next call begins another one.
    package mutating func skip() {
        builder.reset()
        offset = 0
    }
}

extension BasisReader: @unchecked Sendable {}  // reason: it alone owns its buffer, and it is not copied
