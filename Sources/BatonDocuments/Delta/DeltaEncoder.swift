// SPDX-License-Identifier: Apache-2.0

/// Says of chunk after chunk of a file which bytes the other device has already.
///
/// The file is cut into pieces by its content, whatever the chunks. A piece that crosses a chunk's end is read ahead to
/// its end once, and both chunks copy their part of it. Every byte is cut and hashed once.
///
/// One encoder serves the chunks of one file after the other, and has one owner. It holds a buffer of 64 KiB to read
/// ahead.
package struct DeltaEncoder: ~Copyable {
    /// Bytes that are read ahead at once.
    package static let aheadSize = 64 << 10

    private let index: SignatureIndex
    private let ahead = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.aheadSize, alignment: 4096)
    private var chunker: ContentDefinedChunker
    /// The piece to which the first `length` bytes of the next chunk belong; nil if one begins with them.
    private var carried: (match: SignatureIndex.Match?, length: Int)?
    /// Where the next chunk has to begin to go on with the pieces; nil when the pieces are of no more use.
    private var next: (file: Int, offset: UInt64)?

    /// An encoder at the start of a file.
    package init(index: SignatureIndex) {
        self.index = index
        chunker = ContentDefinedChunker(size: index.size)
    }

    deinit {
        ahead.deallocate()
    }

    /// Writes the operations that make a chunk.
    ///
    /// A chunk that is not the continuation of the one before begins new pieces, and the cuts find back to those of the
    /// other device within a few. So every chunk of a file is best shown to the encoder, those that go plain as well.
    ///
    /// - Parameters:
    ///   - chunk: the chunk's content.
    ///   - offset: where it begins in its file.
    ///   - file: the file's number.
    ///   - room: where to write to. It need not be larger than the chunk.
    ///   - read: reads bytes of the file at an offset, to find where a piece ends that goes on after the chunk; returns
    ///     how many there are, 0 only at the end of the file.
    /// - Returns: bytes written; nil when they (with the length and the digest that go along) would not be an eighth
    ///   less than the content: send that plain.
    /// - Throws: what `read` throws. The next chunk begins new pieces then.
    package mutating func encode<Failure: Error>(
        _ chunk: UnsafeRawBufferPointer, at offset: UInt64, of file: Int, into room: UnsafeMutableRawBufferPointer,
        readingAhead read: (_ offset: UInt64, _ room: UnsafeMutableRawBufferPointer) throws(Failure) -> Int
    ) throws(Failure) -> Int? {
        if next?.file != file || next?.offset != offset {
            chunker.reset()
            carried = nil
        }
        next = nil
        var writer = DeltaWriter(chunk, into: UnsafeMutableRawBufferPointer(rebasing: room[..<limit(chunk, room)]))
        takeCarried(&writer, chunk.count)
        let end = offset + UInt64(chunk.count)
        while writer.position < chunk.count {
            let rest = UnsafeRawBufferPointer(rebasing: chunk[writer.position...])
            if let length = chunker.nextCut(in: rest) {
                let digest = PieceDigest(of: UnsafeRawBufferPointer(rebasing: rest[..<length]))
                writer.append(index.match(digest, length: length), length: length)
            } else {
                let (digest, length) = try finishPiece(rest, end: end, read)
                carried = (index.match(digest, length: length), length)
                takeCarried(&writer, rest.count)
            }
        }
        next = (file, end)
        return writer.finish()
    }

    /// Bytes that the operations may take.
    private func limit(_ chunk: UnsafeRawBufferPointer, _ room: UnsafeMutableRawBufferPointer) -> Int {
        let besides = MemoryLayout<UInt32>.size + ContentDigest.byteCount
        return max(0, min(room.count, chunk.count - chunk.count / 8 - besides))
    }

    /// Tells what the chunk has of the piece that was decided before, and keeps the rest of it.
    private mutating func takeCarried(_ writer: inout DeltaWriter, _ available: Int) {
        guard let (match, length) = carried else { return }
        let taken = min(length, available)
        writer.append(match, length: taken)
        guard taken < length else {
            carried = nil
            return
        }
        let rest = match.map { SignatureIndex.Match(basis: $0.basis, offset: $0.offset + UInt64(taken)) }
        carried = (rest, length - taken)
    }

    /// Reads to the end of a piece of which the chunk has the start. The chunker has taken that.
    private mutating func finishPiece<Failure: Error>(
        _ start: UnsafeRawBufferPointer, end: UInt64,
        _ read: (UInt64, UnsafeMutableRawBufferPointer) throws(Failure) -> Int
    ) throws(Failure) -> (PieceDigest, length: Int) {
        var hash = PieceHash()
        hash.update(start)
        var length = start.count
        while true {
            let count = try read(end + UInt64(length - start.count), ahead)
            guard count > 0 else {
                chunker.reset()
                return (hash.finish(), length)
            }
            let bytes = UnsafeRawBufferPointer(rebasing: ahead[..<count])
            let cut = chunker.nextCut(in: bytes)
            hash.update(UnsafeRawBufferPointer(rebasing: bytes[..<(cut ?? count)]))
            length += cut ?? count
            if cut != nil { return (hash.finish(), length) }
        }
    }
}

extension DeltaEncoder: @unchecked Sendable {}  // reason: it alone owns its buffer, and it is not copied

/// Writes the operations of one chunk, merging copies that continue each other and literals that touch.
///
/// It gives up once the operations outgrow their room. Borrows both memories for the time of one call.
struct DeltaWriter {
    private enum Pending {
        case nothing
        /// Bytes of the chunk.
        case literal(Range<Int>)
        case copy(SignatureIndex.Match, length: Int)
    }

    private let content: UnsafeRawBufferPointer
    private let room: UnsafeMutableRawBufferPointer
    private var count = 0
    private var pending = Pending.nothing
    private var hasRoom = true
    /// How much of the chunk is told.
    private(set) var position = 0

    init(_ content: UnsafeRawBufferPointer, into room: UnsafeMutableRawBufferPointer) {
        self.content = content
        self.room = room
    }

    /// The next `length` bytes of the chunk: a copy where there is a match.
    mutating func append(_ match: SignatureIndex.Match?, length: Int) {
        guard length > 0 else { return }
        let start = position
        position += length
        switch (pending, match) {
        case (.literal(let range), nil):
            pending = .literal(range.lowerBound..<position)
        case (.copy(let before, let taken), let match?)
        where before.basis == match.basis && before.offset + UInt64(taken) == match.offset:
            pending = .copy(before, length: taken + length)
        case (.nothing, nil), (.copy, nil):
            flush()
            pending = .literal(start..<position)
        case (.nothing, let match?), (.literal, let match?), (.copy, let match?):
            flush()
            pending = .copy(match, length: length)
        }
    }

    /// Ends the chunk.
    ///
    /// - Returns: bytes written, or nil where they had not room.
    mutating func finish() -> Int? {
        flush()
        return hasRoom ? count : nil
    }

    private mutating func flush() {
        defer { pending = .nothing }
        guard hasRoom else { return }
        switch pending {
        case .nothing:
            break
        case .literal(let range):
            let head = UInt64(range.count) << 1
            guard reserve(DeltaNumber.maximumByteCount + range.count) else { return }
            DeltaNumber.write(head, to: room, at: &count)
            UnsafeMutableRawBufferPointer(rebasing: room[count..<count + range.count])
                .copyMemory(from: UnsafeRawBufferPointer(rebasing: content[range]))
            count += range.count
        case .copy(let match, let length):
            guard reserve(3 * DeltaNumber.maximumByteCount) else { return }
            for number in [UInt64(length) << 1 | 1, UInt64(match.basis), match.offset] {
                DeltaNumber.write(number, to: room, at: &count)
            }
        }
    }

    private mutating func reserve(_ bytes: Int) -> Bool {
        hasRoom = bytes <= room.count - count
        return hasRoom
    }
}
