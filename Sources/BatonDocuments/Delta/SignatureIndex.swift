// SPDX-License-Identifier: Apache-2.0

/// The signatures of what the other device has, made to be looked up: which of its bytes are these?
///
/// At most `PieceSignature.limit` entries of 32 bytes, and a table of 4 bytes for twice as many: ``memoryBound``, up to
/// which it grows with what came. The other device chooses digests and lengths, so the place in the table depends on a
/// random number of this process too (`Hasher`), and nobody can make all of them collide. A value; copies share their
/// memory.
package struct SignatureIndex: Sendable {
    /// A run of bytes in one of the other device's files.
    package struct Match: Sendable, Hashable {
        /// The number of the file, counted from 0 in the order in which signatures came.
        package let basis: Int
        /// Where the bytes begin in it.
        package let offset: UInt64
    }

    private struct Entry: Sendable {
        let digest: PieceDigest
        let offset: UInt64
        let length: UInt32
        let basis: UInt32
    }

    /// The most bytes that an index takes: 2.5 MiB.
    package static let memoryBound =
        PieceSignature.limit * (MemoryLayout<Entry>.stride + 2 * MemoryLayout<UInt32>.stride)

    /// How the other device cut its files.
    package let size: PieceSize
    /// Signatures that came so far; the same piece twice counts twice.
    package private(set) var signatureCount = 0

    private var entries: [Entry] = []
    /// Numbers of entries, counted from 1; 0 is a free place. The size is a power of two.
    private var table = [UInt32](repeating: 0, count: 1024)
    private var basis = 0
    private var offset: UInt64 = 0
    /// Whether the last piece was one that only the end of a file can be.
    private var isAtEnd = false

    /// An index of nothing.
    package init(size: PieceSize) {
        self.size = size
    }

    /// Whether nothing can be found.
    package var isEmpty: Bool { entries.isEmpty }

    /// Bytes that the index takes on the heap.
    var memory: Int { entries.capacity * MemoryLayout<Entry>.stride + table.capacity * MemoryLayout<UInt32>.stride }

    /// Takes more signatures of the file `basis`, in their wire form; they go on where the last ones of it ended.
    ///
    /// A piece that is there already is left out: the first place is as good.
    ///
    /// - Parameter basis: 0 at first, then the same as before or a larger one (a file without a piece may be left out).
    /// - Throws: for a part of a signature, more than `PieceSignature.limit` of them, files that do not rise, and a
    ///   piece that has no bytes, is too large, or is too small and not the last of its file. The index is then of no
    ///   more use.
    package mutating func append(_ batch: UnsafeRawBufferPointer, basis: Int) throws(DeltaError) {
        guard batch.count.isMultiple(of: PieceSignature.byteCount) else { throw DeltaError() }
        let count = batch.count / PieceSignature.byteCount
        guard count <= PieceSignature.limit - signatureCount else { throw DeltaError() }
        guard basis >= self.basis, basis <= Int(UInt32.max) else { throw DeltaError() }
        if basis > self.basis {
            self.basis = basis
            offset = 0
            isAtEnd = false
        }
        for number in 0..<count {
            let start = number * PieceSignature.byteCount
            try append(
                PieceSignature(wire: UnsafeRawBufferPointer(rebasing: batch[start..<start + PieceSignature.byteCount])))
        }
    }

    /// Where the other device has these bytes; nil where it has not.
    package func match(_ digest: PieceDigest, length: Int) -> Match? {
        let number = table[place(of: digest, length)]
        guard number > 0 else { return nil }
        let entry = entries[Int(number) - 1]
        return Match(basis: Int(entry.basis), offset: entry.offset)
    }

    private mutating func append(_ signature: PieceSignature) throws(DeltaError) {
        let length = Int(signature.length)
        guard length > 0, length <= size.maximum, !isAtEnd else { throw DeltaError() }
        isAtEnd = length < size.minimum
        signatureCount += 1
        let place = place(of: signature.digest, length)
        if table[place] == 0 {
            entries.append(
                Entry(digest: signature.digest, offset: offset, length: signature.length, basis: UInt32(basis)))
            table[place] = UInt32(entries.count)
            if entries.count * 2 > table.count { grow() }
        }
        // Cannot overflow: 65,536 pieces of 16 MiB are 1 TiB.
        offset += UInt64(length)
    }

    private mutating func grow() {
        table = [UInt32](repeating: 0, count: table.count * 2)
        for (number, entry) in entries.enumerated() {
            table[place(of: entry.digest, Int(entry.length))] = UInt32(number + 1)
        }
    }

    /// Where this piece stands in the table, or would stand. There is always a free place.
    private func place(of digest: PieceDigest, _ length: Int) -> Int {
        var hasher = Hasher()
        hasher.combine(digest)
        // The same digest can be said of every length.
        hasher.combine(length)
        var place = hasher.finalize() & (table.count - 1)
        while true {
            let number = table[place]
            guard number > 0 else { return place }
            let entry = entries[Int(number) - 1]
            if entry.digest == digest, Int(entry.length) == length { return place }
            place = (place + 1) & (table.count - 1)
        }
    }
}
