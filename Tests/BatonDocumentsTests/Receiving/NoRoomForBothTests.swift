// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import BatonTestSupport
import Glibc
import SystemPackage
import Testing

@testable import BatonDocuments

@Suite("Where there is no room for two versions", .enabled(if: DocumentFixture.isRoot, DocumentFixture.needsRoot))
struct NoRoomForBothTests {
    /// Bytes of a document.
    static let size = 24 << 20
    /// Bytes of a disk that takes one of them, and not two.
    static let diskSize = 32 << 20

    let delta: FolderDelta

    init() throws {
        delta = try FolderDelta()
    }

    private var writers: WriterFixture { delta.writers }
    private var part: FilePath {
        get throws { writers.folder.appending(try #require(writers.names.first)) }
    }

    /// A disk for the destination.
    private func mount(_ size: Int = diskSize) throws -> MountedFolder {
        try MountedFolder(tmpfsAt: writers.folder, size: size)
    }

    private func makeSource(_ content: [UInt8]) throws -> FilePath {
        let source = try writers.scratch.makeFile("report.pdf", content)
        try DocumentFixture.backdate(source)
        return source
    }

    private func replace(_ source: FilePath, with content: [UInt8]) throws {
        try SystemCalls.call { unlink(source.string) }
        try writers.scratch.makeFile("report.pdf", content)
    }

    private func ledger() throws -> PartFileLedger {
        try PartFileLedger(stateFolder: writers.scratch.filePath.appending("parts"))
    }

    /// The next attempt at a version of a document.
    private func writer(
        version: UInt64, size: Int = size, ledger: PartFileLedger? = nil
    ) async throws -> DocumentWriter {
        try await DocumentWriter.create(
            try DocumentFixture.tree(UInt64(size), version: version), from: DocumentFixture.origin,
            in: try DestinationFolder(writers.folder), ledger: try ledger ?? self.ledger())
    }

    /// The ranges that the next attempt at a version would ask for. The attempt gives back its room.
    private func missing(_ version: UInt64) async throws -> [Range<UInt64>] {
        let writer = try await writer(version: version)
        let missing = try await writer.missing()
        await writer.end()
        return missing
    }

    private func receive(_ chunks: Range<UInt64>, of content: [UInt8], version: UInt64, ledger: PartFileLedger? = nil)
        async throws
    {
        let writer = try await writer(version: version, size: content.count, ledger: ledger)
        try await writer.begin([chunks])
        try await writer.write(ResumeFixture.records([chunks], of: content))
        #expect(await writer.end() > 0)
    }

    private func expectArrived(
        _ attempt: FolderDelta.Attempt, _ content: [UInt8], sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let arrived = try #require(attempt.arrived, sourceLocation: sourceLocation)
        #expect(try DocumentFixture.read(arrived) == content, sourceLocation: sourceLocation)
        writers.expectOnly(["report.pdf"], sourceLocation: sourceLocation)
    }

    @Test("What came of the old one is deleted, and the user is told; if there is room for both it is built upon")
    func dropped() async throws {
        let disk = try mount()
        defer { withExtendedLifetime(disk) {} }
        let content = DocumentFixture.content(Self.size, seed: 400)
        for (came, keepsOlder) in [(6, true), (18, false)] as [(UInt64, Bool)] {
            try await receive(0..<came, of: content, version: 1)
            let identity = DocumentIdentity(
                file: [UInt8](repeating: 1, count: 16), place: [UInt8](repeating: 2, count: 16))
            let writer = try await DocumentWriter.create(
                try DocumentFixture.tree(UInt64(Self.size), version: 2), from: DocumentFixture.origin,
                in: try DestinationFolder(writers.folder), ledger: try ledger(), identity: identity)
            #expect((writer.pieceSize != nil) == keepsOlder)
            // The first one was offered without an identity, so a part that is kept may be of another document.
            #expect(writer.start == (keepsOlder ? .unchanged : .changed(keepsOlder: false)))
            #expect(writers.names.count == (keepsOlder ? 2 : 1))
            try await writer.begin([0..<24])
            try await writer.write(DocumentFixture.records(content))
            try await writer.finish()
            #expect(try DocumentFixture.read(try await writer.commit()) == content)
            writers.expectOnly(["report.pdf"])
            try SystemCalls.call { unlink(writers.document.string) }
        }
    }

    @Test("The same with a file that has holes, of which nothing is reserved")
    func sparse() async throws {
        let disk = try mount()
        defer { withExtendedLifetime(disk) {} }
        let source = try writers.scratch.makeFile("report.pdf", [])
        try SystemCalls.call { truncate(source.string, 40 << 20) }
        try DocumentFixture.write(DocumentFixture.content(Self.size, seed: 409), to: source, at: 8 << 20)
        try DocumentFixture.backdate(source)
        _ = try await delta.attempt(source, interruptedAfter: 28 << 20)
        try DocumentFixture.write([1], to: source, at: 8 << 20 + 5000)
        try expectArrived(try await delta.attempt(source), try DocumentFixture.read(source))
    }

    @Test("Where there is no room for it even so, what came of the old one is kept until there is")
    func larger() async throws {
        let disk = try mount()
        defer { withExtendedLifetime(disk) {} }
        let filler = writers.folder.appending("filler")
        try DocumentFixture.write([UInt8](repeating: 1, count: 7 << 20), to: filler)
        let content = DocumentFixture.content(Self.size, seed: 407)
        let source = try makeSource(content)
        _ = try await delta.attempt(source, interruptedAfter: 20 << 20)
        let changed = content + DocumentFixture.content(3 << 20, seed: 408)
        try replace(source, with: changed)
        for _ in 0..<2 {
            #expect(await DocumentFixture.code { _ = try await delta.attempt(source) } == .destinationFull)
            #expect(writers.names.count == 2)
        }
        try SystemCalls.call { unlink(filler.string) }
        try expectArrived(try await delta.attempt(source), changed)
    }

    @Test("What came of an older version of a folder is deleted likewise")
    func folder() async throws {
        let disk = try mount()
        defer { withExtendedLifetime(disk) {} }
        let content = DocumentFixture.content(18 << 20, seed: 410)
        let source = try delta.makeSource([
            ("a/big", content), ("b", DocumentFixture.content(5000, seed: 411)),
            ("z", DocumentFixture.content(4 << 20, seed: 413)),
        ])
        _ = try await delta.attempt(source, interruptedAfter: 18 << 20 + 5100)
        try DocumentFixture.write([~content[7]], to: source.appending("a/big"), at: 7)
        let first = try await delta.attempt(source, interruptedAfter: 5 << 20)
        #expect(first.arrived == nil && first.missing == 22 << 20 + 5000)
        #expect(writers.names.count == 1)
        try delta.expectArrived(try await delta.attempt(source), source)
    }

    @Test("A folder that has no room even so leaves what came as it was")
    func largerFolder() async throws {
        let disk = try mount()
        defer { withExtendedLifetime(disk) {} }
        let source = try delta.makeSource([
            ("a", DocumentFixture.content(5 << 20, seed: 414)), ("b", DocumentFixture.content(5 << 20, seed: 415)),
            ("c", DocumentFixture.content(5 << 20, seed: 416)),
        ])
        _ = try await delta.attempt(source, interruptedAfter: 10 << 20)
        try SystemCalls.call { unlink(source.appending("b").string) }
        try DocumentFixture.write(DocumentFixture.content(30 << 20, seed: 417), to: source.appending("b"))
        for _ in 0..<2 {
            #expect(await DocumentFixture.code { _ = try await delta.attempt(source) } == .destinationFull)
            #expect(writers.names.count == 1)
        }
        try SystemCalls.call { unlink(source.appending("b").string) }
        try DocumentFixture.write([1], to: source.appending("b"))
        let attempt = try await delta.attempt(source)
        try delta.expectArrived(attempt, source)
        #expect(attempt.missing == 10 << 20 + 1)
    }

    @Test("Where something has the document's name already, what came of the other version stays")
    func nameIsTaken() async throws {
        let disk = try mount()
        defer { withExtendedLifetime(disk) {} }
        try await receive(0..<18, of: DocumentFixture.content(Self.size, seed: 419), version: 1)
        try DocumentFixture.write([1], to: writers.document)
        #expect(await DocumentFixture.code { _ = try await writer(version: 2) } == .destinationExists)
        try SystemCalls.call { unlink(writers.document.string) }
        let again = try await writer(version: 1)
        #expect(try await again.missing() == [18..<24])
    }

    @Test("However often a part is taken away and there is no room, the ledger forgets it", .timeLimit(.minutes(3)))
    func ledgerForgets() async throws {
        let disk = try mount(4 << 20)
        defer { withExtendedLifetime(disk) {} }
        let ledger = try ledger()
        let content = DocumentFixture.content(2 << 20, seed: 421)
        for _ in 0...PartFileLedger.recordLimit {
            try await receive(0..<1, of: content, version: 1, ledger: ledger)
            let part = try part
            try SystemCalls.call { unlink(part.string) }
            let code = await DocumentFixture.code { _ = try await writer(version: 9, size: 1 << 30, ledger: ledger) }
            #expect(code == .destinationFull)
        }
    }

    private func fill(_ count: Int, _ name: String = "filler") throws {
        try DocumentFixture.write([UInt8](repeating: 1, count: count), to: writers.folder.appending(name))
    }

    @Test("Nothing is given up for what has no room in any case")
    func tooLarge() async throws {
        let disk = try mount()
        defer { withExtendedLifetime(disk) {} }
        for (version, count) in [(1, 6), (2, 4)] {
            let content = DocumentFixture.content(Self.size, seed: 423 + UInt64(version))
            try await receive(0..<UInt64(count), of: content, version: UInt64(version))
        }
        #expect(writers.names.count == 2)
        let code = await DocumentFixture.code { _ = try await writer(version: 3, size: 1 << 30) }
        #expect(code == .destinationFull && writers.names.count == 2)
        #expect(try await missing(2) == [4..<24])
        #expect(try await missing(1) == [6..<24])
    }

    @Test("What has come of the version that is wanted is gone on with, also where another one has to make room for it")
    func lackingRoom() async throws {
        let disk = try mount()
        defer { withExtendedLifetime(disk) {} }
        for (version, count) in [(1, 6), (2, 18)] {
            let content = DocumentFixture.content(Self.size, seed: 426 + UInt64(version))
            try await receive(0..<UInt64(count), of: content, version: UInt64(version))
        }
        try fill(4 << 20)
        #expect(writers.names.count == 3)
        #expect(try await missing(2) == [18..<24])
        #expect(writers.names.count == 2)
        // More than everything else could make room for: it stays.
        try fill(6 << 20, "more")
        #expect(await DocumentFixture.code { _ = try await writer(version: 2) } == .destinationFull)
        try SystemCalls.call { unlink(writers.folder.appending("filler").string) }
        #expect(try await missing(2) == [18..<24])
    }
}
