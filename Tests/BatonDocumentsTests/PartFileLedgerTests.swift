// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import Glibc
import SystemPackage
import Testing

@testable import BatonDocuments

@Suite("Ledger of part files")
struct PartFileLedgerTests {
    let fixture: WriterFixture

    init() throws {
        fixture = try WriterFixture()
    }

    /// The ledger as the next start sees it.
    func nextStart() throws -> PartFileLedger {
        try PartFileLedger(stateFolder: fixture.scratch.filePath.appending("parts"))
    }

    /// Writes one chunk in another process, which is killed then.
    private func killInTheMiddle(ofWriting name: String = "report.pdf") async {
        await #expect(processExitsWith: .signal(SIGKILL)) {
            [path = fixture.scratch.path as String, name] in
            let scratch = FilePath(path)
            let writer = try await DocumentWriter.begun(
                try DocumentFixture.tree(8 << 20, called: name), in: scratch.appending("destination"),
                ledger: try PartFileLedger(stateFolder: scratch.appending("parts")))
            try await writer.write(DocumentFixture.records(DocumentFixture.content(3 << 20, seed: 40)))
            kill(getpid(), SIGKILL)
        }
    }

    /// Makes the journals of all unfinished documents this old.
    private func age(by seconds: Int) throws {
        for name in fixture.records where name.hasSuffix(PartFileRecord.journalSuffix) {
            try age(fixture.scratch.filePath.appending("parts").appending(name), by: seconds)
        }
    }

    private func age(_ file: FilePath, by seconds: Int) throws {
        var times = [timespec(tv_sec: time(nil) - seconds, tv_nsec: 0), timespec()]
        times[1] = times[0]
        try SystemCalls.call { utimensat(AT_FDCWD, file.string, &times, 0) }
    }

    @Test func killedProcessLeavesWhatATransferCanGoOnWithForSevenDays() async throws {
        let bystander = try fixture.scratch.makeFile("destination/.other.abcdefgh.baton-part", [1])
        await killInTheMiddle()
        for seconds in [0, 7 * 24 * 3600 - 60] {
            try age(by: seconds)
            #expect(try nextStart().removeLeftovers() == 0)
            #expect(fixture.names.count == 2)
            #expect(fixture.records.count == 2)
            #expect(try nextStart().unfinished().count == 1)
        }
        try age(by: 7 * 24 * 3600 + 1)
        #expect(try nextStart().removeLeftovers() == 1)
        fixture.expectOnly([bystander.lastComponent?.string ?? ""])
        #expect(try nextStart().removeLeftovers() == 0)
    }

    @Test func partWithoutAJournalIsGoneAtTheNextStart() async throws {
        await killInTheMiddle()
        let journal = try #require(fixture.records.first { $0.hasSuffix(PartFileRecord.journalSuffix) })
        try SystemCalls.call { truncate(fixture.scratch.filePath.appending("parts").appending(journal).string, 10) }
        #expect(try nextStart().removeLeftovers() == 1)
        fixture.expectOnly([])
    }

    @Test("What an earlier version kept of older copies is gone at the next start, and the part is not")
    func signaturesOfAnEarlierVersion() async throws {
        await killInTheMiddle()
        let record = try #require(fixture.records.first { $0.hasSuffix(PartFileRecord.suffix) })
        try fixture.scratch.makeFile("parts/\(record.dropLast(PartFileRecord.suffix.count)).signatures", [1])
        #expect(fixture.records.count == 3)
        #expect(try nextStart().removeLeftovers() == 0)
        #expect(fixture.records.count == 2)
        #expect(try nextStart().unfinished().count == 1)
    }

    @Test("What a start cannot read at the moment stays for the next one")
    func unreadable() async {
        await #expect(processExitsWith: .success) {
            try DocumentFixture.becomeNobody()
            let fixture = try ResumeFixture(seed: 41)
            try await fixture.receive([0..<5])
            let (journal, parts) = (try fixture.journal(), fixture.scratch.filePath.appending("parts"))
            let record = try #require(fixture.writers.records.first { $0.hasSuffix(PartFileRecord.suffix) })
            for file in [journal, parts.appending(record)] {
                try SystemCalls.call { chmod(file.string, 0) }
                #expect(try fixture.nextStart().removeLeftovers() == 0)
                #expect(fixture.names.count == 1 && fixture.writers.records.count == 2)
                try SystemCalls.call { chmod(file.string, 0o600) }
                // Whose it is is asked for when it is to be removed.
                try DocumentFixture.backdate(journal, by: 8 * 24 * 3600)
            }
            try DocumentFixture.backdate(journal, by: 0)
            #expect(try fixture.nextStart().removeLeftovers() == 0)
            let writer = try await fixture.open()
            #expect(try await writer.missing() == [5..<8])
            try await fixture.complete(writer)
            fixture.writers.expectOnly(["report.pdf"])
        }
    }

    @Test("Of the documents of one device that nobody goes on with the oldest go when another one is begun")
    func deviceWithMany() throws {
        let limit = PartFileLedger.unfinishedLimitOfDevice
        for number in 0..<limit + 4 {
            let name = number == limit + 3 ? "report.pdf" : "part \(number)"
            let part = try fixture.scratch.makeFile("destination/part \(number)", [1])
            let record = PartFileRecord(
                folder: fixture.folder, name: Array("part \(number)".utf8), tag: "part \(number)",
                inode: try inode(part))
            let ledger = try nextStart()
            try ledger.enter(record)
            let header = JournalHeader(
                origin: number == 0 ? "another" : DocumentFixture.origin,
                tree: try DocumentFixture.tree(1, called: name))
            _ = try TransferJournal.create(at: ledger.journal(of: record), header)
            try age(ledger.journal(of: record), by: 60 * (1 + number))
        }
        // The oldest of all is what is gone on with, and another device's does not count.
        let header = JournalHeader(
            origin: DocumentFixture.origin, tree: try DocumentFixture.tree(1))
        let found = try nextStart().unfinished(of: header, in: try DestinationFolder(fixture.folder))
        #expect(found.map(\.record.name) == [Array("part \(limit + 3)".utf8)])
        let gone = Set((0..<limit + 4).map { "part \($0)" }).subtracting(fixture.names)
        #expect(gone == ["part \(limit + 1)", "part \(limit + 2)"])
        #expect(fixture.records.count == 2 * (limit + 2))
    }

    @Test("What others consist of is not read")
    func manyOthers() async throws {
        var builder = DocumentTree.Builder(try DocumentLabel(Array("other".utf8)))
        try builder.append(DocumentEntry(path: .root, kind: .folder))
        for number in 0..<5_000 {
            try builder.append(
                DocumentEntry(path: try EntryPath(Array("\(100_000 + number)".utf8)), kind: .file(.init(size: 1))))
        }
        let header = JournalHeader(origin: DocumentFixture.origin, tree: try builder.finish())
        let parts = fixture.scratch.filePath.appending("parts")
        let ledger = try nextStart()
        var journal: [UInt8] = []
        for number in 0..<12 {
            let record = PartFileRecord(
                folder: fixture.folder, name: Array("part \(number)".utf8), tag: "part \(number)", inode: 1)
            try ledger.enter(record)
            let path = ledger.journal(of: record)
            if number == 0 {
                _ = try TransferJournal.create(at: path, header)
                journal = try DocumentFixture.read(path)
            } else {
                try DocumentFixture.write(journal, to: path)
            }
        }
        let clock = ContinuousClock()
        let path = parts.appending("part 0.journal")
        // All that is done with one of them takes longer than to find that it is none of all of them.
        let reading = try clock.measure { _ = try #require(try TransferJournal.content(at: path)?.header) }
        let (folder, next) = (try DestinationFolder(fixture.folder), try nextStart())
        let wanted = JournalHeader(origin: DocumentFixture.origin, tree: try DocumentFixture.tree(5))
        let looks = try (0..<5).map { _ in
            try clock.measure {
                let found = try next.unfinished(of: wanted, in: folder)
                #expect(found.isEmpty)
            }
        }
        let looking = try #require(looks.min())
        #expect(looking < reading * 3, "\(looking) for 12 of them, \(reading) for one")
        #expect(try next.unfinished(of: header, in: folder).count == 12)
        for file in DocumentFixture.names(in: parts) { unlink(parts.appending(file).string) }
    }

    @Test func runningTransfersAreLeftAlone() async throws {
        let writer = try await fixture.writer(3)
        #expect(try fixture.ledger.removeLeftovers() == 0)
        try await writer.write(DocumentFixture.records([1, 2, 3]))
        _ = try await writer.commit()
        fixture.expectOnly(["report.pdf"])
    }

    func enter(_ name: String, inode: UInt64, folder: FilePath? = nil) throws {
        let record = PartFileRecord(folder: folder ?? fixture.folder, name: Array(name.utf8), tag: name, inode: inode)
        try nextStart().enter(record)
    }

    func inode(_ path: FilePath) throws -> UInt64 {
        FileIdentity(try SystemCalls.status(at: path)).inode
    }

    @Test func onlyTheRecordedInodeIsRemoved() throws {
        let path = try fixture.scratch.makeFile("destination/mine", [1])
        try enter("mine", inode: try inode(path) + 1)
        #expect(try nextStart().removeLeftovers() == 0)
        fixture.expectOnly(["mine"])
        try enter("mine", inode: try inode(path))
        #expect(try nextStart().removeLeftovers() == 1)
        fixture.expectOnly([])
    }

    @Test func recordWithoutInodeTakesOnlyAnEmptyFile() throws {
        try fixture.scratch.makeFile("destination/full", [1])
        try fixture.scratch.makeFile("destination/empty", [])
        try enter("full", inode: 0)
        try enter("empty", inode: 0)
        try enter("never-made", inode: 0)
        #expect(try nextStart().removeLeftovers() == 1)
        fixture.expectOnly(["full"])
    }

    @Test func foldersOfOthersAndLinksAreNeverRemoved() throws {
        let folder = try fixture.scratch.makeFolder("destination/folder")
        let target = try fixture.scratch.makeFile("target", [])
        let link = fixture.folder.appending("link")
        try SystemCalls.call { symlink(target.string, link.string) }
        try enter("folder", inode: try inode(folder) + 1)
        try enter("link", inode: try inode(target))
        #expect(try nextStart().removeLeftovers() == 0)
        fixture.expectOnly(["folder", "link"])
    }

    @Test func forgedAndTornRecordsNameNothing() throws {
        let victim = try fixture.scratch.makeFile("victim", [1])
        let number = try inode(victim)
        let folder = fixture.folder.string
        for (index, text) in [
            "", "\0", "\(folder)\0", "\(folder)\0report.pdf", "\(folder)\0../victim\0\(number)\0",
            "\(folder)\0victim\0-1\0", "destination\0victim\0\(number)\0", "\(folder)\0\0\(number)\0",
            String(repeating: "x", count: 10_000),
        ].enumerated() {
            try fixture.scratch.makeFile("parts/\(index).part-record", Array(text.utf8))
        }
        #expect(try nextStart().removeLeftovers() == 0)
        #expect(fixture.records.isEmpty)
        #expect(try DocumentFixture.read(victim) == [1])
    }

    @Test func unreachableFolderIsTriedAgainForAWhile() throws {
        try enter("part", inode: 1, folder: fixture.scratch.filePath.appending("unplugged"))
        #expect(try nextStart().removeLeftovers() == 0)
        #expect(fixture.records.count == 1)
        let record = fixture.scratch.filePath.appending("parts").appending(try #require(fixture.records.first))
        try age(record, by: 31 * 24 * 3600)
        #expect(try nextStart().removeLeftovers() == 0)
        #expect(fixture.records.isEmpty)
    }

    @Test func stateFolderHasToBeAFolder() async throws {
        let path = try fixture.scratch.makeFile("state", [])
        #expect(await DocumentFixture.code { _ = try PartFileLedger(stateFolder: path) } == .stateUnavailable)
        let orphan = fixture.scratch.filePath.appending("nothing").appending("parts")
        #expect(await DocumentFixture.code { _ = try PartFileLedger(stateFolder: orphan) } == .stateUnavailable)
    }

    @Test("That there is no descriptor to be had at the moment is no fault of the state folder")
    func noDescriptors() async {
        await #expect(processExitsWith: .success) {
            let fixture = try WriterFixture()
            let record = PartFileRecord(folder: fixture.folder, name: Array("part".utf8), tag: "part")
            let error = try await DocumentFixture.withoutDescriptors {
                #expect(throws: DocumentError.self) { try fixture.ledger.enter(record) }
            }
            #expect(error?.code == .busy && error?.underlyingError == .tooManyOpenFiles)
        }
    }

    @Test("A folder whose number could not be recorded any more goes at once, without a descriptor to be had")
    func folderWithoutNumber() async {
        await #expect(processExitsWith: .success) {
            let fixture = try WriterFixture()
            let place = try PartPlace(fixture.folder, fixture.ledger)
            let tree = try FolderFixture.tree([])
            var lacking = 0
            for _ in 0..<20 where lacking < 3 {
                let last = try SystemCalls.open(fixture.folder, O_RDONLY | O_DIRECTORY).rawValue
                let code = try await DocumentFixture.withoutDescriptors(from: last + 1) {
                    await DocumentFixture.code { _ = try Part(creating: tree, at: place) }
                }
                try #require(fixture.names.isEmpty && fixture.records.isEmpty)
                if code == .busy { lacking += 1 }
            }
            // The folder takes the last one that there is, unless something else in the process takes or frees one
            // meanwhile.
            #expect(lacking == 3)
            fixture.expectOnly([])
        }
    }

    @Test func recordsAreFoundThroughALinkedFolder() async throws {
        let link = fixture.scratch.filePath.appending("link")
        try SystemCalls.call { symlink("destination", link.string) }
        let writer = try await fixture.writer(3, in: link)
        let record = try #require(fixture.records.first { $0.hasSuffix(PartFileRecord.suffix) })
        let name = fixture.scratch.filePath.appending("parts").appending(record)
        // The record says where the folder is, not what it was called then.
        #expect(try #require(try PartFileRecord(readingFrom: name)).folder == fixture.folder)
        await writer.end()
    }
}
