// SPDX-License-Identifier: Apache-2.0

import CXXHash

/// Takes a stream of chunk records apart, in slices of any size, and compares every checksum.
///
/// Plain content is handed on as it comes, and never copied. Encoded content is gathered first and decoded at
/// once: that takes up to 2 MiB, from the first such record on. One owner; not shared between threads.
package struct ChunkVerifier: ~Copyable {
    /// A finding in a slice; they come in order.
    package enum Event {
        /// Content of a chunk from `offset` on, not verified yet. The bytes are on loan for the call.
        case content(chunk: UInt64, offset: Int, bytes: UnsafeRawBufferPointer)
        /// A chunk whose every byte is zero, not verified yet.
        case zeros(chunk: UInt64)
        /// All content of a chunk came before, and matches its checksum.
        case verified(chunk: UInt64, checksum: ChunkChecksum)
    }

    /// Makes content of an encoded chunk: fills `content`, whose size is the chunk's, from `payload`.
    package typealias Decoder = (
        _ encoding: ChunkRecord.Encoding, _ payload: UnsafeRawBufferPointer,
        _ content: UnsafeMutableRawBufferPointer
    ) throws(DocumentError) -> Void

    private enum Phase {
        case header(taken: Int)
        case length(ChunkRecord.Encoding, taken: Int)
        case payload(ChunkRecord.Encoding, size: Int, taken: Int)
        case content(taken: Int)
        case checksum(computed: ChunkChecksum, taken: Int)
        case complete
        case failed
    }

    /// How the document is cut.
    package let layout: ChunkLayout
    /// Chunks found intact so far.
    package private(set) var verifiedChunkCount: UInt64 = 0
    /// Records that have ended.
    private var recordCount: UInt64 = 0
    /// The bottleneck that the sender named last.
    package private(set) var senderBottleneck = Bottleneck.unknown

    private let subject: String
    private let hash: OpaquePointer
    private var remaining: ArraySlice<Range<UInt64>>
    private var chunk: UInt64 = 0
    private var size = 0
    private var phase: Phase
    /// The last bytes of the fields, big endian.
    private var field: UInt128 = 0
    /// Room for an encoded chunk and for its content, made when first needed.
    private var gathered: UnsafeMutableRawBufferPointer?
    private var decoded: UnsafeMutableRawBufferPointer?

    /// A verifier of the records of `ranges`, one range after the other; nil when the document has no such chunks.
    ///
    /// - Parameter label: the document's name, for the errors.
    package init?(layout: ChunkLayout, ranges: [Range<UInt64>], label: DocumentLabel) {
        guard ranges.allSatisfy(layout.contains), let hash = XXH3_createState() else { return nil }
        self.layout = layout
        self.hash = hash
        remaining = ranges.filter { !$0.isEmpty }[...]
        subject = label.description
        phase = .complete
        beginRecord()
    }

    deinit {
        XXH3_freeState(hash)
        gathered?.deallocate()
        decoded?.deallocate()
    }

    /// Bytes, from the next one on, to where a record begins; a guess where only the first byte of one has come.
    var bytesToNextRecord: Int {
        switch phase {
        case .header(let taken): taken == 0 ? 0 : ChunkRecord.headerSize - taken + size + ChunkRecord.checksumSize
        case .length, .complete, .failed: 0
        case .payload(_, let length, let taken): length - taken + ChunkRecord.checksumSize
        case .content(let taken): size - taken + ChunkRecord.checksumSize
        case .checksum(_, let taken): ChunkRecord.checksumSize - taken
        }
    }

    /// Whether every chunk has come and is intact.
    package var isComplete: Bool {
        if case .complete = phase { true } else { false }
    }

    /// Takes the next bytes of the stream, and tells what they are.
    ///
    /// - Parameter decode: what makes content of what comes encoded; refuses it by default, for a receiver that has not
    ///   asked for it.
    /// - Throws: `checksumMismatch`; `badRecord` for a record that is none; `excess` when bytes come after the last
    ///   one; what `decode` and `handle` throw. After an error the verifier is of no more use: every later call throws
    ///   `cancelled`.
    package mutating func receive(
        _ bytes: UnsafeRawBufferPointer, decode: Decoder? = nil, handle: (Event) throws(DocumentError) -> Void
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
        _ bytes: UnsafeRawBufferPointer, decode: Decoder? = nil, handle: (Event) throws(DocumentError) -> Void
    ) throws(DocumentError) -> Int {
        var rest = bytes[...]
        let before = recordCount
        do {
            while !rest.isEmpty, recordCount == before {
                try receiveSome(&rest, decode, handle)
            }
        } catch {
            phase = .failed
            throw error
        }
        return bytes.count - rest.count
    }

    /// Call it at the stream's end.
    ///
    /// - Throws: `incomplete` when something is missing.
    package func finish() throws(DocumentError) {
        guard isComplete else { throw DocumentError(.incomplete, subject) }
    }

    private mutating func receiveSome(
        _ rest: inout Slice<UnsafeRawBufferPointer>, _ decode: Decoder?,
        _ handle: (Event) throws(DocumentError) -> Void
    ) throws(DocumentError) {
        switch phase {
        case .header(let taken):
            guard takeField(&rest, taken, of: ChunkRecord.headerSize, { .header(taken: $0) }) else { return }
            try beginContent(handle)
        case .length(let encoding, let taken):
            guard takeField(&rest, taken, of: ChunkRecord.lengthSize, { .length(encoding, taken: $0) }) else { return }
            let length = Int(UInt32(truncatingIfNeeded: field))
            // The sender sends plain what does not become smaller.
            guard length > 0, length <= size else { throw DocumentError(.badRecord, subject) }
            phase = .payload(encoding, size: length, taken: 0)
        case .payload(let encoding, let length, let taken):
            let piece = rest.prefix(length - taken)
            rest = rest.dropFirst(piece.count)
            UnsafeMutableRawBufferPointer(rebasing: Self.room(&gathered)[taken..<taken + piece.count])
                .copyMemory(from: UnsafeRawBufferPointer(rebasing: piece))
            phase = .payload(encoding, size: length, taken: taken + piece.count)
            if taken + piece.count == length { try endPayload(encoding, length, decode, handle) }
        case .content(let taken):
            let piece = UnsafeRawBufferPointer(rebasing: rest.prefix(size - taken))
            rest = rest.dropFirst(piece.count)
            try takeContent(piece, at: taken, handle)
        case .checksum(let computed, let taken):
            guard takeField(&rest, taken, of: ChunkRecord.checksumSize, { .checksum(computed: computed, taken: $0) })
            else {
                return
            }
            try endRecord(computed, handle)
        case .complete:
            throw DocumentError(.excess, subject)
        case .failed:
            throw DocumentError(.cancelled, subject)
        }
    }

    /// Gathers a field of a few bytes.
    ///
    /// - Returns: whether all of it is there.
    private mutating func takeField(
        _ rest: inout Slice<UnsafeRawBufferPointer>, _ taken: Int, of size: Int, _ waiting: (Int) -> Phase
    ) -> Bool {
        let piece = rest.prefix(size - taken)
        rest = rest.dropFirst(piece.count)
        for byte in piece { field = field << 8 | UInt128(byte) }
        phase = waiting(taken + piece.count)
        return taken + piece.count == size
    }

    private mutating func beginContent(_ handle: (Event) throws(DocumentError) -> Void) throws(DocumentError) {
        guard let encoding = ChunkRecord.Encoding(rawValue: UInt8(truncatingIfNeeded: field >> 8)) else {
            throw DocumentError(.badRecord, subject)
        }
        // An unknown value says nothing, and costs nothing.
        senderBottleneck = Bottleneck(rawValue: UInt8(truncatingIfNeeded: field)) ?? .unknown
        switch encoding {
        case .plain: phase = .content(taken: 0)
        case .zstd, .delta: phase = .length(encoding, taken: 0)
        case .zeros:
            try handle(.zeros(chunk: chunk))
            phase = .checksum(computed: .ofZeros(size), taken: 0)
        }
    }

    private mutating func takeContent(
        _ piece: UnsafeRawBufferPointer, at taken: Int, _ handle: (Event) throws(DocumentError) -> Void
    ) throws(DocumentError) {
        if piece.count == size {
            phase = .checksum(computed: ChunkChecksum(of: piece), taken: 0)
        } else {
            if taken == 0 { XXH3_128bits_reset(hash) }
            baton_xxh3_128_update(hash, piece.baseAddress, piece.count)
            let hash = hash
            phase =
                taken + piece.count == size
                ? .checksum(computed: ChunkChecksum { baton_xxh3_128_digest(hash, $0) }, taken: 0)
                : .content(taken: taken + piece.count)
        }
        try handle(.content(chunk: chunk, offset: taken, bytes: piece))
    }

    private mutating func endPayload(
        _ encoding: ChunkRecord.Encoding, _ length: Int, _ decode: Decoder?,
        _ handle: (Event) throws(DocumentError) -> Void
    ) throws(DocumentError) {
        guard let decode else { throw DocumentError(.badRecord, subject) }
        let content = UnsafeMutableRawBufferPointer(rebasing: Self.room(&decoded)[..<size])
        try decode(encoding, UnsafeRawBufferPointer(rebasing: Self.room(&gathered)[..<length]), content)
        try takeContent(UnsafeRawBufferPointer(content), at: 0, handle)
    }

    private mutating func endRecord(
        _ computed: ChunkChecksum, _ handle: (Event) throws(DocumentError) -> Void
    ) throws(DocumentError) {
        recordCount += 1
        let told = ChunkChecksum(
            high: UInt64(truncatingIfNeeded: field >> 64), low: UInt64(truncatingIfNeeded: field))
        guard computed == told else { throw DocumentError(.checksumMismatch, subject) }
        let ended = chunk
        verifiedChunkCount += 1
        beginRecord()
        try handle(.verified(chunk: ended, checksum: computed))
    }

    private static func room(_ room: inout UnsafeMutableRawBufferPointer?) -> UnsafeMutableRawBufferPointer {
        let made = room ?? .allocate(byteCount: ChunkLayout.chunkSize, alignment: 16)
        room = made
        return made
    }

    private mutating func beginRecord() {
        guard let range = remaining.first else {
            phase = .complete
            return
        }
        chunk = range.lowerBound
        size = layout.size(of: chunk)
        remaining[remaining.startIndex] = range.lowerBound + 1..<range.upperBound
        if range.count == 1 { remaining = remaining.dropFirst() }
        phase = .header(taken: 0)
    }
}
