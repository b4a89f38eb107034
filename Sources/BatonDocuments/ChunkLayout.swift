import CXXHash

/// How a document's bytes are cut into chunks, and what a chunk looks like on the wire.
///
/// A chunk is 1 MiB at a multiple of 1 MiB; the last one is what is left. On the wire it is a *record*: its bytes, then
/// the 16 bytes of its checksum. A document of 0 bytes has no chunk. See "Document ranges" in the wire specification.
public struct ChunkLayout: Sendable, Hashable {
    /// Bytes of every chunk but the last: 1 MiB.
    public static let chunkSize = 1 << 20
    /// Bytes of the checksum that follows a chunk on the wire.
    public static let checksumSize = 16
    /// Bytes of the largest record: what a buffer needs to hold one.
    public static let recordCapacity = chunkSize + checksumSize

    /// The document's size in bytes, at most 2^63 - 1: the largest file offset.
    public let documentSize: UInt64

    /// The layout of a document of `documentSize` bytes.
    ///
    /// - Returns: nil above 2^63 - 1 bytes, which no file can have.
    public init?(documentSize: UInt64) {
        guard documentSize <= UInt64(Int64.max) else { return nil }
        self.documentSize = documentSize
    }

    /// How many chunks there are.
    public var chunkCount: UInt64 {
        let (whole, rest) = documentSize.quotientAndRemainder(dividingBy: UInt64(Self.chunkSize))
        return whole + (rest == 0 ? 0 : 1)
    }

    /// Every chunk.
    public var allChunks: Range<UInt64> { 0..<chunkCount }

    /// Whether the document has all these chunks.
    public func contains(_ chunks: Range<UInt64>) -> Bool { chunks.upperBound <= chunkCount }

    /// Where a chunk begins in the document. The chunk has to exist, or be the one after the last.
    public func offset(of chunk: UInt64) -> UInt64 {
        min(chunk * UInt64(Self.chunkSize), documentSize)
    }

    /// Bytes of a chunk, without its checksum. The chunk has to exist.
    public func size(of chunk: UInt64) -> Int {
        Int(offset(of: chunk + 1) - offset(of: chunk))
    }

    /// Bytes of the document in these chunks. They have to exist.
    public func byteCount(of chunks: Range<UInt64>) -> UInt64 {
        offset(of: chunks.upperBound) - offset(of: chunks.lowerBound)
    }

    /// The chunks that hold these bytes of the document; none for an empty range. The bytes have to exist.
    public func chunks(covering bytes: Range<UInt64>) -> Range<UInt64> {
        let chunkSize = UInt64(Self.chunkSize)
        let first = bytes.lowerBound / chunkSize
        return bytes.isEmpty ? first..<first : first..<((bytes.upperBound - 1) / chunkSize + 1)
    }

    /// Bytes on the wire for these chunks, checksums included. They have to exist.
    public func wireByteCount(of chunks: Range<UInt64>) -> UInt64 {
        byteCount(of: chunks) + UInt64(chunks.count) * UInt64(Self.checksumSize)
    }
}

/// The XXH3-128 checksum of a chunk (seed 0, default secret).
///
/// It finds damage by disks, memory and mistakes; against people there is TLS.
public struct ChunkChecksum: Sendable, Hashable {
    /// The checksum's more significant half: the first 8 bytes on the wire.
    public let high: UInt64
    /// The less significant half: the last 8 bytes.
    public let low: UInt64

    /// The checksum of these bytes: about 20 µs for 1 MiB in cache.
    public init(of bytes: UnsafeRawBufferPointer) {
        self.init { baton_xxh3_128(bytes.baseAddress, bytes.count, $0) }
    }

    /// The checksum that stands at `bytes` in its canonical form (big endian). There have to be 16 bytes.
    public init(canonical bytes: UnsafeRawBufferPointer) {
        high = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 0, as: UInt64.self))
        low = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
    }

    /// The checksum that `body` writes, canonical, to 16 bytes.
    init(writtenBy body: (UnsafeMutableRawPointer?) -> Void) {
        self = withUnsafeTemporaryAllocation(byteCount: ChunkLayout.checksumSize, alignment: 8) { bytes in
            body(bytes.baseAddress)
            return ChunkChecksum(canonical: UnsafeRawBufferPointer(bytes))
        }
    }

    /// Writes the canonical form to the first 16 bytes of `bytes`.
    public func write(to bytes: UnsafeMutableRawBufferPointer) {
        bytes.storeBytes(of: high.bigEndian, toByteOffset: 0, as: UInt64.self)
        bytes.storeBytes(of: low.bigEndian, toByteOffset: 8, as: UInt64.self)
    }
}
