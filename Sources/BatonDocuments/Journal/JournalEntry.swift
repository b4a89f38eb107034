/// An entry of a journal: kind, number and checksum, and a guard that is a checksum of these and of the entry's place.
struct JournalEntry {
    enum Kind: UInt64 {
        /// A chunk is verified and written.
        case chunk = 1
        /// The entries before this number, from the one on that stands for the checksum, are durable.
        case mark = 2
        /// A chunk is not there any more.
        case loss = 3
        /// Of the entries before this number those count that a mark covers, and no others: the disk has failed.
        case distrust = 4
        /// A synchronisation begins that the entries before this number wait for; 0: it has ended, and well.
        case attempt = 5
    }

    /// Bytes of an entry.
    static let size = 40

    let kind: Kind
    let number: UInt64
    let checksum: ChunkChecksum

    init(kind: Kind, number: UInt64, checksum: ChunkChecksum = ChunkChecksum(high: 0, low: 0)) {
        self.kind = kind
        self.number = number
        self.checksum = checksum
    }

    /// Reads the entry at a place; nil for a damaged one.
    init?(_ bytes: ArraySlice<UInt8>, at index: UInt64) {
        var reader = FieldReader(bytes)
        guard
            let kind = reader.number().flatMap(Kind.init(rawValue:)), let number = reader.number(),
            let high = reader.number(), let low = reader.number(), reader.number() != nil
        else { return nil }
        self.init(kind: kind, number: number, checksum: ChunkChecksum(high: high, low: low))
        guard withBytes(at: index, { $0.elementsEqual(bytes) }) else { return nil }
    }

    func withBytes<Result>(at index: UInt64, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        withUnsafeTemporaryAllocation(byteCount: Self.size, alignment: 8) { bytes in
            let fields = (
                kind.rawValue.bigEndian, number.bigEndian, checksum.high.bigEndian, checksum.low.bigEndian
            )
            withUnsafeBytes(of: fields) { bytes.copyMemory(from: $0) }
            bytes.storeBytes(of: index.bigEndian, toByteOffset: 32, as: UInt64.self)
            let guardian = ChunkChecksum(of: UnsafeRawBufferPointer(bytes)).low
            bytes.storeBytes(of: guardian.bigEndian, toByteOffset: 32, as: UInt64.self)
            return body(UnsafeRawBufferPointer(bytes))
        }
    }
}

/// What the entries of a journal say, taken one after the other.
struct JournalReading {
    /// Chunks that are durable, as far as the entries so far say.
    private var durable = ChunkSet()
    /// Entries of chunks that no mark covers yet.
    private var unmarked: [(index: UInt64, chunk: UInt64, checksum: ChunkChecksum)] = []
    /// The last entry that says of a chunk that it is gone: those before it say nothing.
    private var lost: [UInt64: UInt64] = [:]
    /// The entries before this one are not covered by any later mark.
    private(set) var distrusted: UInt64 = 0
    /// The entries before this one waited for a synchronisation of which nobody knows how it ended: 0 where there was none.
    private(set) var doubted: UInt64 = 0

    private let chunkCount: UInt64

    init(chunkCount: UInt64) {
        self.chunkCount = chunkCount
    }

    mutating func take(_ entry: JournalEntry, at index: UInt64) {
        switch entry.kind {
        case .chunk:
            guard entry.number < chunkCount else { return }
            unmarked.append((index, entry.number, entry.checksum))
        case .loss:
            guard entry.number < chunkCount else { return }
            durable.remove(entry.number..<entry.number + 1)
            lost[entry.number] = index
        case .mark:
            guard entry.checksum.low < entry.number else { return }
            let covered = entry.checksum.low..<entry.number
            for entry in unmarked where covered.contains(entry.index) && counts(entry.chunk, at: entry.index) {
                durable.insert(entry.chunk)
            }
            unmarked.removeAll { covered.contains($0.index) }
            if doubted <= entry.number { doubted = 0 }
        case .distrust:
            distrusted = max(distrusted, min(entry.number, index))
            unmarked.removeAll { $0.index < distrusted }
            if doubted <= distrusted { doubted = 0 }
        case .attempt: doubted = entry.number == 0 ? 0 : max(doubted, min(entry.number, index))
        }
    }

    /// What all of them say together.
    ///
    /// - Parameter start: from this one on entries count that no mark covers: what they are of, the kernel still has.
    func result(trustingFrom start: UInt64) -> (verified: ChunkSet, unsure: [(chunk: UInt64, checksum: ChunkChecksum)])
    {
        var verified = durable
        var unsure: [(chunk: UInt64, checksum: ChunkChecksum)] = []
        // One that was lost, and has come again since, is not looked at.
        for entry in unmarked where counts(entry.chunk, at: entry.index) && !verified.contains(entry.chunk) {
            if entry.index >= start {
                verified.insert(entry.chunk)
            } else {
                unsure.append((entry.chunk, entry.checksum))
            }
        }
        return (verified, unsure)
    }

    private func counts(_ chunk: UInt64, at index: UInt64) -> Bool { lost[chunk].map { $0 < index } ?? true }
}
