// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonProtocol

/// Makes the records of chunks, each in the encoding that says it shortest without costing more time than it saves.
///
/// Content is read straight to where it is sent from. An encoding is tried aside, in room of 1 MiB that is made when
/// first needed, and takes the content's place where it is smaller. Where there is both an older copy and a receiver
/// that takes what is compressed, there are two such rooms, and the smaller of two encodings is sent.
struct ChunkEncoder: ~Copyable {
    var times = DocumentReader.Times()

    private var delta: DeltaEncoder?
    private let now: @Sendable () -> Instant
    private var policy: CompressionPolicy
    private let takesCompressed: Bool
    private var compressor: ChunkCompressor?
    /// Outcomes of the chunks since the caller told how long the link took, without that time.
    private var pending: [CompressionPolicy.Outcome] = []
    private var scratch: UnsafeMutableRawBufferPointer?
    /// For what is compressed while what differs is in the other.
    private var scratchBeside: UnsafeMutableRawBufferPointer?
    private var bottleneck = Bottleneck.unknown

    /// - Parameters:
    ///   - encodings: what the receiver takes.
    ///   - now: the clock by which is judged whether compressing pays.
    init(
        _ encodings: consuming DocumentReader.Encodings,
        now: @escaping @Sendable () -> Instant = { Instant(nanoseconds: MonotonicClock.nanoseconds()) }
    ) {
        delta = encodings.signatures.map { DeltaEncoder(index: $0) }
        takesCompressed = encodings.takesCompressed
        self.now = now
        policy = CompressionPolicy(now: now())
    }

    deinit {
        scratch?.deallocate()
        scratchBeside?.deallocate()
    }

    /// The next records are for a transfer that waits for this.
    mutating func begin(telling bottleneck: Bottleneck, linkWait: Duration) {
        self.bottleneck = bottleneck
        // All chunks of a buffer share one wait.
        if !pending.isEmpty { pending[0].waiting = linkWait }
        for outcome in pending { policy.record(outcome, now: now()) }
        pending.removeAll(keepingCapacity: true)
    }

    /// Appends the record of a chunk to a buffer that has the room.
    ///
    /// - Parameter isHole: whether there was nothing but a hole; then the record alone needs room.
    mutating func encode(
        _ place: ChunkLayout.Place, of file: OpenedFile, isHole: Bool, to buffer: Buffer
    ) throws(DocumentError) {
        let record = UnsafeMutableRawBufferPointer(rebasing: buffer.writable[buffer.count...])
        record[1] = bottleneck.rawValue
        let start = MonotonicClock.nanoseconds()
        guard !isHole else {
            try file.requireUnchanged()
            record[0] = ChunkRecord.Encoding.zeros.rawValue
            buffer.count += seal(record, ChunkRecord.headerSize, .ofZeros(place.size))
            // The link may be waited for behind zeros too. Tens of thousands of them fit in a buffer: one stands for
            // all.
            if takesCompressed, pending.isEmpty { pending.append(.init(contentSize: 0, wireSize: 0, compressing: nil)) }
            times.disk += .nanoseconds(MonotonicClock.nanoseconds() - start)
            return
        }
        let content = UnsafeMutableRawBufferPointer(
            rebasing: record[ChunkRecord.headerSize..<ChunkRecord.headerSize + place.size])
        try file.read(into: content, at: place.offset)
        let read = MonotonicClock.nanoseconds()
        let checksum = ChunkChecksum(of: UnsafeRawBufferPointer(content))
        let end: Int
        if let (encoding, payload) = try encoded(UnsafeRawBufferPointer(content), place, file) {
            record[0] = encoding.rawValue
            record.storeBytes(
                of: UInt32(payload.count).bigEndian, toByteOffset: ChunkRecord.headerSize, as: UInt32.self)
            let start = ChunkRecord.headerSize + ChunkRecord.lengthSize
            end = start + payload.count
            UnsafeMutableRawBufferPointer(rebasing: record[start..<end]).copyMemory(from: payload)
        } else {
            record[0] = ChunkRecord.Encoding.plain.rawValue
            end = ChunkRecord.headerSize + place.size
        }
        buffer.count += seal(record, end, checksum)
        times.disk += .nanoseconds(read - start)
        times.processor += .nanoseconds(MonotonicClock.nanoseconds() - read)
    }

    /// A shorter way to say a chunk, if there is one that pays.
    private mutating func encoded(
        _ content: UnsafeRawBufferPointer, _ place: ChunkLayout.Place, _ file: OpenedFile
    ) throws(DocumentError) -> (ChunkRecord.Encoding, UnsafeRawBufferPointer)? {
        let payload = try differences(of: content, place, file)
        let otherwise = payload.map { (ChunkRecord.Encoding.delta, $0) }
        guard takesCompressed else { return otherwise }
        // The delta stays where it is until it is known which of them is shorter.
        let room = payload == nil ? Self.make(&scratch) : Self.make(&scratchBeside)
        guard let count = compress(content, into: room, insteadOf: payload?.count) else {
            return otherwise
        }
        return (.zstd, UnsafeRawBufferPointer(rebasing: room[..<count]))
    }

    /// Compresses a chunk, if that is worth its time.
    ///
    /// - Parameter delta: bytes of the delta that is sent otherwise; nil if the content is.
    /// - Returns: bytes written, fewer than would be sent otherwise; nil if the chunk is better sent so.
    private mutating func compress(
        _ content: UnsafeRawBufferPointer, into room: UnsafeMutableRawBufferPointer, insteadOf delta: Int?
    ) -> Int? {
        let (start, size) = (now(), delta ?? content.count)
        guard policy.shouldCompress(now: start) else {
            pending.append(.init(contentSize: size, wireSize: size, compressing: nil))
            return nil
        }
        if compressor == nil { compressor = try? ChunkCompressor() }
        // The compressor gives up as soon as its room is full.
        let limit = delta.map { min($0 - 1, room.count) } ?? room.count
        let count = compressor?.compress(content, into: UnsafeMutableRawBufferPointer(rebasing: room[..<limit]))
        pending.append(.init(contentSize: size, wireSize: count ?? size, compressing: now() - start))
        return count
    }

    private mutating func differences(
        of content: UnsafeRawBufferPointer, _ place: ChunkLayout.Place, _ file: OpenedFile
    ) throws(DocumentError) -> UnsafeRawBufferPointer? {
        guard delta != nil else { return nil }
        let room = Self.make(&scratch)
        let count = try delta?.encode(content, at: place.offset, of: place.file, into: room) {
            (offset, room) throws(DocumentError) in try file.readSome(into: room, at: offset)
        }
        guard let count else { return nil }
        ContentDigest(of: content).write(
            to: UnsafeMutableRawBufferPointer(rebasing: room[count..<count + ContentDigest.byteCount]))
        return UnsafeRawBufferPointer(rebasing: room[..<(count + ContentDigest.byteCount)])
    }

    /// Ends a record with its checksum.
    ///
    /// - Returns: bytes of the record.
    private func seal(_ record: UnsafeMutableRawBufferPointer, _ end: Int, _ checksum: ChunkChecksum) -> Int {
        checksum.write(to: UnsafeMutableRawBufferPointer(rebasing: record[end..<end + ChunkRecord.checksumSize]))
        return end + ChunkRecord.checksumSize
    }

    private static func make(_ scratch: inout UnsafeMutableRawBufferPointer?) -> UnsafeMutableRawBufferPointer {
        let room = scratch ?? .allocate(byteCount: ChunkLayout.chunkSize, alignment: 4096)
        scratch = room
        return room
    }
}
