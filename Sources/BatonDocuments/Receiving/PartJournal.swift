// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import SystemPackage

/// The journal of a part, and what makes hold what it says: marks of what is on the disk, and what has to be taken back
/// where the disk fails.
///
/// Belongs to the thread of the part.
final class PartJournal {
    /// Entries that are written at once: 8,192, which are 320 KiB.
    private static let batchSize = 8192

    private let part: any Part
    private let place: PartPlace
    /// Nil where it could not be made: then a transfer that is interrupted begins anew. What a full disk does not take
    /// of it waits, and is written when there is room.
    private var journal: TransferJournal?
    /// Nil until the first mark is due: most documents are on the disk before.
    private var marker: DiskMarker?
    /// What the next mark is made through. It was opened before what that is to cover was written: Linux tells an error
    /// of writing back to openings of before it, and to a later one only as long as nobody else has heard of it.
    private var witness: DescriptorToSynchronize?
    private var unmarkedByteCount: UInt64 = 0
    private let now: () -> UInt64
    private var lastMark: UInt64
    private var isRecordDurable = false
    /// Whether a mark was made that is not durable yet.
    private var isMarkPending = false

    /// - Parameter now: the clock, in nanoseconds.
    init(
        _ journal: TransferJournal?, of part: any Part, at place: PartPlace,
        now: @escaping () -> UInt64 = MonotonicClock.nanoseconds
    ) {
        self.part = part
        self.place = place
        self.journal = journal
        self.now = now
        lastMark = now()
        if journal != nil { witness = try? part.descriptorToSynchronize() }
    }

    /// Whether there is one.
    var isThere: Bool { journal != nil }

    /// Whether it has all that was appended: not where the disk has no room for that, nor where there is no journal.
    var isFlushed: Bool { journal?.isFlushed ?? false }

    /// A chunk is verified and written.
    func append(_ chunk: UInt64, _ checksum: ChunkChecksum, size: Int) {
        journal?.append(chunk, checksum)
        unmarkedByteCount += UInt64(size)
    }

    /// A chunk that was there is not there any more.
    func lose(_ chunk: UInt64) { journal?.lose(chunk) }

    /// Writes down what has come, and sees to it that it becomes durable now and then.
    ///
    /// - Throws: that the disk has failed aside. What may be gone is given up then (``verified()``).
    func note() throws(Errno) {
        try flush()
        guard let journal, unmarkedByteCount > 0, isMarkDue, marker?.isIdle ?? true else { return }
        unmarkedByteCount = 0
        lastMark = now()
        // Where there is no thread to be had, there may be one when the next mark is due.
        if marker == nil { marker = try? DiskMarker() }
        guard let marker else { return }
        if !isRecordDurable {
            guard (try? place.synchronize(part.record)) != nil else { return }
            isRecordDurable = true
        }
        let count = journal.entryCount
        guard journal.attempt(count) else { return }
        if let witness = witness.take() { marker.begin(covering: count, witness) }
        witness = try? part.descriptorToSynchronize()
    }

    /// Writes down what has come, and waits for what the disk does aside: nobody would hear of it later.
    ///
    /// - Parameter chunks: what has come.
    /// - Returns: what of it the journal vouches for.
    func end(of chunks: ChunkSet) -> ChunkSet {
        marker?.settle()
        defer { journal?.giveBack() }
        do {
            try flush()
        } catch {
            return verified()
        }
        guard let journal else { return ChunkSet() }
        return journal.isFlushed ? chunks : verified()
    }

    /// The part is about to be synchronised, by somebody else: ``distrust()``, ``endSynchronisation()`` or the end of
    /// the part follow.
    func expectSynchronisation() {
        guard let journal else { return }
        // One that cannot be written says no more than before.
        _ = journal.attempt(journal.entryCount)
    }

    /// That went well, and the part is there still.
    func endSynchronisation() {
        journal?.endAttempt()
        // Where that cannot be written, all is read again the next time.
        try? journal?.flush()
    }

    /// Says which chunks come with files that are about to be moved into the part, and makes that durable, with the
    /// part's record and the names of both.
    ///
    /// - Returns: these chunks.
    /// - Throws: `stateUnavailable`, ... Nothing may be moved then.
    func announce(_ older: OlderFolder, in layout: ChunkLayout) throws(DocumentError) -> ChunkSet {
        var chunks = ChunkSet()
        var pendingCount = 0
        do throws(Errno) {
            try older.forEachUnchangedChunk(in: layout) { (chunk, checksum) throws(Errno) in
                guard !chunks.contains(chunk) else { return }
                chunks.insert(chunk)
                append(chunk, checksum, size: layout.size(of: chunk))
                pendingCount += 1
                if pendingCount.isMultiple(of: Self.batchSize) { try journal?.flush() }
            }
            try journal?.flush()
            try journal?.synchronize()
        } catch {
            throw place.ledger.failure(error)
        }
        try place.synchronize(part.record)
        isRecordDurable = true
        return chunks
    }

    /// The part was synchronised, and so all that was said so far is durable.
    func vouch() {
        guard let journal else { return }
        journal.mark(journal.entryCount)
        isMarkPending = true
        unmarkedByteCount = 0
        // If that cannot be written, what was said counts as long as the system runs.
        try? flush()
    }

    /// What is said from now on is of the present run of the system.
    func beginRun() { journal?.beginRun() }

    /// What was doubted was read again, and what is there said again.
    func endDoubt() {
        journal?.endDoubt()
        // Where that cannot be written it is doubted the next time as well.
        try? journal?.flush()
    }

    /// What the journal vouches for, as it is on the disk.
    func verified() -> ChunkSet { (try? journal?.verified()) ?? ChunkSet() }

    /// Writes down, durably, what was lost. What a journal that cannot be written says of it would be believed.
    func writeLosses() {
        guard let journal else { return }
        do {
            guard !journal.isFlushed else { return }
            try journal.flush()
            try journal.synchronize()
        } catch {
            journal.void()
            self.journal = nil
        }
    }

    /// Gives up what no mark covers: the disk has failed, and what it was given since may be gone.
    func distrust() {
        guard let journal, !journal.distrust() else { return }
        self.journal = nil
    }

    /// Asks the disk, after a write has failed, whether what was written before has failed as well.
    func examine() {
        guard journal != nil else { return }
        marker?.settle()
        do throws(Errno) {
            try flush()
            expectSynchronisation()
            if let witness = witness.take() {
                try witness.synchronize()
            } else {
                try synchronizeAnew()
            }
            endSynchronisation()
            try flush()
        } catch {
            distrust()
        }
    }

    private func synchronizeAnew() throws(Errno) {
        do {
            let file = try part.descriptorToSynchronize()
            try file.synchronize()
        } catch {
            throw (error as? Errno) ?? .ioError
        }
    }

    /// - Throws: that a synchronisation aside has failed.
    private func flush() throws(Errno) {
        guard let journal else { return }
        switch marker?.takeOutcome() {
        case .covered(let count)?:
            journal.mark(count)
            isMarkPending = true
        case .failed(let error)?:
            distrust()
            throw error
        case nil: break
        }
        do {
            try journal.flush()
            guard isMarkPending else { return }
            // A mark that a power cut takes away vouches for nothing.
            try journal.synchronize()
            isMarkPending = false
        } catch {
            // The state folder's disk may be full: the document still arrives, and what was written before counts.
        }
    }

    private var isMarkDue: Bool {
        unmarkedByteCount >= DiskMarker.byteInterval
            || now() - lastMark >= DiskMarker.timeInterval
    }
}
