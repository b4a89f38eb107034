import SystemPackage

/// A part that an earlier transfer left, and what is known of it.
struct UnfinishedDocument: Sendable {
    let record: PartFileRecord
    let header: JournalHeader
    /// Where its journal is.
    let journal: FilePath
}

extension PartFileLedger {
    /// What is unfinished of a document, whatever its version: of the same device, the same name and the same folder.
    ///
    /// Another document of that name is left to who goes on with it, unless its version is the same: then it has the same
    /// bytes.
    ///
    /// - Parameter header: what is to be received.
    func unfinished(
        of header: JournalHeader, in folder: DestinationFolder
    ) throws(DocumentError) -> [UnfinishedDocument] {
        let tree = header.tree
        let found = try unfinished { record, summary in
            record.folder == folder.resolvedPath && summary.origin == header.origin && summary.label == tree.label
                && summary.isFolder == tree.isFolder
        }
        return found.filter {
            !$0.header.identity.isOther(than: header.identity) || $0.header.tree.isSameVersion(as: tree)
        }
    }
}

extension DocumentTree {
    /// Whether another document has the same entries, and every file the same version: then it has the same bytes.
    func isSameVersion(as other: DocumentTree) -> Bool {
        guard label == other.label, entryCount == other.entryCount else { return false }
        return (0..<entryCount).allSatisfy { index in
            let entry = self[index]
            return entry == other[index] && entry.file?.version != FileVersion.none
        }
    }
}
