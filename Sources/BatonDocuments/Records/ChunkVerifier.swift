// SPDX-License-Identifier: Apache-2.0

package import BatonProtocol

/// Takes a stream of chunk records apart, in slices of any size, and compares every checksum.
///
/// A record that a slice has whole is taken where it is. One that is cut is gathered first, in ``room``. What comes
/// encoded is decoded to memory of 1 MiB, from the first such record on. One owner; not shared between threads.
package struct ChunkVerifier: ~Copyable {
    /// A chunk whose content matches its checksum.
    package struct Chunk {
        package let number: UInt64
        /// On loan for the call; nil where every byte is zero. In memory of the verifier's own, and in slices, a whole
        /// chunk begins with a page.
        package let content: UnsafeRawBufferPointer?
        package let checksum: ChunkChecksum
    }

    /// Makes content of an encoded chunk: fills `content`, whose size is the chunk's, from `payload`.
    package typealias Decoder = (
        _ encoding: ChunkRecord.Encoding, _ payload: UnsafeRawBufferPointer,
        _ content: UnsafeMutableRawBufferPointer
    ) throws(DocumentError) -> Void

    /// How the document is cut.
    package let layout: ChunkLayout
    /// Chunks found intact so far.
    package private(set) var verifiedChunkCount: UInt64 = 0
    /// The bottleneck that the sender named last.
    package private(set) var senderBottleneck = Bottleneck.unknown
    /// Where a record is gathered that is cut, of `ChunkRecord.capacity`: made when first needed, unless the owner
    /// gives an empty one before. The owner may use it from each chunk that it is handed until it gives more bytes.
    package var room: Buffer?

    private let subject: String
    /// What is left behind ``next``.
    private var remaining: ArraySlice<Range<UInt64>>
    /// The chunk whose record comes next; nil behind the last one.
    private var next: (number: UInt64, size: Int)?
    private var hasFailed = false
    private var decoded: UnsafeMutableRawBufferPointer?

    /// A verifier of the records of `ranges`, one range after the other; nil when the document has no such chunks.
    ///
    /// - Parameter label: the document's name, for the errors.
    package init?(layout: ChunkLayout, ranges: [Range<UInt64>], label: DocumentLabel) {
        guard ranges.allSatisfy(layout.contains) else { return nil }
        self.layout = layout
        remaining = ranges.filter { !$0.isEmpty }[...]
        subject = label.description
        advance()
    }

    deinit {
        decoded?.deallocate()
    }

    /// Bytes, from the next one on, to where a record begins.
    var bytesToNextRecord: Int {
        guard let room, room.count > 0, let end = try? end(of: room.bytes, isDecoded: true) else { return 0 }
        return end - room.count
    }

    /// Whether every chunk has come and is intact.
    package var isComplete: Bool { next == nil && !hasFailed }

    /// Takes the next bytes of the stream, and tells what they are.
    ///
    /// - Parameters:
    ///   - decode: what makes content of what comes encoded; refuses it by default, for a receiver that has not asked
    ///     for it.
    ///   - handle: takes each chunk, in order.
    /// - Throws: `checksumMismatch`; `badRecord` for a record that is none; `excess` when bytes come after the last
    ///   one; what `decode` and `handle` throw. After an error the verifier is of no more use: every later call throws
    ///   `cancelled`.
    package mutating func receive(
        _ bytes: UnsafeRawBufferPointer, decode: Decoder? = nil, handle: (Chunk) throws(DocumentError) -> Void
    ) throws(DocumentError) {
        var taken = 0
        while taken < bytes.count {
            taken += try receiveRecord(
                UnsafeRawBufferPointer(rebasing: bytes[taken...]), decode: decode, handle: handle)
        }
    }

    /// The same, to the end of the next record and no further.
    ///
    /// - Returns: how many bytes were taken: all, or up to the end of a record.
    package mutating func receiveRecord(
        _ bytes: UnsafeRawBufferPointer, decode: Decoder? = nil, handle: (Chunk) throws(DocumentError) -> Void
    ) throws(DocumentError) -> Int {
        guard !hasFailed else { throw DocumentError(.cancelled, subject) }
        do {
            if room?.count ?? 0 == 0 {
                let end = try end(of: bytes, isDecoded: decode != nil)
                if end <= bytes.count, isInPlace(bytes) {
                    try take(UnsafeRawBufferPointer(rebasing: bytes[..<end]), decode, handle)
                    return end
                }
            }
            return try gather(bytes, decode, handle)
        } catch {
            hasFailed = true
            throw error
        }
    }

    /// Call it at the stream's end.
    ///
    /// - Throws: `incomplete` when something is missing.
    package func finish() throws(DocumentError) {
        guard isComplete else { throw DocumentError(.incomplete, subject) }
    }

    /// Whether a record can be taken where it is: a whole chunk has to begin with a page.
    private func isInPlace(_ record: UnsafeRawBufferPointer) -> Bool {
        guard next?.size == ChunkLayout.chunkSize, record[0] == ChunkRecord.Encoding.plain.rawValue else { return true }
        return (UInt(bitPattern: record.baseAddress) + UInt(ChunkRecord.headerSize))
            .isMultiple(of: UInt(Buffer.pageSize))
    }

    private mutating func gather(
        _ bytes: UnsafeRawBufferPointer, _ decode: Decoder?, _ handle: (Chunk) throws(DocumentError) -> Void
    ) throws(DocumentError) -> Int {
        let room = room ?? Buffer(capacity: ChunkRecord.capacity, alignedByte: ChunkRecord.headerSize)
        self.room = room
        var taken = 0
        while true {
            let end = try end(of: room.bytes, isDecoded: decode != nil)
            guard room.count < end else { break }
            guard taken < bytes.count else { return taken }
            let piece = bytes[taken..<min(bytes.count, taken + end - room.count)]
            taken += room.append(UnsafeRawBufferPointer(rebasing: piece))
        }
        let record = room.bytes
        room.count = 0
        try take(record, decode, handle)
        return taken
    }

    /// Where a record ends that begins with these bytes, or where it is known at the earliest: beyond them.
    private func end(of record: UnsafeRawBufferPointer, isDecoded: Bool) throws(DocumentError) -> Int {
        guard let next else { throw DocumentError(.excess, subject) }
        guard let first = record.first else { return ChunkRecord.headerSize }
        switch ChunkRecord.Encoding(rawValue: first) {
        case .plain: return ChunkRecord.headerSize + next.size + ChunkRecord.checksumSize
        case .zeros: return ChunkRecord.headerSize + ChunkRecord.checksumSize
        case .zstd, .delta:
            guard isDecoded else { break }
            let start = ChunkRecord.headerSize + ChunkRecord.lengthSize
            guard record.count >= start else { return start }
            let length = UInt32(
                bigEndian: record.loadUnaligned(fromByteOffset: ChunkRecord.headerSize, as: UInt32.self))
            // The sender sends plain what does not become smaller.
            guard length > 0, length <= next.size else { break }
            return start + Int(length) + ChunkRecord.checksumSize
        case nil: break
        }
        throw DocumentError(.badRecord, subject)
    }

    /// Takes a whole record.
    private mutating func take(
        _ record: UnsafeRawBufferPointer, _ decode: Decoder?, _ handle: (Chunk) throws(DocumentError) -> Void
    ) throws(DocumentError) {
        guard let next, let encoding = ChunkRecord.Encoding(rawValue: record[0]) else {
            throw DocumentError(.badRecord, subject)
        }
        // An unknown value says nothing, and costs nothing.
        senderBottleneck = Bottleneck(rawValue: record[1]) ?? .unknown
        let end = record.count - ChunkRecord.checksumSize
        var content: UnsafeRawBufferPointer?
        switch encoding {
        case .plain: content = UnsafeRawBufferPointer(rebasing: record[ChunkRecord.headerSize..<end])
        case .zeros: break
        case .zstd, .delta:
            let made =
                decoded
                ?? UnsafeMutableRawBufferPointer.allocate(
                    byteCount: ChunkLayout.chunkSize, alignment: Buffer.pageSize)
            decoded = made
            let start = ChunkRecord.headerSize + ChunkRecord.lengthSize
            let room = UnsafeMutableRawBufferPointer(rebasing: made[..<next.size])
            try decode?(encoding, UnsafeRawBufferPointer(rebasing: record[start..<end]), room)
            content = UnsafeRawBufferPointer(room)
        }
        let checksum = content.map { ChunkChecksum(of: $0) } ?? .ofZeros(next.size)
        guard checksum == ChunkChecksum(canonical: UnsafeRawBufferPointer(rebasing: record[end...])) else {
            throw DocumentError(.checksumMismatch, subject)
        }
        verifiedChunkCount += 1
        advance()
        try handle(Chunk(number: next.number, content: content, checksum: checksum))
    }

    private mutating func advance() {
        next = remaining.first.map { ($0.lowerBound, layout.size(of: $0.lowerBound)) }
        guard let range = remaining.first else { return }
        remaining[remaining.startIndex] = range.lowerBound + 1..<range.upperBound
        if range.count == 1 { remaining = remaining.dropFirst() }
    }
}
