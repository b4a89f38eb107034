// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import SwiftProtobuf
import SystemPackage

@testable import BatonDocuments
@testable import BatonMessages
@testable import BatonNode

/// The manifest of a document, as a device tells it: entries one after the other, of which a tree is made or nothing.
///
/// No path or link of a tree leads out of it. Each entry is in a folder that comes before it, and the journal gives the
/// same tree.
enum TreeTarget: FuzzTarget {
    static let name = "tree"
    static let maximumLength = 4096

    static func run(_ bytes: UnsafeRawBufferPointer) throws {
        var parser = RecordParser<WireDocumentEntry>()
        parser.append(bytes)
        var builder: DocumentTree.Builder?
        do {
            while let record = try parser.next() {
                if builder == nil {
                    builder = DocumentTree.Builder(try DocumentLabel(record.name))
                    try builder?.append(record.entry(at: .root))
                } else {
                    try builder?.append(record.entry(at: EntryPath(record.name)))
                }
            }
            guard let tree = try builder?.finish() else { return }
            try check(tree)
        } catch is DocumentError {
            return
        } catch is HandoffError {
            return
        }
    }

    private static func check(_ tree: DocumentTree) throws {
        var folders: Set<[UInt8]> = []
        var size: UInt64 = 0
        for index in 0..<tree.entryCount {
            let entry = tree[index]
            expect(entry.path.isRoot == (index == 0), "another root: \(entry.path)")
            expect(index == 0 || folders.contains(entry.path.parent.bytes), "\(entry.path) is in no folder")
            let names = entry.path.bytes.split(separator: 0x2F, omittingEmptySubsequences: false).map { Array($0) }
            let isPlain = names.allSatisfy { !$0.isEmpty && $0 != [46] && $0 != [46, 46] && !$0.contains(0) }
            expect(index == 0 || isPlain, "\(entry.path) is no path below")
            switch entry.kind {
            case .folder: expect(folders.insert(entry.path.bytes).inserted, "\(entry.path) is there twice")
            case .file(let file): size += file.size
            case .link(let target): checkLink(target, at: names.count)
            }
        }
        expect(size == tree.size && size <= UInt64(Int64.max), "it has \(tree.size) bytes of \(size)")
        try checkJournal(of: tree)
    }

    /// Follows a link by the names alone: it never is above the document.
    private static func checkLink(_ target: LinkTarget, at depth: Int) {
        expect(target.bytes.first != 0x2F && !target.bytes.contains(0), "a link to \(target.bytes)")
        var place = depth - 1
        for name in target.bytes.split(separator: 0x2F) {
            if name.elementsEqual([46, 46]) { place -= 1 } else if !name.elementsEqual([46]) { place += 1 }
            expect(place >= 0, "a link leads out of the document")
        }
    }

    private static func checkJournal(of tree: DocumentTree) throws {
        let header = JournalHeader(origin: "laptop", tree: tree)
        let encoded = header.encodedTree
        guard let again = JournalHeader(JournalSummary(header, encoded), decodingTree: encoded[...]) else {
            throw FuzzError("a journal of the tree cannot be read")
        }
        expect(
            again.encodedTree == encoded && again.tree.entryCount == tree.entryCount, "the journal has another tree")
    }

    static func seeds() throws -> [[UInt8]] {
        func entry(_ name: String, _ kind: WireDocumentEntryKind, size: UInt64 = 0, link: String = "")
            -> WireDocumentEntry
        {
            .with {
                $0.name = Data(name.utf8)
                $0.kind = kind
                $0.size = size
                $0.linkTarget = Data(link.utf8)
            }
        }
        let folder = entry("photos", .folder)
        let trees: [[WireDocumentEntry]] = [
            [entry("note.txt", .file, size: 3)], [folder],
            [folder, entry("a", .folder), entry("a/b", .file, size: 1 << 30), entry("a/c", .link, link: "b")],
            [folder, entry("a", .folder), entry("a/l", .link, link: "../b"), entry("b", .file, size: 7)],
            [folder, entry("l", .link, link: "../../etc/passwd")], [folder, entry("l", .link, link: "a/../../b")],
            [folder, entry("../a", .file)], [folder, entry("a/b", .file)],
            [folder, entry("b", .file), entry("a", .file)],
            [entry("a", .file, size: .max)], [entry("a", .link, link: "b")],
            [folder, entry("a", .file), entry("a", .file)],
            [
                folder,
                .with {
                    $0.name = Data("s".utf8)
                    $0.size = 1 << 40
                    $0.sparse = true
                    $0.executable = true
                    $0.version = Data(0..<16)
                    $0.modified = .with {
                        $0.seconds = -1
                        $0.nanoseconds = .max
                    }
                },
            ],
        ]
        return try trees.map { entries in
            try entries.flatMap { entry in
                let record: [UInt8] = try entry.serializedBytes()
                return [UInt8(record.count)] + record
            }
        }
    }
}
