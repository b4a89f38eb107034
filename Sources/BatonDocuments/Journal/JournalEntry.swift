// SPDX-License-Identifier: Apache-2.0

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
        /// Says nothing: the version before has written it.
        case remnant = 6
        /// From here on entries are of the run of the system that stands for the checksum.
        case run = 7
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
