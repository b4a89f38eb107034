// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonTestSupport
import CLinux
import Foundation
import Glibc
import SystemPackage
import Testing

@testable import BatonDocuments

/// Which permissions a document arrives with. Root passes every permission by, so what needs them runs as nobody.
@Suite("Permissions of what arrives", .timeLimit(.minutes(5)))
struct PermissionTests {
    /// Entries with their permissions, in the order in which they are made.
    private static let entries: [(path: String, mode: mode_t)] = [
        ("secret", 0o700), ("secret/key", 0o600), ("secret/open", 0o666), ("secret/shut", 0o500),
        ("secret/shut/read", 0o444), ("secret/shut/run", 0o4755), ("secret/shut/sub", 0o555),
        ("secret/shut/sub/empty", 0o400),
    ]
    private static let folders: Set = ["secret", "secret/shut", "secret/shut/sub"]
    private static let content = DocumentFixture.content(5000, seed: 3)

    /// A scratch folder that everybody may write to.
    private func makeScratch() throws -> ScratchFolder {
        let scratch = try ScratchFolder()
        try SystemCalls.call { chmod(scratch.path, 0o777) }
        return scratch
    }

    /// Makes the entries; permissions last, since they forbid to make more.
    private static func makeSource(in scratch: FilePath) throws -> FilePath {
        for (path, _) in entries {
            let place = scratch.appending(path)
            guard !folders.contains(path) else {
                try SystemCalls.call { mkdir(place.string, 0o700) }
                continue
            }
            try DocumentFixture.write(path.hasSuffix("empty") ? [] : content, to: place)
        }
        for (path, mode) in entries.reversed() {
            try SystemCalls.call { chmod(scratch.appending(path).string, mode) }
        }
        return scratch.appending("secret")
    }

    private static func mode(_ path: FilePath) throws -> mode_t { try SystemCalls.status(at: path).st_mode & 0o7777 }

    /// Looks at what arrived in a folder.
    private static func expectArrived(in folder: FilePath, umask: mode_t) throws {
        for (path, mode) in entries {
            #expect(try Self.mode(folder.appending(path)) == mode & 0o777 & ~umask, "\(path)")
        }
        #expect(try DocumentFixture.read(folder.appending("secret/shut/read")) == content)
    }

    private static func makeWriter(
        _ tree: DocumentTree, in folder: FilePath, _ ledger: PartFileLedger
    ) async throws -> DocumentWriter {
        try await DocumentWriter.create(
            tree, from: DocumentFixture.origin, in: try DestinationFolder(folder), ledger: ledger)
    }

    /// Writes all that is missing.
    private static func fill(_ writer: DocumentWriter, from source: ScannedDocument) async throws {
        let pool = BufferPool()
        let missing = try await writer.missing()
        try await writer.begin(missing)
        let reader = try await DocumentReader.open(source, ranges: missing)
        while let records = try await reader.next(from: pool) {
            defer { pool.release(records.buffer) }
            try await writer.write(records.buffer)
        }
        try await writer.finish()
    }

    @Test("A folder arrives with the permissions of its origin, less what the umask takes, and without set-id bits")
    func folder() async throws {
        let scratch = try makeScratch()
        await #expect(processExitsWith: .success) { [path = scratch.path as String] in
            try DocumentFixture.becomeNobody()
            umask(0o027)
            let (scratch, folder) = (FilePath(path), FilePath(path).appending("inbox"))
            try SystemCalls.call { mkdir(folder.string, 0o700) }
            let source = try DocumentScan.scan(try PermissionTests.makeSource(in: scratch))
            let ledger = try PartFileLedger(stateFolder: scratch.appending("parts"))
            let writer = try await PermissionTests.makeWriter(source.tree, in: folder, ledger)
            try await PermissionTests.fill(writer, from: source)
            _ = try await writer.commit()
            try PermissionTests.expectArrived(in: folder, umask: 0o027)
        }
    }

    @Test("A file arrives with the permissions of its origin, less what the umask takes", arguments: [0o600, 0o6775])
    func file(mode: Int) async throws {
        let fixture = try WriterFixture()
        let path = try fixture.scratch.makeFile("key", Self.content)
        try SystemCalls.call { chmod(path.string, mode_t(mode)) }
        let arrived = try await DocumentTransferTests.transfer(
            try DocumentScan.scan(path), to: fixture.folder, ledger: fixture.ledger, pool: BufferPool())
        #expect(try Self.mode(arrived) == mode_t(mode) & 0o777 & ~ProcessUmask.current)
    }

    @Test("A file whose origin tells no permissions is the owner's alone", arguments: [false, true])
    func untold(isExecutable: Bool) async throws {
        let fixture = try WriterFixture()
        let writer = try await fixture.writer(
            try DocumentFixture.tree(UInt64(Self.content.count), isExecutable: isExecutable))
        try await writer.write(DocumentFixture.records(Self.content))
        #expect(try Self.mode(try await writer.commit()) == (isExecutable ? 0o700 : 0o600))
    }

    /// The fate of a part that had its final permissions but could not be put in place.
    enum Fate: String, CaseIterable, Codable {
        case goesOn, isRemoved
    }

    @Test("A read-only part that could not be put in place is gone on with, or removed", arguments: Fate.allCases)
    func finishedPart(_ fate: Fate) async throws {
        let scratch = try makeScratch()
        await #expect(processExitsWith: .success) {
            [path = scratch.path as String, fate = fate as Fate] in
            try DocumentFixture.becomeNobody()
            umask(0o022)
            let (scratch, folder) = (FilePath(path), FilePath(path).appending("inbox"))
            try SystemCalls.call { mkdir(folder.string, 0o700) }
            let source = try DocumentScan.scan(try PermissionTests.makeSource(in: scratch))
            let ledger = try PartFileLedger(stateFolder: scratch.appending("parts"))
            let first = try await PermissionTests.makeWriter(source.tree, in: folder, ledger)
            try await PermissionTests.fill(first, from: source)
            // Somebody is faster with the name.
            let obstacle = folder.appending("secret")
            try SystemCalls.call { mkdir(obstacle.string, 0o700) }
            let code = await DocumentFixture.code { _ = try await first.commit() }
            #expect(code == .destinationExists)
            try SystemCalls.call { rmdir(obstacle.string) }
            let part = folder.appending(try #require(DocumentFixture.names(in: folder).first))
            #expect(try PermissionTests.mode(part.appending("shut")) == 0o500)
            switch fate {
            case .isRemoved:
                let journals = DocumentFixture.names(in: scratch.appending("parts")).filter { $0.hasSuffix(".journal") }
                for journal in journals {
                    try SystemCalls.call { unlink(scratch.appending("parts/\(journal)").string) }
                }
                let next = try PartFileLedger(stateFolder: scratch.appending("parts"))
                #expect(try next.removeLeftovers() == 1)
                #expect(DocumentFixture.names(in: folder).isEmpty)
            case .goesOn:
                let second = try await PermissionTests.makeWriter(source.tree, in: folder, ledger)
                #expect(try await second.missing().isEmpty)
                _ = try await second.commit()
                try PermissionTests.expectArrived(in: folder, umask: 0o022)
            }
        }
    }

    @Test("A read-only file that could not be put in place is gone on with")
    func finishedFile() async throws {
        let scratch = try makeScratch()
        await #expect(processExitsWith: .success) { [path = scratch.path as String] in
            try DocumentFixture.becomeNobody()
            let (scratch, folder) = (FilePath(path), FilePath(path).appending("inbox"))
            try SystemCalls.call { mkdir(folder.string, 0o700) }
            let file = scratch.appending("letter")
            try DocumentFixture.write(PermissionTests.content, to: file, mode: 0o400)
            let source = try DocumentScan.scan(file)
            let ledger = try PartFileLedger(stateFolder: scratch.appending("parts"))
            let first = try await PermissionTests.makeWriter(source.tree, in: folder, ledger)
            try await PermissionTests.fill(first, from: source)
            let obstacle = folder.appending("letter")
            try DocumentFixture.write([], to: obstacle)
            let code = await DocumentFixture.code { _ = try await first.commit() }
            #expect(code == .destinationExists)
            try SystemCalls.call { unlink(obstacle.string) }
            let second = try await PermissionTests.makeWriter(source.tree, in: folder, ledger)
            #expect(try await second.missing().isEmpty)
            #expect(try PermissionTests.mode(try await second.commit()) == 0o400)
            #expect(DocumentFixture.names(in: folder) == ["letter"])
        }
    }

    @Test("A new version that is private arrives private, whatever the version before was")
    func newVersion() async throws {
        let fixture = try WriterFixture()
        func tree(_ version: UInt64, _ permissions: UInt16) throws -> DocumentTree {
            var builder = DocumentTree.Builder(try DocumentLabel(Array("folder".utf8)))
            try builder.append(DocumentEntry(path: .root, kind: .folder, permissions: permissions | 0o111))
            for (name, version) in [("a", version), ("b", 7)] {
                try builder.append(
                    DocumentEntry(
                        path: try EntryPath(Array(name.utf8)),
                        kind: .file(.init(size: 5000, version: FileVersion(high: 0, low: version))),
                        permissions: permissions))
            }
            return try builder.finish()
        }
        let records = DocumentFixture.records(Self.content)
        let first = try await Self.makeWriter(try tree(1, 0o644), in: fixture.folder, fixture.ledger)
        try await first.begin([0..<2])
        try await first.write(records + records)
        #expect(await first.end() == 10_000)
        let second = try await Self.makeWriter(try tree(2, 0o600), in: fixture.folder, fixture.ledger)
        try await second.begin([0..<2])
        try await second.write(records + records)
        try await second.finish()
        let path = try await second.commit()
        #expect(try Self.mode(path) == 0o711 & ~ProcessUmask.current)
        for name in ["a", "b"] { #expect(try Self.mode(path.appending(name)) == 0o600, "\(name)") }
    }

    @Test("A folder that is closed to others while it is read goes out as it was offered, and is another version then")
    func closedMeanwhile() async throws {
        let scratch = try ScratchFolder()
        let inner = try scratch.makeFolder("folder").appending("inner")
        try SystemCalls.call { mkdir(inner.string, 0o755) }
        try scratch.makeFile("folder/inner/file", Self.content)
        let source = try DocumentScan.scan(scratch.filePath.appending("folder"))
        let pool = BufferPool()
        let reader = try await DocumentReader.open(source)
        try SystemCalls.call { chmod(inner.string, 0o700) }
        pool.release(try #require(try await reader.next(from: pool)).buffer)
        #expect(try DocumentScan.scan(scratch.filePath.appending("folder")).tree.version != source.tree.version)
    }

    @Test("A journal keeps the permissions, and one of an earlier version tells none", arguments: [nil, 0o640])
    func journal(permissions: UInt16?) throws {
        let scratch = try ScratchFolder()
        let path = scratch.filePath.appending("x.journal")
        let tree = try DocumentTree(
            file: .init(size: 1), called: try DocumentLabel(Array("letter".utf8)), permissions: permissions)
        _ = try TransferJournal.create(
            at: path, JournalHeader(origin: "laptop", tree: tree))
        let header = try #require(try TransferJournal.content(at: path)?.header)
        #expect(header.tree[0].permissions == permissions)
        #expect(header.tree[0] == tree[0])
    }
}
