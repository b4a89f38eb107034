// SPDX-License-Identifier: Apache-2.0

import BatonDocuments
import BatonEventLoop
import BatonMessages
import FoundationEssentials
import SwiftProtobuf

extension WireDocumentEntry {
    /// The message of an entry.
    init(_ entry: DocumentEntry, of tree: DocumentTree) {
        self.init()
        name = Data(entry.path.isRoot ? tree.label.bytes : entry.path.bytes)
        if let modified = entry.modified {
            self.modified = .with {
                $0.seconds = modified.seconds
                $0.nanoseconds = UInt32(clamping: modified.nanoseconds)
            }
        }
        if let permissions = entry.permissions { mode = UInt32(permissions) }
        switch entry.kind {
        case .folder: kind = .folder
        case .link(let target):
            kind = .link
            linkTarget = Data(target.bytes)
        case .file(let file):
            kind = .file
            size = file.size
            executable = file.isExecutable
            sparse = file.isSparse
            version = Data(file.version.bytes)
        }
    }

    /// The entry that the message tells.
    ///
    /// - Parameter path: where it is in the document.
    /// - Throws: `badName` for a link that leads outside, and for what this version does not know.
    func entry(at path: EntryPath) throws(DocumentError) -> DocumentEntry {
        let time =
            hasModified
            ? FileIdentity.Time(seconds: modified.seconds, nanoseconds: Int64(modified.nanoseconds)) : nil
        let kind: DocumentEntry.Kind
        switch self.kind {
        case .folder: kind = .folder
        case .link:
            guard let target = LinkTarget(linkTarget, at: path) else {
                throw DocumentError(.badName, path.description)
            }
            kind = .link(target)
        case .file:
            kind = .file(
                .init(
                    size: size, isExecutable: executable, isSparse: sparse,
                    version: FileVersion(bytes: version) ?? .none))
        case .UNRECOGNIZED: throw DocumentError(.badName, path.description)
        }
        // Other bits, such as set-id, are no permissions.
        return DocumentEntry(
            path: path, kind: kind, modified: time, permissions: hasMode ? UInt16(mode & 0o777) : nil)
    }
}

extension DocumentTree {
    /// Makes the tree of the entries that come, refusing what is none.
    ///
    /// - Parameter room: what it takes of a budget.
    /// - Throws: `incomplete` where nothing came, `busy` where there is no room.
    static func received(
        _ records: RecordSequence<WireDocumentEntry>, room: ByteReservation?
    ) async throws -> DocumentTree {
        var records = records.makeAsyncIterator()
        guard let root = try await records.next() else {
            throw HandoffError(.internal, "the other side described no document")
        }
        var builder = Builder(try DocumentLabel(root.name), room: room)
        try builder.append(root.entry(at: .root))
        while let record = try await records.next() {
            try builder.append(record.entry(at: EntryPath(record.name)))
        }
        return try builder.finish()
    }
}

extension WireTransferBottleneck {
    /// A transfer's bottleneck, from those of both devices.
    ///
    /// - Parameters:
    ///   - here: what this device waits for.
    ///   - there: what the other one says that it waits for, which counts where this one waits for the network.
    init(here: Bottleneck, there: Bottleneck) {
        switch (here, there) {
        case (.disk, _): self = .diskHere
        case (.processor, _): self = .processorHere
        case (.link, .disk): self = .diskThere
        case (.link, .processor): self = .processorThere
        case (.link, .link), (.link, .unknown): self = .link
        case (.unknown, _): self = .unknown
        }
    }
}
