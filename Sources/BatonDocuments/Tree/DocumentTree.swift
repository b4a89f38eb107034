// SPDX-License-Identifier: Apache-2.0

package import BatonEventLoop

/// All that a document consists of, without its bytes: one file, or a folder and what is in it.
///
/// A value that is made by a ``Builder`` and does not change. Entries are kept packed, some 60 bytes and their path
/// each: 100,000 of them take 10 MB.
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

    private let names: [UInt8]
    private let entries: [PackedEntry]
    /// The indices of the entries that are files.
    private let files: [UInt32]
    /// The room that it takes of a budget for as long as somebody holds it.
    private let room: ByteReservation?

    /// How many entries there are, the document itself included: at least 1.
    package var entryCount: Int { entries.count }

    /// Bytes of all files.
    package var size: UInt64 { layout.documentSize }

    package var isFolder: Bool { entries[0].shape == .folder }

    /// An entry, the document itself at 0. The index has to exist.
    package subscript(index: Int) -> DocumentEntry { entries[index].unpacked(names) }

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

    /// Whether a file of the layout has holes, told without an allocation. The file has to exist.
    func isSparse(file: Int) -> Bool { entries[entryIndex(ofFile: file)].shape == .sparseFile }

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
        _ label: DocumentLabel, _ layout: ChunkLayout, _ names: [UInt8], _ entries: [PackedEntry], _ files: [UInt32],
        _ room: ByteReservation?
    ) {
        self.label = label
        self.layout = layout
        self.names = names
        self.entries = entries
        self.files = files
        self.room = room
        version = Self.version(of: entries, names)
    }

    /// All of them are looked at.
    private static func version(of entries: [PackedEntry], _ names: [UInt8]) -> FileVersion {
        var writer = FieldWriter()
        for entry in entries {
            entry.appendState(to: &writer, names)
            if writer.bytes.count >= checksumStep { writer.fold() }
        }
        writer.fold()
        return FileVersion(bytes: writer.bytes) ?? .none
    }

    /// Whether another document has the same entries, and every file the same version: then it has the same bytes.
    /// Holes do not count.
    func isSameVersion(as other: DocumentTree) -> Bool {
        guard label == other.label, entryCount == other.entryCount else { return false }
        return (0..<entryCount).allSatisfy { index in
            let entry = self[index]
            return entry.withoutHoles == other[index].withoutHoles && entry.file?.version != FileVersion.none
        }
    }

    /// Takes entries one after the other, as a scan or another device gives them, and refuses what is no tree.
    package struct Builder {
        /// Bytes of an entry without its names, with what its place in the layout takes.
        private static let entrySize =
            MemoryLayout<PackedEntry>.stride + MemoryLayout<UInt32>.stride + 3 * MemoryLayout<UInt64>.stride
        /// How many entries, and bytes of names, room is made for at once at the most.
        private static let step = (entries: 8192, names: 1 << 20)

        private let label: DocumentLabel
        private let room: ByteReservation?
        /// The entries and bytes of names that there is room for.
        private var capacity = (entries: 0, names: 0)
        private var names: [UInt8] = []
        private var entries: [PackedEntry] = []
        private var files: [UInt32] = []
        private var sizes: [UInt64] = []
        private var last = EntryPath.root
        /// Whether the last entry can have others in it.
        private var lastIsFolder = false

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
        /// - Throws: `badName` for what is out of order, in no folder or there already; `tooManyEntries`; `busy` where
        ///   the budget has no room for it.
        package mutating func append(_ entry: DocumentEntry) throws(DocumentError) {
            guard entries.count < DocumentTree.entryLimit, names.count <= DocumentTree.nameByteLimit else {
                throw DocumentError(.tooManyEntries, label.description)
            }
            guard isNext(entry) else { throw DocumentError(.badName, entry.path.description) }
            try makeRoom(for: entry)
            if let file = entry.file {
                files.append(UInt32(entries.count))
                sizes.append(file.size)
            }
            entries.append(PackedEntry(entry, &names))
            last = entry.path
            lastIsFolder = entry.kind == .folder
        }

        /// The tree of all that came.
        ///
        /// - Throws: `incomplete` where nothing came; `tooLarge` above 2^63 - 1 bytes.
        package func finish() throws(DocumentError) -> DocumentTree {
            guard !entries.isEmpty else { throw DocumentError(.incomplete, label.description) }
            guard let layout = ChunkLayout(fileSizes: sizes) else { throw DocumentError(.tooLarge, label.description) }
            return DocumentTree(label, layout, names, entries, files, room)
        }

        /// Grows what entries and names have, by so much at once that a tree of any size is copied a few times only.
        private mutating func makeRoom(for entry: DocumentEntry) throws(DocumentError) {
            if entries.count == capacity.entries {
                let more = min(max(16, capacity.entries), Self.step.entries)
                try take(more * Self.entrySize)
                capacity.entries += more
                entries.reserveCapacity(capacity.entries)
                files.reserveCapacity(capacity.entries)
                sizes.reserveCapacity(capacity.entries)
            }
            var length = entry.path.bytes.count
            if case .link(let target) = entry.kind { length += target.bytes.count }
            guard names.count + length > capacity.names else { return }
            let more = max(length, min(max(1024, capacity.names), Self.step.names))
            try take(more)
            capacity.names += more
            names.reserveCapacity(capacity.names)
        }

        private func take(_ bytes: Int) throws(DocumentError) {
            guard room?.grow(by: bytes) ?? true else { throw DocumentError(.busy, label.description) }
        }

        private func isNext(_ entry: DocumentEntry) -> Bool {
            guard !entries.isEmpty else {
                if case .link = entry.kind { return false }
                return entry.path.isRoot
            }
            guard entry.path.follows(last) else { return false }
            guard entries[0].shape == .folder else { return false }
            let parent = entry.path.parent
            if parent == last { return lastIsFolder }
            // Whatever is open at this point lies on the way to the last entry.
            return parent.isRoot || last.bytes.starts(with: parent.bytes + [UInt8(ascii: "/")])
        }
    }
}

/// An entry without allocations of its own: its names are kept with those of all others.
private struct PackedEntry: Sendable {
    enum Shape: UInt8 {
        case file
        case sparseFile
        case folder
        case link
    }

    /// Says that the origin told permissions, beside their nine bits.
    private static let toldPermissions: UInt16 = 1 << 9
    /// Stands for no time.
    private static let noTime = UInt32.max

    let shape: Shape
    private let isExecutable: Bool
    private let permissions: UInt16
    private let pathLength: UInt16
    private let targetLength: UInt16
    private let nanoseconds: UInt32
    private let nameStart: UInt32
    private let seconds: Int64
    private let size: UInt64
    private let version: FileVersion

    init(_ entry: DocumentEntry, _ names: inout [UInt8]) {
        isExecutable = entry.file?.isExecutable ?? false
        permissions = entry.permissions.map { $0 & 0o777 | Self.toldPermissions } ?? 0
        nameStart = UInt32(names.count)
        pathLength = UInt16(entry.path.bytes.count)
        names += entry.path.bytes
        var target: [UInt8] = []
        switch entry.kind {
        case .file(let file):
            shape = file.isSparse ? .sparseFile : .file
            size = file.size
            version = file.version
        case .folder:
            (shape, size, version) = (.folder, 0, .none)
        case .link(let link):
            (shape, size, version) = (.link, 0, .none)
            target = link.bytes
        }
        targetLength = UInt16(target.count)
        names += target
        seconds = entry.modified?.seconds ?? 0
        nanoseconds = entry.modified.map { UInt32(clamping: min($0.nanoseconds, 999_999_999)) } ?? Self.noTime
    }

    /// The properties that make it another entry. A hole may be filled at any moment, and the time of a folder changes
    /// with what comes and goes in it: neither is in it.
    func appendState(to writer: inout FieldWriter, _ names: [UInt8]) {
        let kind: UInt64 =
            switch shape {
            case .file, .sparseFile: isExecutable ? 1 : 0
            case .folder: 2
            case .link: 3
            }
        writer.append(kind << 48 | UInt64(permissions) << 32 | UInt64(pathLength) << 16 | UInt64(targetLength))
        for number in [size, version.high, version.low] { writer.append(number) }
        writer.append(raw: names[Int(nameStart)..<Int(nameStart) + Int(pathLength) + Int(targetLength)])
    }

    func unpacked(_ names: [UInt8]) -> DocumentEntry {
        let pathEnd = Int(nameStart) + Int(pathLength)
        let path = EntryPath(unchecked: names[Int(nameStart)..<pathEnd])
        let kind: DocumentEntry.Kind =
            switch shape {
            case .file, .sparseFile:
                .file(
                    .init(
                        size: size, isExecutable: isExecutable, isSparse: shape == .sparseFile,
                        version: version))
            case .folder: .folder
            case .link: .link(LinkTarget(known: names[pathEnd..<pathEnd + Int(targetLength)]))
            }
        let time = FileIdentity.Time(seconds: seconds, nanoseconds: Int64(nanoseconds))
        return DocumentEntry(
            path: path, kind: kind, modified: nanoseconds == Self.noTime ? nil : time,
            permissions: permissions == 0 ? nil : permissions & 0o777)
    }
}
