// SPDX-License-Identifier: Apache-2.0

import Glibc
import SystemPackage

/// A part that an earlier transfer left, and what is known of it.
struct UnfinishedDocument: Sendable {
    let record: PartFileRecord
    let header: JournalHeader
    /// Where its journal is.
    let journal: FilePath

    /// See ``PartFileRecord/renumbered(in:keepsInodes:)``.
    func renumbered(at place: PartPlace) -> UnfinishedDocument {
        UnfinishedDocument(
            record: record.renumbered(in: place.folder.file, keepsInodes: place.folder.keepsInodes), header: header,
            journal: journal)
    }

    /// Bytes that are in it, or may be; blocks.
    ///
    /// - Throws: `stateUnavailable`, `busy`: nobody knows. One of which that is taken for nothing may be given up for
    ///   others.
    func fullness(at place: PartPlace) throws(DocumentError) -> UInt64 {
        let content: TransferJournal.Content
        do throws(DocumentError) {
            content = try PartContent.readJournal(of: self, at: place).content
        } catch {
            guard error.code == .incomplete else { throw error }
            return 0
        }
        let layout = content.header.tree.layout
        var chunks = content.verified
        for (chunk, _) in content.unsure { chunks.insert(chunk) }
        return chunks.byteCount(in: layout)
    }
}

extension [UnfinishedDocument] {
    /// The one in which most is first, then the others as they were, the newest first: that may be nearer to what the
    /// document is now.
    ///
    /// - Throws: that nobody knows how much is in one.
    func fullestFirst(at place: PartPlace) throws(DocumentError) -> [UnfinishedDocument] {
        guard count > 1 else { return self }
        let fullness = try map { (part) throws(DocumentError) in try part.fullness(at: place) }
        guard let most = fullness.max(), let fullest = fullness.firstIndex(of: most) else { return self }
        return [self[fullest]] + self[..<fullest] + self[(fullest + 1)...]
    }
}

extension DestinationFolder {
    /// Whether a file would have room beside the part of another version of it. Of one with holes nobody knows what
    /// comes: as much as of the other, as a rule.
    func hasRoom(for tree: DocumentTree, beside stale: UnfinishedDocument) -> Bool {
        guard let file = tree[0].file, let free = freeByteCount else { return true }
        guard file.isSparse else { return file.size <= free }
        return min(file.size, byteCount(of: stale)) <= free
    }

    /// Whether a file would have room in the place of parts: where not, nothing is given up for it. Of one with holes
    /// nobody knows.
    ///
    /// - Parameter countsFree: whether what is free now counts as well.
    func hasRoom(
        for tree: DocumentTree, inPlaceOf stale: [UnfinishedDocument], countingFree countsFree: Bool = true
    ) -> Bool {
        guard let file = tree[0].file, !file.isSparse, let unused = freeByteCount else { return true }
        let free = countsFree ? unused : 0
        let given = stale.reduce(UInt64(0)) { $0.addingReportingOverflow(byteCount(of: $1)).partialValue }
        return file.size <= free.addingReportingOverflow(given).partialValue
    }

    /// Bytes that the disk holds for a part.
    func byteCount(of part: UnfinishedDocument) -> UInt64 {
        let blocks = (try? SystemCalls.status(ofName: part.record.name, in: file))?.st_blocks ?? 0
        return UInt64(clamping: blocks) * 512
    }
}

extension PartFileLedger {
    /// What is unfinished of a document, whatever its version: of the same device, the same name and the same folder,
    /// the newest first. Of the device's other documents the oldest go (``unfinishedLimitOfDevice``).
    ///
    /// Another document of that name is left to who goes on with it, unless its version is the same: then it has the
    /// same bytes.
    ///
    /// - Parameter header: what is to be received.
    /// - Throws: `busy`, `stateUnavailable`: what there is cannot be read at the moment.
    func unfinished(
        of header: JournalHeader, in folder: DestinationFolder
    ) throws(DocumentError) -> [UnfinishedDocument] {
        let wanted = JournalSummary(header, header.encodedTree)
        let isWanted = { (record: PartFileRecord, summary: JournalSummary) in
            record.folder == folder.resolvedPath && summary.mayBe(wanted)
        }
        try removeExcess(of: header.origin, except: isWanted)
        return try unfinished(
            where: isWanted,
            fitting: { !$0.identity.isOther(than: header.identity) || $0.tree.isSameVersion(as: header.tree) })
    }
}

extension DocumentTree {
    /// Whether another document has the same entries, and every file the same version: then it has the same bytes.
    /// Where it has holes is no part of that.
    func isSameVersion(as other: DocumentTree) -> Bool {
        guard label == other.label, entryCount == other.entryCount else { return false }
        return (0..<entryCount).allSatisfy { index in
            let entry = self[index]
            return entry.withoutHoles == other[index].withoutHoles && entry.file?.version != FileVersion.none
        }
    }
}
