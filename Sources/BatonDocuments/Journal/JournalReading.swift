// SPDX-License-Identifier: Apache-2.0

/// What the entries of a journal say, taken one after the other.
struct JournalReading {
    /// Chunks that are durable, as far as the entries so far say.
    private var durable = ChunkSet()
    /// Entries of chunks that no mark covers, or none that counts.
    private var unmarked: [(index: UInt64, chunk: UInt64, checksum: ChunkChecksum)] = []
    /// The last entry that says of a chunk that it is gone: those before it say nothing.
    private var lost: [UInt64: UInt64] = [:]
    /// The entries before this one are not covered by any later mark.
    private(set) var distrusted: UInt64
    /// The entries before this one waited for a synchronisation of which nobody knows how it ended, or were damaged: 0
    /// where there is nothing of both.
    private(set) var doubted: UInt64
    /// The last run of the system in which it was gone on with, and its first entry; nil where it is the one in which
    /// it was begun.
    private(set) var run: (checksum: ChunkChecksum, start: UInt64)?

    private let chunkCount: UInt64
    /// The entries before this one may have been taken back by one that cannot be read: no mark vouches for them.
    private let damageEnd: UInt64

    /// - Parameter damageEnd: see ``JournalDamage/doubtEnd``.
    init(chunkCount: UInt64, doubtingBefore damageEnd: UInt64) {
        self.chunkCount = chunkCount
        self.damageEnd = damageEnd
        distrusted = 0
        doubted = damageEnd
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
            let first = max(entry.checksum.low, damageEnd)
            guard first < entry.number else { return }
            let covered = first..<entry.number
            for entry in unmarked where covered.contains(entry.index) && counts(entry.chunk, at: entry.index) {
                durable.insert(entry.chunk)
            }
            unmarked.removeAll { covered.contains($0.index) }
            if doubted <= entry.number { doubted = damageEnd }
        case .distrust:
            distrusted = max(distrusted, min(entry.number, index))
            unmarked.removeAll { $0.index < distrusted }
            if doubted <= distrusted { doubted = damageEnd }
        case .attempt: doubted = entry.number == 0 ? damageEnd : max(doubted, min(entry.number, index))
        case .remnant: return
        case .run: run = (entry.checksum, index)
        }
    }

    /// What all of them say together.
    ///
    /// - Parameter start: from this one on entries count that no mark covers: what they are of, the kernel still has.
    func result(trustingFrom start: UInt64) -> (verified: ChunkSet, unsure: [(chunk: UInt64, checksum: ChunkChecksum)])
    {
        var verified = durable
        let counting = unmarked.filter { counts($0.chunk, at: $0.index) }
        for entry in counting where entry.index >= start { verified.insert(entry.chunk) }
        // One that has come again since is not looked at.
        let unsure = counting.filter { $0.index < start && !verified.contains($0.chunk) }
        return (verified, unsure.map { ($0.chunk, $0.checksum) })
    }

    private func counts(_ chunk: UInt64, at index: UInt64) -> Bool { lost[chunk].map { $0 < index } ?? true }
}
