// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import BatonTestSupport
import Glibc
import SystemPackage
import Testing

@testable import BatonDocuments

@Suite("Where there is no room for two versions", .enabled(if: DocumentFixture.isRoot, DocumentFixture.needsRoot))
struct RewritingTests {
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

    /// What the next attempt at a version would ask for. It has given back the room for it.
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

    @Test("The new one is written over the old one, and of what had come only what differs crosses again")
    func edited() async throws {
        let disk = try mount()
        defer { withExtendedLifetime(disk) {} }
        var content = DocumentFixture.content(Self.size, seed: 400)
        let source = try makeSource(content)
        let came = 20 << 20
        #expect(try await delta.attempt(source, interruptedAfter: UInt64(came)).arrived == nil)
        for place in stride(from: 70_001, to: came, by: came / 10) { content[place] ^= 0xFF }
        try replace(source, with: content)
        let first = try await delta.attempt(source, interruptedAfter: 6 << 20)
        #expect(first.missing == UInt64(Self.size) && first.arrived == nil)
        #expect(writers.names.count == 1)
        // And once more, with another edit in between, of what has been written over the first one.
        content[3_000_000] ^= 0xFF
        try replace(source, with: content)
        let second = try await delta.attempt(source, interruptedAfter: 9 << 20)
        #expect(second.missing == UInt64(Self.size))
        let third = try await delta.attempt(source)
        #expect(third.missing < UInt64(Self.size))
        try expectArrived(third, content)
        let crossed = first.crossed + second.crossed + third.crossed
        let again = crossed - (Self.size - came)
        // Three attempts, of which two begin at the start.
        #expect(again < came * 6 / 100, "\(again) bytes")
    }

    @Test("An insertion at the start moves all that follows, which is built all the same", arguments: [1, 700_000])
    func inserted(_ count: Int) async throws {
        let disk = try mount()
        defer { withExtendedLifetime(disk) {} }
        let content = DocumentFixture.content(Self.size, seed: 401)
        let source = try makeSource(content)
        _ = try await delta.attempt(source, interruptedAfter: UInt64(Self.size - DocumentFixture.megabyte))
        let changed = DocumentFixture.content(count, seed: 402) + content
        try replace(source, with: changed)
        let attempt = try await delta.attempt(source)
        try expectArrived(attempt, changed)
        #expect(attempt.requests == 1)
        // The last chunk had not come.
        let again = attempt.crossed - count - DocumentFixture.megabyte
        #expect(again < Self.size * 3 / 100, "\(again) bytes")
    }

    @Test("Shorter, with a gap, longer: whatever was written over before it was needed comes again, in a few requests")
    func moved() async throws {
        var random = SeededGenerator(seed: 403)
        for round in 0..<4 {
            let disk = try mount()
            defer { withExtendedLifetime(disk) {} }
            let content = DocumentFixture.content(Self.size, seed: 404)
            let source = try makeSource(content)
            _ = try await delta.attempt(source, interruptedAfter: UInt64(Self.size - DocumentFixture.megabyte))
            var changed = content
            switch round {
            case 0: changed.insert(contentsOf: DocumentFixture.content(3 << 20, seed: 405), at: 5000)
            case 1: changed.removeSubrange(5_000_000..<9_000_000)
            case 2: changed.replaceSubrange(0..<4 << 20, with: content[(8 << 20)..<(12 << 20)])
            default: for _ in 0..<5 { random.edit(&changed) }
            }
            try replace(source, with: changed)
            let attempt = try await delta.attempt(source)
            try expectArrived(attempt, changed)
            #expect(attempt.requests <= 1 + Remnants.attemptLimit)
            #expect(attempt.crossed < changed.count + changed.count / 10)
            if round == 1 {
                #expect(
                    attempt.crossed < changed.count / 4,
                    "what moves down is there until it is needed, but for the end that is cut off")
            }
            try SystemCalls.call { unlink(writers.document.string) }
        }
    }

    @Test("A node that is killed meanwhile goes on with both: what came, and what of the old one still stands")
    func killed() async throws {
        let disk = try mount()
        defer { withExtendedLifetime(disk) {} }
        let content = DocumentFixture.content(Self.size, seed: 406)
        let source = try makeSource(content)
        _ = try await delta.attempt(source, interruptedAfter: 20 << 20)
        let changed = Array(content.reversed().prefix(2 << 20)) + content[(2 << 20)...]
        await #expect(processExitsWith: .signal(SIGKILL)) { [path = writers.scratch.path as String] in
            let scratch = FilePath(path)
            let writer = try await DocumentWriter.begun(
                try DocumentFixture.tree(UInt64(RewritingTests.size), version: 900),
                in: scratch.appending("destination"),
                ledger: try PartFileLedger(stateFolder: scratch.appending("parts")))
            let content = DocumentFixture.content(RewritingTests.size, seed: 406)
            let changed = Array(content.reversed().prefix(2 << 20)) + content[(2 << 20)...]
            try await writer.write(Array(ResumeFixture.records([0..<3], of: changed).dropLast(100)))
            kill(getpid(), SIGKILL)
        }
        let writer = try await writer(version: 900)
        #expect(try await writer.missing() == [2..<24])
        #expect(try await writer.pieceSize() != nil)
        while try await writer.nextSignatures() != nil {}
        try await writer.begin([2..<24])
        for chunk in 2..<UInt64(20) {
            try await writer.write(OtherVersionTests.copying(chunk, of: changed, from: chunk << 20))
        }
        try await writer.write(ResumeFixture.records([20..<24], of: changed))
        try await writer.finish()
        let path = try await writer.commit()
        #expect(try DocumentFixture.read(path) == changed)
        writers.expectOnly(["report.pdf"])
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
        let attempt = try await delta.attempt(source)
        try expectArrived(attempt, changed)
        #expect(attempt.crossed - (7 << 20) < 20 << 20 * 3 / 100)
    }

    @Test("The same with a file that has holes, of which nothing is reserved")
    func sparse() async throws {
        let disk = try mount()
        defer { withExtendedLifetime(disk) {} }
        let source = try writers.scratch.makeFile("report.pdf", [])
        try SystemCalls.call { truncate(source.string, 40 << 20) }
        let content = DocumentFixture.content(Self.size, seed: 409)
        try DocumentFixture.write(content, to: source, at: 8 << 20)
        try DocumentFixture.backdate(source)
        _ = try await delta.attempt(source, interruptedAfter: 28 << 20)
        try DocumentFixture.write([~content[5000]], to: source, at: 8 << 20 + 5000)
        // A hole is where something was.
        try DocumentFixture.write([UInt8](repeating: 0, count: 1 << 20), to: source, at: 12 << 20)
        let attempt = try await delta.attempt(source)
        try expectArrived(attempt, try DocumentFixture.read(source))
        #expect(attempt.crossed < 6 << 20, "\(attempt.crossed) bytes")
    }

    @Test(
        "In a folder as well: the files that changed are written over, also where another one changes meanwhile",
        arguments: [false, true])
    func folder(isEditedAgain: Bool) async throws {
        let disk = try mount()
        defer { withExtendedLifetime(disk) {} }
        var content = DocumentFixture.content(18 << 20, seed: 410)
        let source = try delta.makeSource([
            ("a/big", content), ("b", DocumentFixture.content(5000, seed: 411)),
            ("empty", DocumentFixture.content(100, seed: 412)), ("z", DocumentFixture.content(4 << 20, seed: 413)),
        ])
        _ = try await delta.attempt(source, interruptedAfter: 18 << 20 + 5100)
        content[7_000_000] ^= 0xFF
        try DocumentFixture.write([content[7_000_000]], to: source.appending("a/big"), at: 7_000_000)
        try SystemCalls.call { truncate(source.appending("empty").string, 0) }
        let first = try await delta.attempt(source, interruptedAfter: 5 << 20)
        #expect(first.arrived == nil)
        if isEditedAgain { try DocumentFixture.write([~content[0]], to: source.appending("b")) }
        let second = try await delta.attempt(source)
        try delta.expectArrived(second, source)
        let again = first.crossed + second.crossed - (4 << 20)
        #expect(again < 18 << 20 * 6 / 100, "\(again) bytes")
    }

    @Test("A sender that says twice what is not true of the old one is not believed a third time")
    func lies() async throws {
        let disk = try mount()
        defer { withExtendedLifetime(disk) {} }
        let content = DocumentFixture.content(Self.size, seed: 414)
        let source = try makeSource(content)
        _ = try await delta.attempt(source, interruptedAfter: 20 << 20)
        let writer = try await writer(version: 901)
        // Chunk 5 is not what chunk 4 was.
        let lie = OtherVersionTests.copying(5, of: content, from: 4 << 20)
        for _ in 0..<Remnants.attemptLimit {
            #expect(try await writer.pieceSize() != nil)
            while try await writer.nextSignatures() != nil {}
            try await writer.begin([5..<6])
            try await writer.write(lie)
            try await writer.finish()
            #expect(try await writer.missing() == [0..<24])
        }
        #expect(try await writer.pieceSize() == nil)
        try await writer.begin([5..<6])
        #expect(await DocumentFixture.code { try await writer.write(lie) } == .badRecord)
        #expect(await !writer.hasMisbuilt)
    }

    @Test("A part that another transfer has written over since it was listed is not gone on with as what it was")
    func listedBefore() async throws {
        let disk = try mount()
        defer { withExtendedLifetime(disk) {} }
        let content = DocumentFixture.content(Self.size, seed: 415)
        let ledger = try ledger()
        try await receive(0..<18, of: content, version: 1, ledger: ledger)
        let listed = try #require(try ledger.unfinished().first)
        try await receive(0..<2, of: DocumentFixture.content(Self.size, seed: 416), version: 2, ledger: ledger)
        #expect(writers.names.count == 1)
        #expect(try PartContent(reopening: listed, at: try PartPlace(writers.folder, ledger)) == nil)
        // It stays to be gone on with as what it is now.
        let next = try await writer(version: 2, ledger: ledger)
        #expect(try await next.missing() == [2..<24])
    }

    @Test("A smaller version has the room of the end that it does not need")
    func smaller() async throws {
        let disk = try mount()
        defer { withExtendedLifetime(disk) {} }
        let content = [UInt8](repeating: 0, count: 10 << 20) + DocumentFixture.content(14 << 20, seed: 417)
        let first = try await writer(version: 1)
        try await first.begin([0..<23])
        let zeros = DocumentFixture.record([UInt8](repeating: 0, count: 1 << 20), encoding: 1, saying: [])
        for _ in 0..<10 { try await first.write(zeros) }
        try await first.write(ResumeFixture.records([10..<23], of: content))
        #expect(await first.end() > 0)
        // The zeros take no room; of what is free then 7 MiB are left.
        try DocumentFixture.write(
            [UInt8](repeating: 1, count: 12 << 20), to: writers.folder.appending("filler"))
        let changed = DocumentFixture.content(16 << 20, seed: 418)
        let second = try await writer(version: 2, size: changed.count)
        try await second.begin([0..<16])
        try await second.write(DocumentFixture.records(changed))
        try await second.finish()
        #expect(try DocumentFixture.read(try await second.commit()) == changed)
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

    @Test("A part that has no room when it is opened stays with whoever has taken it")
    func heldByOne() async throws {
        let disk = try mount()
        defer { withExtendedLifetime(disk) {} }
        let ledger = try ledger()
        try await receive(0..<18, of: DocumentFixture.content(Self.size, seed: 420), version: 1, ledger: ledger)
        let record = try #require(try ledger.unfinished().first).record
        #expect(ledger.take(record))
        let place = try PartPlace(writers.folder, ledger)
        let label = try DocumentLabel(Array("report.pdf".utf8))
        let code = await DocumentFixture.code {
            _ = try PartFile(
                reopening: record, for: label, .init(size: 1 << 30), isOfOtherVersion: true, at: place)
        }
        #expect(code == .destinationFull)
        #expect(!ledger.take(record), "it was left to others")
        ledger.release(record)
        #expect(ledger.take(record))
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

    /// Bytes that a file has on the disk.
    private func blocks(_ file: FilePath) throws -> Int {
        let opened = try SystemCalls.open(file, O_RDONLY)
        return Int(try SystemCalls.status(of: opened).st_blocks) * 512
    }

    private func fill(_ count: Int, _ name: String = "filler") throws {
        try DocumentFixture.write([UInt8](repeating: 1, count: count), to: writers.folder.appending(name))
    }

    @Test("What is reserved for the new one and does not come is given back, and what there is of the old one stays")
    func givenBack() async throws {
        let disk = try mount()
        defer { withExtendedLifetime(disk) {} }
        let content = DocumentFixture.content(Self.size, seed: 422)
        try await receive(0..<4, of: content, version: 1)
        let part = try part
        try fill(5 << 20)
        let writer = try await writer(version: 2)
        #expect(try blocks(part) >= Self.size)
        _ = await writer.end()
        #expect(try blocks(part) < 5 << 20)
        // It is built upon the next time.
        let again = try await self.writer(version: 2)
        #expect(try await again.pieceSize() != nil)
        #expect(try Array(DocumentFixture.read(part).prefix(4 << 20)) == Array(content.prefix(4 << 20)))
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

    @Test("Of a file that became shorter only what stays is built upon")
    func shorterInFolder() async throws {
        let disk = try mount()
        defer { withExtendedLifetime(disk) {} }
        let content = DocumentFixture.content(18 << 20, seed: 430)
        let source = try delta.makeSource([("a", content), ("z", DocumentFixture.content(1 << 20, seed: 431))])
        _ = try await delta.attempt(source, interruptedAfter: 18 << 20)
        try SystemCalls.call { unlink(source.appending("a").string) }
        try DocumentFixture.write(Array(content[(6 << 20)...]), to: source.appending("a"))
        try fill(4 << 20)
        let attempt = try await delta.attempt(source)
        try SystemCalls.call { unlink(writers.folder.appending("filler").string) }
        try delta.expectArrived(attempt, source)
        #expect(attempt.requests == 1)
    }

    @Test("Where the new journal has no room, what there is of the old one makes it")
    func fullState() async throws {
        let disk = try mount()
        let state = try MountedFolder(tmpfsAt: writers.scratch.filePath.appending("parts"), size: 64 << 10)
        defer {
            withExtendedLifetime(disk) {}
            withExtendedLifetime(state) {}
        }
        try await receive(0..<18, of: DocumentFixture.content(Self.size, seed: 432), version: 1)
        let old = writers.names
        let filler = state.path.appending("filler")
        for count in [64 << 10, 4 << 10, 1] {
            try? DocumentFixture.write([UInt8](repeating: 1, count: count), to: filler)
        }
        let writer = try await writer(version: 2)
        #expect(try await writer.missing() == [0..<24])
        #expect(writers.names.count == 1 && writers.names != old)
    }
}
