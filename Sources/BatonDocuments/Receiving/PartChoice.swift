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
    private(set) var older: [(record: PartFileRecord, copy: OlderCopy)] = []

    private let header: JournalHeader
    private let place: PartPlace

    init(_ header: JournalHeader, at place: PartPlace) {
        self.header = header
        self.place = place
    }

    /// Opens a part, or makes it, with room for what has not come.
    ///
    /// - Parameters:
    ///   - unfinished: what earlier transfers left of the document, the newest first.
    ///   - isCancelled: whether nobody waits for it any more.
    mutating func open(
        _ unfinished: [UnfinishedDocument], unless isCancelled: () -> Bool
    ) throws(DocumentError) -> Part {
        var found: [UnfinishedDocument] = []
        for part in unfinished where try isThere(part.record) { found.append(part) }
        found.sort { $0.byteCount > $1.byteCount }
        var reopened: Part?
        for part in found where reopened == nil && isSame(part) && place.ledger.take(part.record) {
            do throws(DocumentError) {
                reopened = try Part(reopening: part, at: place, unless: isCancelled)
            } catch {
                place.ledger.release(part.record)
                throw error
            }
            if reopened == nil { place.ledger.release(part.record) }
        }
        let others = found.filter { $0.record != reopened?.record }
        var held: UInt64 = 0
        for part in others.prefix(Self.olderLimit) where place.ledger.take(part.record) {
            if let copy = OlderCopy(part, in: place.folder) {
                older.append((part.record, copy))
                held += copy.heldByteCount
            } else {
                place.ledger.release(part.record)
            }
        }
        // If the origin does not say which document it is, another version may be another document of that name.
        let isChanged = found.allSatisfy {
            let other = $0.content.header.identity
            return !isSame($0) && (header.identity.hasPlace(of: other) || header.identity.hasFile(of: other))
        }
        if isChanged, !older.isEmpty { start = .changed(keepsOlder: true) }
        let part = if let reopened { reopened } else { try Part(creating: header, at: place) }
        do throws(DocumentError) {
            try reserve(part, held)
        } catch {
            _ = part.end()
            throw error
        }
        for other in others.dropFirst(Self.olderLimit) where place.ledger.take(other.record) {
            place.ledger.removePart(of: other.record)
        }
        return part
    }

    /// Leaves the other parts to later transfers.
    func release() {
        for other in older { place.ledger.release(other.record) }
    }

    private func isSame(_ part: UnfinishedDocument) -> Bool { part.content.header.tree.isSameVersion(as: header.tree) }

    /// Whether a part is there. A part that somebody removed is forgotten, unless its disk may only not be mounted.
    /// Something else with its name is left alone: it may be on a disk that is mounted over the part.
    ///
    /// - Throws: that nobody knows.
    private func isThere(_ record: PartFileRecord) throws(DocumentError) -> Bool {
        do throws(Errno) {
            return try place.folder.inode(ofName: record.name) == record.inode
        } catch {
            guard error == .noSuchFileOrDirectory || error == .notDirectory else {
                throw DocumentError(creatingFailed: error, header.tree.label, in: place.folder.path)
            }
        }
        if record.isLost(on: place.folder.fileSystem.number), place.ledger.take(record) { place.ledger.remove(record) }
        return false
    }

    /// Makes sure of the room that is needed. If the disk has too little, and the others hold enough, they go.
    ///
    /// - Parameter held: bytes that the disk holds for the others. A file with holes needs as much as it had in them,
    ///   as a rule.
    private mutating func reserve(_ part: Part, _ held: UInt64) throws(DocumentError) {
        do throws(DocumentError) {
            try part.reserve(sparseAtMost: held)
        } catch {
            guard error.code == .destinationFull else { throw error }
            let (needed, free) = (part.neededByteCount(sparseAtMost: held), place.folder.freeByteCount ?? 0)
            // Room that the disk called free and did not give, because of a quota, does not count.
            guard held > 0, (needed > free ? needed - free : needed) <= held else { throw error }
            let given = older.map(\.record)
            // Open files keep their room.
            older = []
            for record in given { place.ledger.removePart(of: record) }
            start = .changed(keepsOlder: false)
            try part.reserve(sparseAtMost: 0)
        }
    }
}
