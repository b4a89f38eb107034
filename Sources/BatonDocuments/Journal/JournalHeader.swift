// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop

/// The properties of an unfinished document that have to be the same for a transfer to go on with it.
struct JournalHeader: Sendable {
    /// The device that offered it.
    let origin: String
    /// Its entries and their versions.
    let tree: DocumentTree
    /// Which document it is, whatever its version.
    var identity = DocumentIdentity.unknown
}

/// The beginning of a journal. It tells whether the unfinished document is the one that is looked for, without its
/// entries, which can be 100,000.
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

    /// Whether it may be the summary of the same document, or has the same version.
    func mayBe(_ other: JournalSummary) -> Bool {
        guard origin == other.origin, label == other.label, isFolder == other.isFolder else { return false }
        let hasSameTree = treeSize == other.treeSize && treeChecksum == other.treeChecksum
        return !identity.isOther(than: other.identity) || hasSameTree
    }

    /// The summary as fields.
    var encoded: [UInt8] {
        var writer = FieldWriter()
        writer.append(Array(origin.utf8))
        // The version before has told the run of the system here.
        writer.append([])
        writer.append(label.bytes)
        writer.append(isFolder ? 1 : 0)
        writer.append(identity.file)
        writer.append(identity.place)
        for number in [UInt64(treeSize), treeChecksum.high, treeChecksum.low] { writer.append(number) }
        return writer.bytes
    }

    /// Reads a summary; nil for other bytes.
    init?(decoding bytes: ArraySlice<UInt8>) {
        var reader = FieldReader(bytes)
        guard
            let origin = reader.field(limit: 255), reader.field(limit: 255) != nil,
            let name = reader.field(limit: DocumentLabel.maximumLength), let label = try? DocumentLabel(name),
            let isFolder = reader.number(), let file = reader.field(limit: DocumentIdentity.byteCount),
            let place = reader.field(limit: DocumentIdentity.byteCount), let size = reader.number(),
            size <= UInt64(TransferJournal.headerLimit), let high = reader.number(), let low = reader.number(),
            reader.isAtEnd
        else { return nil }
        self.origin = String(decoding: origin, as: UTF8.self)
        self.label = label
        self.isFolder = isFolder != 0
        identity = DocumentIdentity(file: file, place: place)
        treeSize = Int(size)
        treeChecksum = ChunkChecksum(high: high, low: low)
    }
}

/// Numbers of 8 bytes, big endian, and byte strings with their length in front, one after the other.
struct FieldWriter {
    private(set) var bytes: [UInt8] = []

    mutating func append(_ number: UInt64) {
        withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) }
    }

    mutating func append(_ field: [UInt8]) {
        append(UInt64(field.count))
        bytes += field
    }

    /// Appends bytes without their length.
    mutating func append(raw field: ArraySlice<UInt8>) {
        bytes += field
    }

    /// Replaces all that was written by its checksum.
    mutating func fold() {
        let checksum = bytes.withUnsafeBytes { ChunkChecksum(of: $0) }
        bytes.removeAll(keepingCapacity: true)
        for half in [checksum.high, checksum.low] { append(half) }
    }
}

/// Reads what a ``FieldWriter`` has written.
struct FieldReader {
    private var rest: ArraySlice<UInt8>

    init(_ bytes: ArraySlice<UInt8>) {
        rest = bytes
    }

    var isAtEnd: Bool { rest.isEmpty }

    /// The next number; nil at the end.
    mutating func number() -> UInt64? {
        guard rest.count >= 8 else { return nil }
        defer { rest = rest.dropFirst(8) }
        return rest.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// The next byte string; nil if it is longer than `limit` or cut.
    mutating func field(limit: Int) -> [UInt8]? {
        guard let length = number(), length <= UInt64(limit), length <= UInt64(rest.count) else { return nil }
        defer { rest = rest.dropFirst(Int(length)) }
        return Array(rest.prefix(Int(length)))
    }
}

extension JournalHeader {
    private enum Shape: UInt64 {
        case file, folder, link
    }

    /// The permissions beside a shape, in one number. Journals of earlier versions have the shape alone.
    private static let hasPermissions: UInt64 = 0o1000

    /// The entries of the document as fields.
    var encodedTree: [UInt8] {
        var writer = FieldWriter()
        writer.append(UInt64(tree.entryCount))
        for index in 0..<tree.entryCount { Self.append(tree[index], to: &writer) }
        return writer.bytes
    }

    /// Reads the document of a summary; nil for other bytes.
    init?(_ summary: JournalSummary, decodingTree bytes: ArraySlice<UInt8>) {
        var reader = FieldReader(bytes)
        guard let count = reader.number(), count <= DocumentTree.entryLimit else { return nil }
        var builder = DocumentTree.Builder(summary.label)
        for _ in 0..<count {
            guard let entry = Self.entry(from: &reader), (try? builder.append(entry)) != nil else { return nil }
        }
        guard reader.isAtEnd, let tree = try? builder.finish(), tree.isFolder == summary.isFolder else { return nil }
        self.init(origin: summary.origin, tree: tree, identity: summary.identity)
    }

    private static func append(_ entry: DocumentEntry, to writer: inout FieldWriter) {
        let permissions = entry.permissions.map { (hasPermissions | UInt64($0 & 0o777)) << 8 } ?? 0
        writer.append(entry.path.bytes)
        writer.append(entry.modified == nil ? 0 : 1)
        writer.append(UInt64(bitPattern: entry.modified?.seconds ?? 0))
        writer.append(UInt64(bitPattern: entry.modified?.nanoseconds ?? 0))
        switch entry.kind {
        case .file(let file):
            writer.append(Shape.file.rawValue | permissions)
            let flags: [UInt64] = [file.isExecutable ? 1 : 0, file.isSparse ? 1 : 0]
            for number in [file.size] + flags + [file.version.high, file.version.low] { writer.append(number) }
        case .folder: writer.append(Shape.folder.rawValue | permissions)
        case .link(let target):
            writer.append(Shape.link.rawValue | permissions)
            writer.append(target.bytes)
        }
    }

    private static func entry(from reader: inout FieldReader) -> DocumentEntry? {
        guard
            let name = reader.field(limit: EntryPath.maximumLength),
            let path = name.isEmpty ? EntryPath.root : try? EntryPath(name), let hasTime = reader.number(),
            let seconds = reader.number(), let nanoseconds = reader.number(), let number = reader.number(),
            let shape = Shape(rawValue: number & 0xFF), number >> 8 == 0 || number >> 8 & ~0o777 == hasPermissions,
            let kind = kind(shape, of: path, from: &reader)
        else { return nil }
        let time = FileIdentity.Time(
            seconds: Int64(bitPattern: seconds), nanoseconds: Int64(bitPattern: nanoseconds))
        return DocumentEntry(
            path: path, kind: kind, modified: hasTime == 0 ? nil : time,
            permissions: number >> 8 == 0 ? nil : UInt16(number >> 8 & 0o777))
    }

    private static func kind(
        _ shape: Shape, of path: EntryPath, from reader: inout FieldReader
    ) -> DocumentEntry.Kind? {
        switch shape {
        case .folder: return .folder
        case .link:
            return reader.field(limit: LinkTarget.maximumLength).flatMap { LinkTarget($0, at: path) }.map { .link($0) }
        case .file:
            guard
                let size = reader.number(), let isExecutable = reader.number(), let isSparse = reader.number(),
                let high = reader.number(), let low = reader.number()
            else { return nil }
            return .file(
                .init(
                    size: size, isExecutable: isExecutable != 0, isSparse: isSparse != 0,
                    version: FileVersion(high: high, low: low)))
        }
    }
}
