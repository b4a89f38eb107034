// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import BatonTestSupport
import CLinux
import Glibc
import SystemPackage
import Testing

@testable import BatonDocuments

@Suite("Going on with a document")
struct ResumeTests {
    @Test("A killed process costs one chunk at most", arguments: [0, 1, 2, 3, 4, 5])
    func killed(_ round: Int) async throws {
        var generator = SeededGenerator()
        let seed = generator.next() >> 1
        let fixture = try ResumeFixture(seed: seed)
        let whole = fixture.content.count + ResumeFixture.chunkCount * 18
        var taken = 0
        // Killed up to three times, one after the other.
        for _ in 0...(round % 3) {
            let count = Int.random(in: 0..<whole - taken, using: &generator)
            await fixture.killAfter(count, seed: seed)
            taken += count / DocumentFixture.recordSize * DocumentFixture.recordSize
        }
        let writer = try await fixture.open()
        let there = await writer.progress.verifiedByteCount
        let chunks = taken / DocumentFixture.recordSize
        #expect(there == UInt64(chunks) << 20, "\(generator)")
        #expect(try await writer.missing() == [UInt64(chunks)..<8], "\(generator)")
        try await fixture.complete(writer)
        fixture.writers.expectOnly(["report.pdf"])
    }

    @Test("A document that is to have another name goes on with what has come")
    func otherName() async throws {
        let fixture = try ResumeFixture(seed: 78)
        try await fixture.receive([0..<5], fixture.content)
        // Its name has been taken meanwhile.
        try fixture.scratch.makeFile("destination/report.pdf", [7])
        for naming in [
            DocumentNaming(label: try DocumentLabel(Array("mine.pdf".utf8)), renames: false),
            DocumentNaming(label: nil, renames: true),
        ] {
            let writer = try await fixture.open(naming: naming)
            #expect(try await writer.missing() == [5..<8])
            await writer.end()
        }
        let writer = try await fixture.open(naming: DocumentNaming(label: nil, renames: true))
        let missing = try await writer.missing()
        try await writer.begin(missing)
        try await writer.write(ResumeFixture.records(missing, of: fixture.content))
        try await writer.finish()
        let place = try await writer.commit()
        #expect(place.lastComponent?.string == "report (2).pdf")
        #expect(try DocumentFixture.read(place) == fixture.content)
        #expect(fixture.names.sorted() == ["report (2).pdf", "report.pdf"])
    }

    @Test("Nor does the origin read it again: of 64 MiB, of which the last four are missing, it reads these four")
    func prefixIsNotReadByTheOrigin() async throws {
        let scratch = try ScratchFolder()
        let path = try scratch.makeFile("document", DocumentFixture.content(64 << 20, seed: 9))
        await #expect(processExitsWith: .success) { [path = path.string as String] in
            let before = try DocumentFixture.readByteCount()
            // The origin describes the document again, and then the receiver asks for the rest.
            let document = try DocumentScan.scan(FilePath(path))
            let pool = BufferPool(budget: 4 << 20)
            let reader = try await DocumentReader.open(document, ranges: [60..<64])
            while let records = try await reader.next(from: pool) { pool.release(records.buffer) }
            let count = try DocumentFixture.readByteCount() - before
            #expect(count >= 4 << 20 && count < 4 << 20 + 128 << 10, "\(count) bytes were read")
        }
    }

    @Test("What a checkpoint vouches for is not read, and the rest is read and compared, at each opening")
    func checkpoint() async throws {
        let fixture = try ResumeFixture(seed: 2)
        try await fixture.receive([0..<6])
        try fixture.rewriteJournal(checkpointAfter: 3)
        try fixture.damage(1)
        try fixture.damage(4)
        for _ in 0..<2 {
            let writer = try await fixture.open()
            #expect(try await writer.missing() == [4..<5, 6..<8])
            #expect(await writer.progress.verifiedByteCount == 5 << 20)
            await writer.end()
        }
        let content = try fixture.journalContent()
        #expect(content.vouched == ChunkSet(0..<3) && content.unsure.map(\.number) == [3, 5])
    }

    @Test("What a power cut has taken is asked for again, and the document is right")
    func powerCut() async throws {
        let fixture = try ResumeFixture(seed: 3)
        try await fixture.receive([0..<7])
        try fixture.rewriteJournal(checkpointAfter: 2)
        for chunk in [2, 3, 5] as [UInt64] { try fixture.damage(chunk) }
        // The next attempt is interrupted as well, with one of the lost chunks back.
        let first = try await fixture.open()
        #expect(try await first.missing() == [2..<4, 5..<6, 7..<8])
        try await first.begin([2..<3])
        try await first.write(ResumeFixture.records([2..<3], of: fixture.content))
        #expect(await first.end() == 5 << 20)
        // A checkpoint may vouch for what is there, and for nothing that was lost before.
        do {
            let journal = try #require(try TransferJournal.open(try fixture.journal())).journal
            try journal.checkpoint()
        }
        let second = try await fixture.open()
        #expect(try await second.missing() == [3..<4, 5..<6, 7..<8])
        try await fixture.complete(second)
        fixture.writers.expectOnly(["report.pdf"])
    }

    @Test("A journal of the version before is read, and what it says is looked at")
    func journalOfTheVersionBefore() async throws {
        let fixture = try ResumeFixture(seed: 19)
        try await fixture.receive([0..<5])
        try fixture.damage(1)
        // A mark of the entries before, and a chunk that is lost: kinds 2 and 3.
        for (kind, number) in [(2, 5), (3, 0)] as [(UInt64, UInt64)] {
            var entry = FieldWriter()
            for field in [kind, number, 0, 0] { entry.append(field) }
            let index = UInt64(kind + 3)
            let checksum = (entry.bytes + withUnsafeBytes(of: index.bigEndian) { Array($0) })
                .withUnsafeBytes { ChunkChecksum(of: $0) }
            entry.append(checksum.low)
            let journal = try fixture.journal()
            try DocumentFixture.write(entry.bytes, to: journal, at: UInt64(try DocumentFixture.size(at: journal)))
        }
        let writer = try await fixture.open()
        #expect(try await writer.missing() == [1..<2, 5..<8])
        try await fixture.complete(writer)
        fixture.writers.expectOnly(["report.pdf"])
    }

    @Test("A journal that is damaged costs the chunks it cannot vouch for")
    func damagedJournal() async throws {
        let fixture = try ResumeFixture(seed: 4)
        try await fixture.receive([0..<6])
        let path = try fixture.journal()
        let size = UInt64(try DocumentFixture.size(at: path))
        try DocumentFixture.write([0xAA], to: path, at: size - 3 * 40 + 9)
        let writer = try await fixture.open()
        #expect(try await writer.missing() == [3..<4, 6..<8])
        try await fixture.complete(writer)
        fixture.writers.expectOnly(["report.pdf"])
    }

    @Test("What a damaged journal makes it read it reads for as long as somebody waits for it, and the next goes on")
    func damagedJournalOfWhichNobodyWaits() async throws {
        let fixture = try WriterFixture()
        let tree = try DocumentFixture.tree(64 << 20, version: 5, isSparse: true)
        let zeros = DocumentFixture.record([UInt8](repeating: 0, count: 1 << 20), encoding: 1, saying: [])
        let writer = try await DocumentWriter.begun(tree, in: fixture.folder, ledger: fixture.ledger)
        for _ in 0..<63 { try await writer.write(zeros) }
        #expect(await writer.end() == 63 << 20)
        let unfinished = try #require(try fixture.ledger.unfinished().first)
        try DocumentFixture.damageLastEntry(ofJournal: fixture.ledger.journal(of: unfinished.record), of: 0..<63) { _ in
            ChunkChecksum.ofZeros(ChunkLayout.chunkSize)
        }
        func damage(_ chunk: UInt64) throws {
            let part = fixture.folder.appending(try #require(fixture.names.first))
            try DocumentFixture.write([1], to: part, at: chunk << 20)
        }
        try damage(3)
        let place = try PartPlace(fixture.folder, fixture.ledger)
        // It is asked before each chunk that is read.
        var count = 0
        #expect(
            await DocumentFixture.code {
                _ = try Part(reopening: unfinished, at: place) {
                    count += 1
                    return count == 20
                }
            } == .cancelled)
        #expect(count == 20)
        for chunk in [5, 17] as [UInt64] { try damage(chunk) }
        let next = try await DocumentWriter.begun(tree, in: fixture.folder, ledger: fixture.ledger)
        #expect(try await next.missing() == [3..<4, 5..<6, 17..<18, 62..<64])
        await next.end()
    }

    @Test("Two writers of one document at once do not share a part, and the first one wins")
    func twoAtOnce() async throws {
        let fixture = try ResumeFixture(seed: 5)
        try await fixture.receive([0..<4])
        let ledger = try fixture.nextStart()
        let first = try await fixture.open(ledger: ledger)
        let second = try await fixture.open(ledger: ledger)
        #expect(try await first.missing() == [4..<8])
        #expect(try await second.missing() == [0..<8])
        #expect(fixture.names.count == 2)
        try await second.begin([0..<8])
        try await second.write(ResumeFixture.records([0..<8], of: fixture.content))
        try await fixture.complete(first)
        #expect(await DocumentFixture.code { _ = try await second.commit() } == .destinationExists)
        #expect(try DocumentFixture.read(fixture.document) == fixture.content)
    }

    @Test("Another device's document of the same name and version is another document")
    func otherOrigin() async throws {
        let fixture = try ResumeFixture(seed: 6)
        try await fixture.receive([0..<4])
        let writer = try await DocumentWriter.create(
            fixture.tree, from: "another-device", in: try DestinationFolder(fixture.folder),
            ledger: try fixture.nextStart())
        #expect(try await writer.missing() == [0..<8])
        #expect(writer.pieceSize == nil)
        await writer.end()
        #expect(fixture.names.count == 1)
    }

    @Test("A destination of its own is another document")
    func otherFolder() async throws {
        let fixture = try ResumeFixture(seed: 7)
        try await fixture.receive([0..<4])
        let other = try fixture.scratch.makeFolder("other")
        let writer = try await DocumentWriter.begun(fixture.tree, in: other, ledger: try fixture.nextStart())
        #expect(try await writer.missing() == [0..<8])
        await writer.end()
        // The same folder by another path is the same.
        let link = fixture.scratch.filePath.appending("link")
        try SystemCalls.call { symlink(fixture.folder.string, link.string) }
        let again = try await DocumentWriter.begun(fixture.tree, in: link, ledger: try fixture.nextStart())
        #expect(try await again.missing() == [4..<8])
        await again.end()
    }

    @Test("Of an attempt that has failed so much is told as kept as the next one begins with")
    func keptByAFailure() async throws {
        let fixture = try ResumeFixture(seed: 41)
        let writer = try await fixture.open()
        try await writer.begin([0..<8])
        var records = ResumeFixture.records([0..<6], of: fixture.content)
        records[records.count - 1] ^= 1
        #expect(await DocumentFixture.code { try await writer.write(records) } == .checksumMismatch)
        for _ in 1...2 { #expect(await writer.end() == 5 << 20) }
        let next = try await fixture.open()
        #expect(await next.progress.verifiedByteCount == 5 << 20)
        await next.end()
    }

    @Test(
        "While the disk is not mounted what came to it is not forgotten, and goes on coming when it is back",
        .enabled(if: DocumentFixture.isRoot, DocumentFixture.needsRoot))
    func notMounted() async throws {
        let fixture = try ResumeFixture(seed: 11)
        let disk = try MountedFolder(tmpfsAt: try fixture.scratch.makeFolder("disk"), size: 32 << 20)
        try await fixture.mounted(disk.path) { try await fixture.receive([0..<5]) }
        // Its mount point is a folder like any other.
        #expect(fixture.names.isEmpty)
        try await fixture.expectNothingHere()
        try await fixture.mounted(disk.path) { try await fixture.expectRest() }
        withExtendedLifetime(disk) {}
    }

    @Test(
        "Nor is it where another disk stands in its place, and neither has a number of its own",
        .enabled(if: DocumentFixture.isRoot, DocumentFixture.needsRoot))
    func otherDisk() async throws {
        let fixture = try ResumeFixture(seed: 14)
        // To all that can be told, one device: as two sticks with FAT are that are plugged in in turn.
        let device = try MountedFolder(ramfsAt: try fixture.scratch.makeFolder("device"))
        let disks = ["one", "other"].map { device.path.appending($0) }
        for disk in disks { try SystemCalls.call { mkdir(disk.string, 0o700) } }
        try await fixture.mounted(disks[0]) { try await fixture.receive([0..<5]) }
        try await fixture.mounted(disks[1]) { try await fixture.expectNothingHere() }
        try await fixture.mounted(disks[0]) { try await fixture.expectRest() }
        withExtendedLifetime(device) {}
    }

    @Test(
        "A part that was removed is forgotten at the next attempt, if its file system can be recognized",
        .enabled(if: DocumentFixture.isNumbered, "the file system of the scratch folders has no number of its own"))
    func removedByHand() async throws {
        let fixture = try ResumeFixture(seed: 12)
        try await fixture.receive([0..<5])
        let (journal, part) = (try fixture.journal(), try fixture.part())
        try SystemCalls.call { unlink(part.string) }
        let writer = try await fixture.open()
        #expect(try await writer.missing() == [0..<8])
        #expect(access(journal.string, F_OK) == -1)
        try await fixture.complete(writer)
        fixture.writers.expectOnly(["report.pdf"])
    }

    @Test("A look that is cancelled keeps no more room than there was before")
    func roomOfACancelledLook() async throws {
        let fixture = try ResumeFixture(seed: 16)
        try await fixture.receive([0..<5])
        let before = try DocumentFixture.room(at: try fixture.part())
        #expect(before < 6 << 20)
        let ledger = try fixture.nextStart()
        let place = try PartPlace(fixture.folder, ledger)
        let unfinished = try #require(try ledger.unfinished().first)
        var count = 0
        let code = await DocumentFixture.code {
            _ = try Part(reopening: unfinished, at: place) {
                count += 1
                return count == 3
            }
        }
        #expect(code == .cancelled)
        // Not to the block: the file system may have taken one for where the others are.
        #expect(try DocumentFixture.room(at: try fixture.part()) < before + 1 << 20)
        let writer = try await fixture.open()
        #expect(try await writer.missing() == [5..<8])
        try await fixture.complete(writer)
    }

    /// Two parts of one version, of which the one in which less is was written to last.
    ///
    /// - Returns: the journal of the other one.
    private func receiveTwice(_ fixture: ResumeFixture) async throws -> FilePath {
        let ledger = try fixture.nextStart()
        let (full, empty) = (try await fixture.open(ledger: ledger), try await fixture.open(ledger: ledger))
        for (writer, chunks) in [(full, 0..<6), (empty, 0..<1)] as [(DocumentWriter, Range<UInt64>)] {
            try await writer.begin([chunks])
            try await writer.write(ResumeFixture.records([chunks], of: fixture.content))
            #expect(await writer.end() > 0)
        }
        let journals = fixture.writers.records.filter { $0.hasSuffix(PartFileRecord.journalSuffix) }
            .map { fixture.scratch.filePath.appending("parts").appending($0) }
        let fullest = try #require(try journals.first { try DocumentFixture.size(at: $0) > 400 })
        try DocumentFixture.backdate(fullest)
        return fullest
    }

    @Test("Of two parts of one version the one in which most is goes on, not the newest")
    func fullestOfOneVersion() async throws {
        let fixture = try ResumeFixture(seed: 13)
        _ = try await receiveTwice(fixture)
        let writer = try await fixture.open()
        #expect(try await writer.missing() == [6..<8])
        try await fixture.complete(writer)
        fixture.writers.expectOnly(["report.pdf"])
    }

    @Test(
        "Where its journal does not open at the moment, no emptier one takes its place",
        .enabled(if: DocumentFixture.isRoot, DocumentFixture.needsRoot))
    func fullestOfOneVersionThatDoesNotOpen() async throws {
        let fixture = try ResumeFixture(seed: 17)
        let journal = try await receiveTwice(fixture)
        do {
            let mounted = try MountedFolder(readOnly: journal, at: journal)
            #expect(await DocumentFixture.code { _ = try await fixture.open() } == .stateUnavailable)
            #expect(fixture.names.count == 2)
            withExtendedLifetime(mounted.path) {}
        }
        let writer = try await fixture.open()
        #expect(try await writer.missing() == [6..<8])
        try await fixture.complete(writer)
        fixture.writers.expectOnly(["report.pdf"])
    }

    @Test("Ranges are asked for in order and bounded; the rest is asked for after")
    func rangesAreBounded() async throws {
        let fixture = try ResumeFixture(seed: 8)
        let tree = try DocumentFixture.tree(4000 << 20, version: 9, isSparse: true)
        let writer = try await fixture.open(tree)
        let zeros = DocumentFixture.record([UInt8](repeating: 0, count: 1 << 20), encoding: 1, saying: [])
        // Every second chunk.
        let even = (0..<UInt64(2000)).map { $0 * 2 }
        try await writer.begin(even.map { $0..<$0 + 1 })
        for _ in 0..<2000 { try await writer.write(zeros) }
        let missing = try await writer.missing()
        let odd = (0..<UInt64(DocumentWriter.rangeLimit)).map { $0 * 2 + 1 }
        #expect(missing == odd.map { $0..<$0 + 1 })
        try await writer.begin(missing)
        for _ in missing { try await writer.write(zeros) }
        #expect(try await writer.missing().count == 2000 - DocumentWriter.rangeLimit)
        await writer.end()
    }
}
