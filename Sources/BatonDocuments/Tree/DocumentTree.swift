// SPDX-License-Identifier: Apache-2.0

package import BatonEventLoop

/// All that a document consists of, without its bytes: one file, or a folder and what is in it.
///
/// A value that is made by a ``Builder`` and does not change. An entry takes some 140 bytes and its path: 100,000 of
/// them take 18 MB.
package struct DocumentTree: Sendable {
    /// The most entries of a document, the folder itself included: 100,000. It bounds the memory of both devices.
    package static let entryLimit = 100_000
    /// The most bytes of all paths and link targets: 16 MiB.
    package static let nameByteLimit = 16 << 20
    /// Bytes of which a checksum is made at once.
    private static let checksumStep = 16 << 10

    package let label: DocumentLabel
    /// How the bytes of its files are cut.
    package let layout: ChunkLayout
    /// Which state it is: the same for as long as the same is in it, each file with the same version and each link with
    /// the same target.
    package let version: FileVersion

    private let entries: [DocumentEntry]
    /// The indices of the entries that are files.
    private let files: [UInt32]
    /// The room that it takes of a budget for as long as somebody holds it.
    private let room: ByteReservation?

    /// How many entries there are, the document itself included: at least 1.
    package var entryCount: Int { entries.count }

    /// Bytes of all files.
    package var size: UInt64 { layout.documentSize }

    package var isFolder: Bool { entries[0].kind == .folder }

    /// An entry, the document itself at 0. The index has to exist.
    package subscript(index: Int) -> DocumentEntry { entries[index] }

    /// The index of the entry that is a file of the layout. The file has to exist.
    package func entryIndex(ofFile file: Int) -> Int { Int(files[file]) }

    /// The entry that is a file of the layout. The file has to exist.
    package func entry(ofFile file: Int) -> DocumentEntry { self[entryIndex(ofFile: file)] }

    /// The file of the layout that has a path; nil where none has.
    package func file(at path: EntryPath) -> Int? {
        var (low, high) = (0, files.count)
        while low < high {
            let middle = (low + high) / 2
            if path.follows(entry(ofFile: middle).path) { low = middle + 1 } else { high = middle }
        }
        return low < files.count && entry(ofFile: low).path == path ? low : nil
    }

    /// Whether a file of the layout has holes. The file has to exist.
    func isSparse(file: Int) -> Bool { entries[entryIndex(ofFile: file)].file?.isSparse ?? false }

    /// A document that is one file.
    ///
    /// - Throws: `tooLarge`.
    package init(
        file: DocumentEntry.File, called label: DocumentLabel, modified: FileIdentity.Time? = nil,
        permissions: UInt16? = nil
    ) throws(DocumentError) {
        var builder = Builder(label)
        try builder.append(
            DocumentEntry(path: .root, kind: .file(file), modified: modified, permissions: permissions))
        self = try builder.finish()
    }

    private init(
        _ label: DocumentLabel, _ layout: ChunkLayout, _ entries: [DocumentEntry], _ files: [UInt32],
        _ room: ByteReservation?
    ) {
        self.label = label
        self.layout = layout
        self.entries = entries
        self.files = files
        self.room = room
        version = Self.version(of: entries)
    }

    /// All of them are looked at.
    private static func version(of entries: [DocumentEntry]) -> FileVersion {
        var writer = FieldWriter()
        for entry in entries {
            entry.appendState(to: &writer)
            if writer.bytes.count >= checksumStep { writer.fold() }
        }
        writer.fold()
        return FileVersion(bytes: writer.bytes) ?? .none
    }

    /// Whether another document has the same entries, and every file the same version: then it has the same bytes.
    func isSameVersion(as other: DocumentTree) -> Bool {
        label == other.label && version == other.version && !entries.contains { $0.file?.version == FileVersion.none }
    }

    /// Takes entries one after the other, as a scan or another device gives them, and refuses what is no tree.
    package struct Builder {
        /// Bytes of an entry without its names: what its place in the layout takes, and a path's array, are in it.
        private static let entrySize =
            MemoryLayout<DocumentEntry>.stride + MemoryLayout<UInt32>.stride + 3 * MemoryLayout<UInt64>.stride + 48
        /// How many entries room is made for at once at the most.
        private static let step = 8192

        private let label: DocumentLabel
        private let room: ByteReservation?
        /// The entries that there is room for.
        private var capacity = 0
        private var nameByteCount = 0
        private var entries: [DocumentEntry] = []
        private var files: [UInt32] = []
        private var sizes: [UInt64] = []

        /// A builder of the document of this name.
        ///
        /// - Parameter room: what the tree takes of a budget, taken as it grows; nil, the default, takes nothing.
        package init(_ label: DocumentLabel, room: ByteReservation? = nil) {
            self.label = label
            self.room = room
        }

        /// Takes the next entry: first the document itself, then what is in it, in the order of
        /// ``EntryPath/follows(_:)``, each in a folder that came before.
        ///
        /// - Throws: `badName` for what is out of order, in no folder or there already, and for a link that leads out;
        ///   `tooManyEntries`; `busy` where the budget has no room for it.
        package mutating func append(_ entry: DocumentEntry) throws(DocumentError) {
            guard entries.count < DocumentTree.entryLimit, nameByteCount <= DocumentTree.nameByteLimit else {
                throw DocumentError(.tooManyEntries, label.description)
            }
            guard isNext(entry) else { throw DocumentError(.badName, entry.path.description) }
            try makeRoom(for: entry)
            if let file = entry.file {
                files.append(UInt32(entries.count))
                sizes.append(file.size)
            }
            entries.append(entry)
        }

        /// The tree of all that came.
        ///
        /// - Throws: `incomplete` where nothing came; `tooLarge` above 2^63 - 1 bytes.
        package func finish() throws(DocumentError) -> DocumentTree {
            guard !entries.isEmpty else { throw DocumentError(.incomplete, label.description) }
            guard let layout = ChunkLayout(fileSizes: sizes) else { throw DocumentError(.tooLarge, label.description) }
            return DocumentTree(label, layout, entries, files, room)
        }

        /// Grows what there is room for, by so much at once that a tree of any size is copied a few times only.
        private mutating func makeRoom(for entry: DocumentEntry) throws(DocumentError) {
            var length = entry.path.bytes.count
            if case .link(let target) = entry.kind { length += target.bytes.count }
            let more = entries.count == capacity ? min(max(16, capacity), Self.step) : 0
            guard room?.grow(by: more * Self.entrySize + length) ?? true else {
                throw DocumentError(.busy, label.description)
            }
            nameByteCount += length
            guard more > 0 else { return }
            capacity += more
            entries.reserveCapacity(capacity)
            files.reserveCapacity(capacity)
            sizes.reserveCapacity(capacity)
        }

        private func isNext(_ entry: DocumentEntry) -> Bool {
            guard let last = entries.last else {
                if case .link = entry.kind { return false }
                return entry.path.isRoot
            }
            guard entry.path.follows(last.path), entries[0].kind == .folder else { return false }
            // A target was checked for one path and could be given to another entry.
            if case .link(let target) = entry.kind, LinkTarget(target.bytes, at: entry.path) == nil { return false }
            let parent = entry.path.parent
            if parent == last.path { return last.kind == .folder }
            // Whatever is open at this point lies on the way to the last entry.
            return parent.isRoot || last.path.bytes.starts(with: parent.bytes + [UInt8(ascii: "/")])
        }
    }
}

extension DocumentEntry {
    /// The properties that make it another entry. The time of a folder changes with what comes and goes in it. Holes
    /// may be filled at any moment, and a file system that allocates late tells holes of a file that was just written:
    /// neither is in it.
    fileprivate func appendState(to writer: inout FieldWriter) {
        var (number, version, target): (UInt64, FileVersion, [UInt8]) = (2, .none, [])
        switch kind {
        case .file(let file): (number, version) = (file.isExecutable ? 1 : 0, file.version)
        case .folder: break
        case .link(let link): (number, target) = (3, link.bytes)
        }
        let permissions = permissions.map { UInt64($0 & 0o777 | 1 << 9) } ?? 0
        writer.append(number << 48 | permissions << 32 | UInt64(path.bytes.count) << 16 | UInt64(target.count))
        for number in [file?.size ?? 0, version.high, version.low] { writer.append(number) }
        for bytes in [path.bytes, target] { writer.append(raw: bytes[...]) }
    }
}
