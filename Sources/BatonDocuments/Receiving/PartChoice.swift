// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import SystemPackage

/// Chooses the part that a transfer writes to: the one of an earlier transfer of the same version, or a new one. Other
/// parts of the document are built upon, or go if the disk has no room for both.
struct PartChoice {
    /// The number of other parts that are kept beside the new one, the fullest. Each takes the room of the whole
    /// document, and its origin can say as often as it likes that it has changed.
    static let olderLimit = 2

    /// See ``DocumentWriter/Start``.
    private(set) var start = DocumentWriter.Start.unchanged
    /// Other parts that were taken from the ledger, the fullest first.
    private(set) var older: [(record: PartFileRecord, content: PartContent)] = []

    private let header: JournalHeader
    private let place: PartPlace

    init(_ header: JournalHeader, at place: PartPlace) {
        self.header = header
        self.place = place
    }

    private var tree: DocumentTree { header.tree }

    /// Opens a part, or makes it, with room for what has not come.
    ///
    /// - Parameters:
    ///   - found: what earlier transfers left of the document, the newest first.
    ///   - isCancelled: whether nobody waits for it any more.
    /// - Throws: `destinationFull` if there is no room, even without the others, which stay then; ...
    mutating func open(
        _ found: [UnfinishedDocument], unless isCancelled: () -> Bool
    ) throws(DocumentError) -> PartContent {
        var found = found
        for (index, part) in found.enumerated().reversed() where try !isThere(part) { found.remove(at: index) }
        var reopened: PartContent?
        var others: [UnfinishedDocument] = []
        for part in try fullestFirst(found.filter { $0.header.tree.isSameVersion(as: tree) }) {
            if reopened == nil, let content = try reopen(part, isOlder: false, unless: isCancelled) {
                reopened = content
            } else {
                others.append(part)
            }
        }
        others += try fullestFirst(found.filter { !$0.header.tree.isSameVersion(as: tree) })
        for part in others.prefix(Self.olderLimit) {
            guard let content = try reopen(part, isOlder: true, unless: isCancelled) else { continue }
            older.append((part.record, content))
        }
        if isChange(found) { start = .changed(keepsOlder: true) }
        let content = if let reopened { reopened } else { try PartContent(creating: header, at: place) }
        for other in older { try content.takeOver(from: other.content) }
        // An empty part would take the place of another one.
        for index in older.indices.reversed() where older[index].content.heldByteCount == 0 {
            place.ledger.removePart(of: older.remove(at: index).record)
        }
        try reserve(content)
        for part in others.dropFirst(Self.olderLimit) where place.ledger.take(part.record) {
            place.ledger.removePart(of: part.record)
        }
        return content
    }

    /// Leaves the other parts to who may go on with them.
    func release() {
        for other in older { place.ledger.release(other.record) }
    }

    private func reopen(
        _ part: UnfinishedDocument, isOlder: Bool, unless isCancelled: () -> Bool
    ) throws(DocumentError) -> PartContent? {
        guard place.ledger.take(part.record) else { return nil }
        var isTaken = false
        defer { if !isTaken { place.ledger.release(part.record) } }
        let content = try PartContent(reopening: part, isOlder: isOlder, at: place, unless: isCancelled)
        isTaken = content != nil
        return content
    }

    /// Parts in the order of what is in them.
    ///
    /// - Throws: that nobody knows how much is in one.
    private func fullestFirst(_ parts: [UnfinishedDocument]) throws(DocumentError) -> [UnfinishedDocument] {
        guard parts.count > 1 else { return parts }
        var measured: [(part: UnfinishedDocument, byteCount: UInt64)] = []
        for part in parts {
            do throws(Errno) {
                let all = try TransferJournal.content(at: part.journal)?.all ?? ChunkSet()
                measured.append((part, all.byteCount(in: part.header.tree.layout)))
            } catch {
                guard error.saysLost else { throw place.ledger.failure(error) }
            }
        }
        return measured.sorted { $0.byteCount > $1.byteCount }.map(\.part)
    }

    /// Whether a part is there. Where somebody removed it it is forgotten, and not where its disk is not mounted.
    /// Something else with its name may be on a disk that is mounted over it, so it is left, and not built upon.
    ///
    /// - Throws: that nobody knows.
    private func isThere(_ part: UnfinishedDocument) throws(DocumentError) -> Bool {
        let record = part.record
        if let inode = try place.folder.inode(of: record.name, for: tree.label) { return inode == record.inode }
        if record.isLost(on: place.folder.fileSystem.number), place.ledger.take(record) { place.ledger.remove(record) }
        return false
    }

    /// Whether all parts of a document are of another version, and something is in one. If the origin does not say
    /// which document it is, another version may be another document of that name.
    private func isChange(_ found: [UnfinishedDocument]) -> Bool {
        let isOther = found.allSatisfy {
            let (identity, other) = (header.identity, $0.header.identity)
            let isSameDocument = identity.hasPlace(of: other) || identity.hasFile(of: other)
            return isSameDocument && !$0.header.tree.isSameVersion(as: tree)
        }
        return isOther && older.contains { !$0.content.verified.ranges.isEmpty }
    }

    /// Makes sure of the room that is needed. If the disk has too little, and the others hold enough, they go.
    private mutating func reserve(_ content: PartContent) throws(DocumentError) {
        let held = older.reduce(UInt64(0)) { $0 + $1.content.heldByteCount }
        // Files with holes need as much as they had in the older parts, as a rule.
        let isFull = min(content.sparseByteCount, held) > place.folder.freeByteCount ?? .max
        do throws(DocumentError) {
            if isFull { throw DocumentError(.destinationFull, tree.label.description, underlyingError: .noSpace) }
            try content.reserve()
        } catch {
            guard error.code == .destinationFull else { throw error }
            let (needed, free) = (content.neededByteCount, place.folder.freeByteCount ?? 0)
            // Room that the disk called free and did not give, because of a quota, does not count.
            let lacking = needed > free || isFull ? needed - min(needed, free) : needed
            guard held > 0, lacking <= held else { throw error }
            let given = older.map(\.record)
            // Open files keep their room.
            older = []
            for record in given { place.ledger.removePart(of: record) }
            start = .changed(keepsOlder: false)
            try content.reserve()
        }
    }
}
