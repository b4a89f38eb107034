// SPDX-License-Identifier: Apache-2.0

import Glibc
import SystemPackage

/// A part that an earlier transfer left, and what is known of it.
struct UnfinishedDocument: Sendable {
    let record: PartFileRecord
    let header: JournalHeader
    /// Where its journal is.
    let journal: FilePath
}

extension PartFileLedger {
    /// Unfinished parts of a document in any version: of the same device, the same name and the same folder,
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
