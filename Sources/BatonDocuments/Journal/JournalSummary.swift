// SPDX-License-Identifier: Apache-2.0

/// The beginning of a journal: enough to tell whether the unfinished document is the one that is looked for,
/// without reading what it consists of, which can be 100,000 entries.
struct JournalSummary: Sendable, Hashable {
    /// The most bytes of it.
    static let limit = 4096

    /// The device that offered the document.
    let origin: String
    let label: DocumentLabel
    let isFolder: Bool
    let identity: DocumentIdentity
    /// Bytes of the description of the tree, which follows.
    let treeSize: Int
    let treeChecksum: ChunkChecksum

    /// - Parameter tree: the tree's description (``JournalHeader/encodedTree``).
    init(_ header: JournalHeader, _ tree: [UInt8]) {
        origin = header.origin
        label = header.tree.label
        isFolder = header.tree.isFolder
        identity = header.identity
        treeSize = tree.count
        treeChecksum = tree.withUnsafeBytes { ChunkChecksum(of: $0) }
    }

    /// Whether it is of the document of another one, as far as a summary tells: of the same version where it is surely
    /// not the same document.
    func mayBe(_ other: JournalSummary) -> Bool {
        guard origin == other.origin, label == other.label, isFolder == other.isFolder else { return false }
        let hasSameTree = treeSize == other.treeSize && treeChecksum == other.treeChecksum
        return !identity.isOther(than: other.identity) || hasSameTree
    }

    /// It as fields.
    var encoded: [UInt8] {
        var writer = FieldWriter()
        writer.append(Array(origin.utf8))
        // The version before has told the run of the system here.
        writer.append([])
        writer.append(label.bytes)
        writer.append(isFolder ? 1 : 0)
        writer.append(identity.file)
        writer.append(identity.place)
        writer.append(UInt64(treeSize))
        writer.append(treeChecksum.high)
        writer.append(treeChecksum.low)
        return writer.bytes
    }

    /// Reads a summary; nil for what is none.
    init?(decoding bytes: ArraySlice<UInt8>) {
        var reader = FieldReader(bytes)
        guard
            let origin = reader.field(limit: 255), reader.field(limit: 255) != nil,
            let name = reader.field(limit: DocumentLabel.maximumLength), let label = try? DocumentLabel(name),
            let isFolder = reader.number(), let file = reader.field(limit: DocumentIdentity.byteCount),
            let place = reader.field(limit: DocumentIdentity.byteCount), let size = reader.number(),
            size <= UInt64(TransferJournal.headerLimit),
            let high = reader.number(), let low = reader.number(), reader.isAtEnd
        else { return nil }
        self.origin = String(decoding: origin, as: UTF8.self)
        self.label = label
        self.isFolder = isFolder != 0
        identity = DocumentIdentity(file: file, place: place)
        treeSize = Int(size)
        treeChecksum = ChunkChecksum(high: high, low: low)
    }
}
