import BatonEventLoop
import BatonProtocol
import Glibc
import SystemPackage

/// Where a part is made, and by whose leave.
struct PartPlace: Sendable {
    let folder: DestinationFolder
    let ledger: PartFileLedger
    let umask: mode_t
    /// The present run of the system. A confined thread cannot ask for it.
    let boot: BootID
}

/// A part together with its journal: what of the document is there, and for how long.
///
/// Belongs to the thread that made it.
final class PartContent {
    private enum State {
        case receiving
        case over
    }

    /// Runs of zeros of a file with holes that are not written: 64 KiB.
    private static let holeSize = 64 << 10

    /// Chunks that are verified and written.
    private(set) var verified: ChunkSet
    /// Bytes in them.
    private(set) var verifiedByteCount: UInt64

    /// Nanoseconds that the disk took.
    private(set) var diskTime: UInt64 = 0

    private let tree: DocumentTree
    /// See ``ReceivingChecks/whole``.
    private let requiresAll: Bool
    private let part: any Part
    /// Nil where it could not be written: then a transfer that is interrupted begins anew.
    private var journal: TransferJournal?
    private let marker: DiskMarker?
    /// The chunk that is coming, where chunks are written whole.
    private var whole = WholeChunk()
    private var state = State.receiving
    private var unmarkedByteCount: UInt64 = 0
    private var lastMark = MonotonicClock.nanoseconds()

    /// Makes the part of a document, and its journal.
    init(creating header: JournalHeader, at place: PartPlace) throws(DocumentError) {
        tree = header.tree
        if let file = tree[0].file {
            part = try PartFile(for: tree.label, file, modified: tree[0].modified, at: place)
        } else {
            part = try RecordedPartFolder(creating: tree, at: place)
        }
        journal = try? TransferJournal.create(at: place.ledger.journal(of: part.record), header)
        verified = ChunkSet()
        verifiedByteCount = 0
        marker = Self.marker(for: tree)
        requiresAll = place.folder.checks.contains(.whole)
    }

    /// Goes on with the part of an earlier transfer of the same version.
    ///
    /// - Returns: nil when there is nothing to go on with; what is there stays then.
    init?(reopening unfinished: UnfinishedDocument, at place: PartPlace) throws(DocumentError) {
        guard place.ledger.take(unfinished.record) else { return nil }
        guard
            let opened = try? TransferJournal.open(unfinished.journal, boot: place.boot),
            let part = try? Self.reopen(unfinished.record, opened.content.header.tree, at: place)
        else {
            place.ledger.release(unfinished.record)
            return nil
        }
        tree = opened.content.header.tree
        self.part = part
        journal = opened.journal
        verified = opened.content.verified
        verifiedByteCount = 0
        marker = Self.marker(for: tree)
        requiresAll = place.folder.checks.contains(.whole)
        loseWhatIsGone()
        compare(opened.content.unsure)
        verifiedByteCount = verified.byteCount(in: tree.layout)
    }

    /// Goes on with the folder of another version: files of the same version are left, the others are put aside, for the
    /// new ones to be built upon.
    ///
    /// - Returns: nil when there is nothing to go on with; what is there stays then.
    init?(
        adopting stale: UnfinishedDocument, for header: JournalHeader, at place: PartPlace
    ) throws(DocumentError) {
        guard header.tree.isFolder, stale.header.tree.isFolder, place.ledger.take(stale.record) else { return nil }
        guard
            let before = (try? TransferJournal.open(stale.journal, boot: place.boot))??.content,
            let folder = try? RecordedPartFolder(reopening: stale.record, header.tree, at: place)
        else {
            place.ledger.release(stale.record)
            return nil
        }
        tree = header.tree
        part = folder
        verified = before.verified.carried(from: before.header.tree, to: header.tree)
        do {
            for file in 0..<tree.layout.fileCount {
                let chunks = tree.layout.chunks(ofFile: file)
                if verified.containsAny(chunks), folder.isThere(file: file) { continue }
                verified.remove(chunks)
                try folder.putAside(file: file)
            }
            // What is said of these chunks has to hold after a power cut as well: no checksum of them is known any more.
            try folder.synchronize()
        } catch {
            // It is as good as it was.
            folder.keep()
            throw error
        }
        verifiedByteCount = verified.byteCount(in: tree.layout)
        marker = Self.marker(for: tree)
        requiresAll = place.folder.checks.contains(.whole)
        journal = try? TransferJournal.create(at: stale.journal, header)
        for range in verified.ranges {
            for chunk in range { journal?.append(chunk, ChunkChecksum(high: 0, low: 0)) }
        }
        if let journal { journal.mark(journal.entryCount) }
    }

    private static func reopen(
        _ record: PartFileRecord, _ tree: DocumentTree, at place: PartPlace
    ) throws(DocumentError) -> any Part {
        if let file = tree[0].file {
            try PartFile(reopening: record, for: tree.label, file, modified: tree[0].modified, at: place)
        } else {
            try RecordedPartFolder(reopening: record, tree, at: place)
        }
    }

    deinit {
        _ = end()
    }

    /// Whether something of a file has not come yet.
    func lacks(file: Int) -> Bool {
        !verified.missing(in: tree.layout.chunks(ofFile: file), limit: 1).isEmpty
    }

    /// See ``Part/openAside()``.
    func openAside() -> OwnedDescriptor? { part.openAside() }

    /// Takes what a record says.
    func take(_ event: ChunkVerifier.Event) throws(DocumentError) {
        let start = MonotonicClock.nanoseconds()
        defer { diskTime += MonotonicClock.nanoseconds() - start }
        switch event {
        case .content(let chunk, let offset, let bytes):
            let place = tree.layout.place(of: chunk)
            if isSparse(place) {
                try writeSparsely(bytes, to: place, from: offset)
            } else if place.size == ChunkLayout.chunkSize, try part.takesWholeChunks(ofFile: place.file) {
                guard let content = whole.add(bytes, at: offset) else { return }
                try part.write(content, toFile: place.file, at: place.offset)
            } else {
                try part.write(bytes, toFile: place.file, at: place.offset + UInt64(offset))
            }
        case .zeros(let chunk):
            let place = tree.layout.place(of: chunk)
            try part.clear(place.range, ofFile: place.file)
        case .verified(let chunk, let checksum):
            verified.insert(chunk)
            let size = UInt64(tree.layout.size(of: chunk))
            verifiedByteCount += size
            unmarkedByteCount += size
            journal?.append(chunk, checksum)
        }
    }

    /// Writes down what has come, and sees to it that it becomes durable now and then.
    func note() {
        guard let journal else { return }
        do {
            let covered = marker?.takeCovered()
            if let covered { journal.mark(covered) }
            try journal.flush()
            // A mark that a power cut takes away vouches for nothing.
            if covered != nil { try journal.synchronize() }
        } catch {
            // The state folder's disk may be full: the document still arrives.
            self.journal = nil
            return
        }
        guard let marker, unmarkedByteCount > 0, isMarkDue, marker.isIdle else { return }
        unmarkedByteCount = 0
        lastMark = MonotonicClock.nanoseconds()
        guard let file = try? part.descriptorToSynchronize() else { return }
        marker.begin(covering: journal.entryCount, file)
    }

    /// Puts the document in place, or throws what is wrong; then the part is still there.
    ///
    /// - Throws: `incomplete` when something is missing.
    func commit() throws(DocumentError) -> FilePath {
        guard !requiresAll || verified.missing(in: tree.layout.allChunks, limit: 1).isEmpty else {
            throw DocumentError(.incomplete, tree.label.description)
        }
        let path = try part.commit()
        state = .over
        return path
    }

    /// Ends it: keeps the part when something of it is there that the journal knows, and removes it when not.
    ///
    /// - Returns: bytes that are kept.
    func end() -> UInt64 {
        guard case .receiving = state else { return 0 }
        state = .over
        note()
        guard journal != nil, verifiedByteCount > 0 else {
            part.discard()
            return 0
        }
        return part.keep() ? verifiedByteCount : 0
    }

    private var isMarkDue: Bool {
        unmarkedByteCount >= DiskMarker.byteInterval
            || MonotonicClock.nanoseconds() - lastMark >= DiskMarker.timeInterval
    }

    /// Forgets the chunks of files that somebody cut or removed since they came, and has the journal forget them.
    private func loseWhatIsGone() {
        for file in 0..<tree.layout.fileCount {
            let chunks = tree.layout.chunks(ofFile: file)
            guard verified.containsAny(chunks), !part.isThere(file: file) else { continue }
            for chunk in chunks where verified.contains(chunk) { journal?.lose(chunk) }
            verified.remove(chunks)
        }
        // Before anything makes the files look whole again.
        note()
    }

    /// Reads chunks that may be there, and keeps those that are: what cannot be read is not.
    private func compare(_ unsure: [(chunk: UInt64, checksum: ChunkChecksum)]) {
        guard !unsure.isEmpty else { return }
        let room = UnsafeMutableRawBufferPointer.allocate(byteCount: ChunkLayout.chunkSize, alignment: 4096)
        defer { room.deallocate() }
        for (chunk, checksum) in unsure where !verified.contains(chunk) {
            let place = tree.layout.place(of: chunk)
            let bytes = UnsafeMutableRawBufferPointer(rebasing: room[..<place.size])
            guard
                (try? part.read(file: place.file, at: place.offset, into: bytes)) == place.size,
                ChunkChecksum(of: UnsafeRawBufferPointer(bytes)) == checksum
            else { continue }
            verified.insert(chunk)
            // Said again, for a mark of this run of the system to cover it.
            journal?.append(chunk, checksum)
        }
    }

    private func isSparse(_ place: ChunkLayout.Place) -> Bool { tree.isSparse(file: place.file) }

    /// Writes what is not zero, and leaves holes for what is.
    private func writeSparsely(
        _ bytes: UnsafeRawBufferPointer, to place: ChunkLayout.Place, from offset: Int
    ) throws(DocumentError) {
        // What an earlier transfer may have left there is not zero.
        if offset == 0 { try part.clear(place.range, ofFile: place.file) }
        var start = 0
        while start < bytes.count {
            let piece = UnsafeRawBufferPointer(rebasing: bytes[start..<min(bytes.count, start + Self.holeSize)])
            if !piece.isZero {
                try part.write(piece, toFile: place.file, at: place.offset + UInt64(offset + start))
            }
            start += piece.count
        }
    }

    /// Small documents are on the disk before a mark would be due.
    private static func marker(for tree: DocumentTree) -> DiskMarker? {
        tree.size > DiskMarker.byteInterval / 2 ? try? DiskMarker() : nil
    }
}

extension ChunkLayout.Place {
    /// Its bytes in the file.
    var range: Range<UInt64> { offset..<offset + UInt64(size) }
}

extension UnsafeRawBufferPointer {
    /// Whether every byte is zero.
    fileprivate var isZero: Bool {
        guard let start = baseAddress, count > 0 else { return true }
        // Each byte equals the one before it, and the first is zero.
        return self[0] == 0 && memcmp(start, start + 1, count - 1) == 0
    }
}
