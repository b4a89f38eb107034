import CXXHash

/// Takes a stream of chunk records apart, in slices of any size, and compares every checksum.
///
/// A pure value without I/O: it holds the hash of the chunk that is under way (576 bytes) and copies no content. One
/// owner; not shared between threads.
public struct ChunkVerifier: ~Copyable {
    /// What was found in a slice, in order.
    public enum Event {
        /// Content of the document at `offset`, not verified yet. The bytes are on loan for the call.
        case content(offset: UInt64, bytes: UnsafeRawBufferPointer)
        /// All content of a chunk came before, and matches its checksum.
        case verified(chunk: UInt64, checksum: ChunkChecksum)
    }

    private enum Phase {
        case content(offset: UInt64, remaining: Int)
        case checksum(taken: Int)
        case complete
        case failed
    }

    /// How the document is cut.
    public let layout: ChunkLayout
    /// The chunks that the stream carries.
    public let chunks: Range<UInt64>
    /// Chunks found intact so far, from the first of `chunks` on.
    public private(set) var verifiedChunks: Range<UInt64>

    /// Whether checksums are compared: see ``ReceivingChecks``.
    private let comparesChecksums: Bool
    /// Whether there may be neither less nor more than the records: see ``ReceivingChecks``.
    private let requiresAll: Bool
    private let subject: String
    private let hash: OpaquePointer
    private var phase: Phase
    private var checksum = InlineChecksum()

    /// A verifier of the records of `chunks`; nil when the document has no such chunks.
    ///
    /// - Parameter label: the document's name, for the errors.
    public init?(layout: ChunkLayout, chunks: Range<UInt64>, label: DocumentLabel) {
        self.init(layout: layout, chunks: chunks, label: label, checks: .all)
    }

    init?(layout: ChunkLayout, chunks: Range<UInt64>, label: DocumentLabel, checks: ReceivingChecks) {
        guard layout.contains(chunks), let hash = XXH3_createState() else { return nil }
        self.layout = layout
        self.chunks = chunks
        self.hash = hash
        subject = label.description
        comparesChecksums = checks.contains(.checksums)
        requiresAll = checks.contains(.whole)
        verifiedChunks = chunks.lowerBound..<chunks.lowerBound
        phase = .complete
        beginChunk(chunks.lowerBound)
    }

    deinit {
        XXH3_freeState(hash)
    }

    /// Whether every chunk has come and is intact.
    public var isComplete: Bool {
        if case .complete = phase { true } else { false }
    }

    /// Bytes of the document in verified chunks.
    public var verifiedByteCount: UInt64 { layout.byteCount(of: verifiedChunks) }

    /// Takes the next bytes of the stream, and tells what they are.
    ///
    /// - Throws: `checksumMismatch`; `excess` when bytes come after the last record; what `handle` throws. After an
    ///   error the verifier is of no more use: every later call throws `cancelled`.
    public mutating func receive(
        _ bytes: UnsafeRawBufferPointer, handle: (Event) throws(DocumentError) -> Void
    ) throws(DocumentError) {
        var rest = bytes[...]
        do {
            while !rest.isEmpty {
                try receiveSome(&rest, handle)
            }
        } catch {
            phase = .failed
            throw error
        }
    }

    /// Call it at the stream's end.
    ///
    /// - Throws: `incomplete` when something is missing.
    public func finish() throws(DocumentError) {
        guard isComplete || !requiresAll else { throw DocumentError(.incomplete, subject) }
    }

    private mutating func receiveSome(
        _ rest: inout Slice<UnsafeRawBufferPointer>, _ handle: (Event) throws(DocumentError) -> Void
    ) throws(DocumentError) {
        switch phase {
        case .content(let offset, let remaining):
            let piece = UnsafeRawBufferPointer(rebasing: rest.prefix(remaining))
            rest = rest.dropFirst(piece.count)
            baton_xxh3_128_update(hash, piece.baseAddress, piece.count)
            let left = remaining - piece.count
            phase =
                left == 0
                ? .checksum(taken: 0) : .content(offset: offset + UInt64(piece.count), remaining: left)
            try handle(.content(offset: offset, bytes: piece))
        case .checksum(let taken):
            let piece = rest.prefix(ChunkLayout.checksumSize - taken)
            rest = rest.dropFirst(piece.count)
            checksum.place(piece, at: taken)
            phase = .checksum(taken: taken + piece.count)
            if taken + piece.count == ChunkLayout.checksumSize { try endChunk(handle) }
        case .complete:
            guard !requiresAll else { throw DocumentError(.excess, subject) }
            rest = rest.dropFirst(rest.count)
        case .failed:
            throw DocumentError(.cancelled, subject)
        }
    }

    private mutating func endChunk(_ handle: (Event) throws(DocumentError) -> Void) throws(DocumentError) {
        let chunk = verifiedChunks.upperBound
        let hash = hash
        let computed = ChunkChecksum { baton_xxh3_128_digest(hash, $0) }
        guard computed == checksum.value || !comparesChecksums else { throw DocumentError(.checksumMismatch, subject) }
        verifiedChunks = verifiedChunks.lowerBound..<chunk + 1
        beginChunk(chunk + 1)
        try handle(.verified(chunk: chunk, checksum: computed))
    }

    private mutating func beginChunk(_ chunk: UInt64) {
        guard chunk < chunks.upperBound else {
            phase = .complete
            return
        }
        XXH3_128bits_reset(hash)
        phase = .content(offset: layout.offset(of: chunk), remaining: layout.size(of: chunk))
    }
}

/// The 16 bytes of a checksum as they arrive, without an allocation.
private struct InlineChecksum {
    private var storage: (UInt64, UInt64) = (0, 0)

    mutating func place(_ bytes: Slice<UnsafeRawBufferPointer>, at offset: Int) {
        withUnsafeMutableBytes(of: &storage) { all in
            UnsafeMutableRawBufferPointer(rebasing: all[offset..<offset + bytes.count])
                .copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes))
        }
    }

    var value: ChunkChecksum { withUnsafeBytes(of: storage) { ChunkChecksum(canonical: $0) } }
}
