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

/// Numbers and byte strings one after the other, as the journal has them: numbers of 8 bytes, big endian, and byte
/// strings with their length in front.
struct FieldWriter {
    private(set) var bytes: [UInt8] = []

    mutating func append(_ number: UInt64) {
        withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) }
    }

    mutating func append(_ field: [UInt8]) {
        append(UInt64(field.count))
        bytes += field
    }

    /// Bytes alone, of which the number stands somewhere else.
    mutating func append(raw field: ArraySlice<UInt8>) {
        bytes += field
    }

    /// Puts a checksum in the place of all that was written, which is as good to tell it from something else.
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

    /// The next number; nil where there is none.
    mutating func number() -> UInt64? {
        guard rest.count >= 8 else { return nil }
        defer { rest = rest.dropFirst(8) }
        return rest.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// The next byte string; nil where it is longer than `limit` or than what is there.
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

    /// The shape of an entry and its permissions, as one number: journals of earlier versions have the shape alone.
    private struct ShapeField {
        private static let hasPermissions: UInt64 = 0o1000

        let shape: Shape
        let permissions: UInt16?

        init(_ shape: Shape, _ permissions: UInt16?) {
            self.shape = shape
            self.permissions = permissions
        }

        init?(_ number: UInt64) {
            guard let shape = Shape(rawValue: number & 0xFF) else { return nil }
            let rest = number >> 8
            guard rest == 0 || rest & ~0o777 == Self.hasPermissions else { return nil }
            self.init(shape, rest == 0 ? nil : UInt16(rest & 0o777))
        }

        var number: UInt64 {
            shape.rawValue | (permissions.map { (Self.hasPermissions | UInt64($0 & 0o777)) << 8 } ?? 0)
        }
    }

    /// The entries of the document as fields.
    var encodedTree: [UInt8] {
        var writer = FieldWriter()
        writer.append(UInt64(tree.entryCount))
        for index in 0..<tree.entryCount { Self.append(tree[index], to: &writer) }
        return writer.bytes
    }

    /// Reads what the document of a summary consists of; nil for what is no tree of it.
    init?(_ summary: JournalSummary, decodingTree bytes: ArraySlice<UInt8>) {
        var reader = FieldReader(bytes)
        guard let count = reader.number(), count <= DocumentTree.entryLimit else { return nil }
        var builder = DocumentTree.Builder(summary.label)
        for _ in 0..<count {
            guard let entry = Self.entry(from: &reader), (try? builder.append(entry)) != nil else { return nil }
        }
        guard reader.isAtEnd, let tree = try? builder.finish(), tree.isFolder == summary.isFolder else { return nil }
        origin = summary.origin
        identity = summary.identity
        self.tree = tree
    }

    private static func append(_ entry: DocumentEntry, to writer: inout FieldWriter) {
        writer.append(entry.path.bytes)
        writer.append(entry.modified == nil ? 0 : 1)
        writer.append(UInt64(bitPattern: entry.modified?.seconds ?? 0))
        writer.append(UInt64(bitPattern: entry.modified?.nanoseconds ?? 0))
        switch entry.kind {
        case .file(let file):
            writer.append(ShapeField(.file, entry.permissions).number)
            writer.append(file.size)
            writer.append(file.isExecutable ? 1 : 0)
            writer.append(file.isSparse ? 1 : 0)
            writer.append(file.version.high)
            writer.append(file.version.low)
        case .folder: writer.append(ShapeField(.folder, entry.permissions).number)
        case .link(let target):
            writer.append(ShapeField(.link, entry.permissions).number)
            writer.append(target.bytes)
        }
    }

    private static func entry(from reader: inout FieldReader) -> DocumentEntry? {
        guard
            let name = reader.field(limit: EntryPath.maximumLength),
            let path = name.isEmpty ? EntryPath.root : try? EntryPath(name), let hasTime = reader.number(),
            let seconds = reader.number(), let nanoseconds = reader.number(),
            let field = reader.number().flatMap(ShapeField.init)
        else { return nil }
        let time = FileIdentity.Time(
            seconds: Int64(bitPattern: seconds), nanoseconds: Int64(bitPattern: nanoseconds))
        guard let kind = kind(field.shape, of: path, from: &reader) else { return nil }
        return DocumentEntry(
            path: path, kind: kind, modified: hasTime == 0 ? nil : time, permissions: field.permissions)
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
