// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import SystemPackage

/// Chooses the part that a transfer writes to: that of an earlier transfer of the same version, or a new one. Other
/// parts of the document are built upon, or go if the disk has no room for both.
struct PartChoice {
    /// The most other parts that are kept beside the new one, the fullest: 2. Each takes the room of the whole
    /// document, and its origin can say as often as it likes that it has changed.
    static let olderLimit = 2

    /// See ``DocumentWriter/Start``.
    private(set) var start = DocumentWriter.Start.unchanged
    /// Other parts that were taken from the ledger, the fullest first.
    private(set) var older: [PartContent] = []

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
    mutating func open(
        _ found: [UnfinishedDocument], unless isCancelled: () -> Bool
    ) throws(DocumentError) -> PartContent {
        let tree = tree
        let isSame = { (part: UnfinishedDocument) in part.header.tree.isSameVersion(as: tree) }
        let found = try fullestFirst(found)
        var reopened: PartContent?
        var others: [UnfinishedDocument] = []
        for part in found.filter(isSame) + found.filter({ !isSame($0) }) {
            if reopened == nil, isSame(part) { reopened = try reopen(part, isOlder: false, unless: isCancelled) }
            if reopened?.part.record != part.record { others.append(part) }
        }
        for part in others.prefix(Self.olderLimit) {
            if let content = try reopen(part, isOlder: true, unless: isCancelled) { older.append(content) }
        }
        if isChange(found) { start = .changed(keepsOlder: true) }
        let content = if let reopened { reopened } else { try PartContent(creating: header, at: place) }
        try reserve(content)
        for part in others.dropFirst(Self.olderLimit) where place.ledger.take(part.record) {
            place.ledger.removePart(of: part.record)
        }
        return content
    }

    /// Leaves the other parts to later transfers.
    func release() {
        for other in older { place.ledger.release(other.part.record) }
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

    /// The parts that are there, those with the most bytes first.
    ///
    /// - Throws: that nobody knows whether a part is there, or how much is in it.
    private func fullestFirst(_ parts: [UnfinishedDocument]) throws(DocumentError) -> [UnfinishedDocument] {
        var measured: [(part: UnfinishedDocument, byteCount: UInt64)] = []
        for part in parts where try isThere(part) {
            do throws(Errno) {
                let all = parts.count > 1 ? try TransferJournal.content(at: part.journal)?.all : nil
                measured.append((part, all?.byteCount(in: part.header.tree.layout) ?? 0))
            } catch {
                guard error.saysLost else { throw place.ledger.failure(error) }
            }
        }
        return measured.sorted { $0.byteCount > $1.byteCount }.map(\.part)
    }

    /// Whether a part is there. A part that somebody removed is forgotten, unless its disk may only not be mounted.
    /// Something else with its name is left alone: it may be on a disk that is mounted over the part.
    ///
    /// - Throws: that nobody knows.
    private func isThere(_ part: UnfinishedDocument) throws(DocumentError) -> Bool {
        let record = part.record
        do throws(Errno) {
            return try place.folder.inode(ofName: record.name) == record.inode
        } catch {
            guard error == .noSuchFileOrDirectory || error == .notDirectory else {
                throw DocumentError(creatingFailed: error, tree.label, in: place.folder.path)
            }
        }
        if record.isLost(on: place.folder.fileSystem.number), place.ledger.take(record) { place.ledger.remove(record) }
        return false
    }

    /// Whether all parts are surely of this document and of another version. If the origin does not say which document
    /// it is, another version may be another document of that name.
    private func isChange(_ found: [UnfinishedDocument]) -> Bool {
        let isOther = found.allSatisfy {
            let isSameDocument =
                header.identity.hasPlace(of: $0.header.identity) || header.identity.hasFile(of: $0.header.identity)
            return isSameDocument && !$0.header.tree.isSameVersion(as: tree)
        }
        return isOther && older.contains { !$0.verified.ranges.isEmpty }
    }

    /// Makes sure of the room that is needed. If the disk has too little, and the others hold enough, they go.
    private mutating func reserve(_ content: PartContent) throws(DocumentError) {
        let held = older.reduce(UInt64(0)) { $0 + $1.heldByteCount }
        // A file with holes needs as much as it had in the older parts, as a rule.
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
            let given = older.map(\.part.record)
            // Open files keep their room.
            older = []
            for record in given { place.ledger.removePart(of: record) }
            start = .changed(keepsOlder: false)
            try content.reserve()
        }
    }
}
