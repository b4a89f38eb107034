// SPDX-License-Identifier: Apache-2.0

/// An entry of a journal: kind, number and checksum, and a guard that is a checksum of these and of the entry's place.
struct JournalEntry {
    enum Kind: UInt64 {
        /// A chunk is verified and written.
        case chunk = 1
        /// The disk has all chunks of the entries before this one. Its number is 0: with another one it is a mark of
        /// the version before, which says nothing here.
        case checkpoint = 2
    }

    /// Bytes of an entry.
    static let size = 40

    let kind: Kind
    let number: UInt64
    let checksum: ChunkChecksum

    init(kind: Kind, number: UInt64 = 0, checksum: ChunkChecksum = ChunkChecksum(high: 0, low: 0)) {
        self.kind = kind
        self.number = number
        self.checksum = checksum
    }

    /// Reads the entry at a place; nil for a damaged one, and for one of the version before that says nothing here.
    init?(_ bytes: ArraySlice<UInt8>, at index: UInt64) {
        var reader = FieldReader(bytes)
        guard
            let kind = reader.number().flatMap(Kind.init(rawValue:)), let number = reader.number(),
            let high = reader.number(), let low = reader.number(), kind == .chunk || number == 0
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
