// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import BatonTestSupport
import CLinux
import Foundation
import Glibc
import SystemPackage
import Testing

@testable import BatonDocuments

@Suite("File systems that do not keep the numbers of files")
struct InodeTests {
    private func open(_ fixture: ResumeFixture, keepsInodes: Bool) async throws -> DocumentWriter {
        try await DocumentWriter.create(
            fixture.tree, from: DocumentFixture.origin,
            in: try DestinationFolder(fixture.folder, keepsInodes: keepsInodes), ledger: try fixture.nextStart())
    }

    @Test("A part with another number is gone on with")
    func otherNumber() async throws {
        let fixture = try ResumeFixture(seed: 30)
        try await fixture.receive([0..<5])
        try fixture.writers.renumberPart()
        let writer = try await open(fixture, keepsInodes: false)
        #expect(try await writer.missing() == [5..<8])
        try await fixture.complete(writer)
        fixture.writers.expectOnly(["report.pdf"])
    }

    @Test("Where they are kept it begins anew, and what stands there is not forgotten")
    func strangerIsRemembered() async throws {
        let fixture = try ResumeFixture(seed: 31)
        try await fixture.receive([0..<5])
        let part = try #require(fixture.names.first)
        let record = try fixture.writers.renumberPart()
        let writer = try await open(fixture, keepsInodes: true)
        #expect(try await writer.missing() == [0..<8])
        try await fixture.complete(writer)
        #expect(fixture.names == [part, "report.pdf"])
        #expect(try fixture.nextStart().unfinished().map(\.record) == [record])
    }

    @Test("Of another version nothing is built upon what stands there, and it is not forgotten either")
    func strangerOfAnotherVersionIsRemembered() async throws {
        let fixture = try ResumeFixture(seed: 34)
        try await fixture.receive([0..<5])
        let part = try #require(fixture.names.first)
        let record = try fixture.writers.renumberPart()
        let tree = try DocumentFixture.tree(UInt64(fixture.content.count), version: ResumeFixture.version + 1)
        let writer = try await fixture.open(tree)
        #expect(try await writer.pieceSize() == nil)
        try await fixture.complete(writer)
        #expect(fixture.names == [part, "report.pdf"])
        #expect(try fixture.nextStart().unfinished().map(\.record) == [record])
    }

    @Test("Nor is it when its device has more unfinished documents than are kept")
    func strangerIsNoExcess() async throws {
        let fixture = try ResumeFixture(seed: 35)
        try await fixture.receive([0..<5])
        let part = try #require(fixture.names.first)
        let record = try fixture.writers.renumberPart()
        try DocumentFixture.backdate(try fixture.journal())
        for number in 0..<PartFileLedger.unfinishedLimitOfDevice {
            try await fixture.receive([0..<1], of: try DocumentFixture.tree(2 << 20, called: "\(number)", version: 1))
        }
        let other = try await fixture.open(try DocumentFixture.tree(2 << 20, called: "other", version: 1))
        await other.end()
        #expect(fixture.names.contains(part))
        #expect(try fixture.nextStart().unfinished().last?.record == record)
    }

    @Test("A part with another number is removed, unless it has another name as well")
    func removal() async throws {
        let fixture = try ResumeFixture(seed: 32)
        try await fixture.receive([0..<5])
        let record = try fixture.writers.renumberPart()
        #expect(record.removePart() == .doesNotFit)
        let (part, other) = (try fixture.part(), fixture.scratch.filePath.appending("other"))
        try SystemCalls.call { link(part.string, other.string) }
        #expect(record.removePart(keepsInodes: false) == .doesNotFit)
        try SystemCalls.call { unlink(other.string) }
        #expect(record.removePart(keepsInodes: false) == .removed)
        #expect(fixture.names.isEmpty)
        // Of a file that was not made yet only an empty one can be ours.
        try fixture.scratch.makeFile("destination/full", [1])
        let early = PartFileRecord(folder: fixture.folder, name: Array("full".utf8), tag: "full")
        #expect(early.removePart(keepsInodes: false) == .doesNotFit)
    }

    @Test("A file is of the version that was told without its number, until it is written to")
    func source() async throws {
        let scratch = try ScratchFolder()
        let path = try scratch.makeFile("document", DocumentFixture.content(100, seed: 33))
        let scanned = try DocumentScan.scan(path)
        let document = try DocumentScan.scan(path, keepsInodes: false)
        #expect(document.tree[0].file?.version != scanned.tree[0].file?.version)
        let pool = BufferPool(budget: 4 << 20)
        let reader = try await DocumentReader.open(document, pool: pool)
        pool.release(try #require(try await reader.next()).buffer)
        try DocumentFixture.write([1], to: path)
        let code = await DocumentFixture.code { _ = try await DocumentReader.open(document, pool: pool) }
        #expect(code == .sourceChanged)
    }

    /// Two files, each in a folder of its own, of which nothing differs but their numbers, their content and when they
    /// were made: what a copy that keeps times leaves. Their folders can change names without a sign of it in the
    /// files.
    private func makeTwins(in folder: FilePath) async throws {
        let (one, other) = (folder.appending("1/file"), folder.appending("2/file"))
        for file in [one, other] { try SystemCalls.call { mkdir(file.removingLastComponent().string, 0o755) } }
        func birth(_ path: FilePath) throws -> UInt64 {
            SystemCalls.birth(of: try SystemCalls.open(path, O_RDONLY))
        }
        func identity(_ path: FilePath) throws -> FileIdentity { FileIdentity(try SystemCalls.status(at: path)) }
        try DocumentFixture.write(DocumentFixture.content(2 << 20, seed: 1), to: one)
        let born = try birth(one)
        // In another tick of the clock, after a few at the most.
        let isLater = try await eventually {
            unlink(other.string)
            try DocumentFixture.write(DocumentFixture.content(2 << 20, seed: 2), to: other)
            return try birth(other) != born
        }
        // Within one tick, most often.
        let areEqual = try await eventually {
            for file in [one, other] {
                var times = [timespec](repeating: timespec(tv_sec: 1_000_000_000, tv_nsec: 0), count: 2)
                try SystemCalls.call { utimensat(AT_FDCWD, file.string, &times, 0) }
            }
            return try identity(one).changed == identity(other).changed
        }
        try #require(isLater && areEqual)
        // The folders' times are not what tells.
        for file in [one, other] { try DocumentFixture.backdate(file.removingLastComponent()) }
    }

    private func exchange(in folder: FilePath) throws {
        for (from, to) in [("1", "3"), ("2", "1"), ("3", "2")] {
            try SystemCalls.call { rename(folder.appending(from).string, folder.appending(to).string) }
        }
    }

    /// Whether the tests' folder is on a file system that keeps when a file was made.
    private static let keepsBirth: Bool = {
        guard let scratch = try? ScratchFolder(), let file = try? SystemCalls.open(scratch.filePath, O_RDONLY) else {
            return false
        }
        return SystemCalls.birth(of: file) != 0
    }()

    @Test(
        "Files that exchange their names while they are sent, or between two attempts, are not mixed",
        .enabled(if: keepsBirth, "the tests' folder is where no file tells when it was made"))
    func exchanged() async throws {
        let scratch = try ScratchFolder()
        let folder = try scratch.makeFolder("folder")
        try await makeTwins(in: folder)
        let before = try DocumentScan.scan(folder, keepsInodes: false)
        let pool = BufferPool(budget: 4 << 20)
        // An excerpt, so that the folder is not looked at as a whole at last.
        let reader = try await DocumentReader.open(before, ranges: [0..<4], isExcerpt: true, pool: pool)
        // Before the last of its chunks: a file is opened once there is room behind the one before it.
        pool.release(try #require(try await reader.next()).buffer)
        try exchange(in: folder)
        let code = await DocumentFixture.code {
            while let records = try await reader.next() { pool.release(records.buffer) }
        }
        #expect(code == .sourceChanged)
        let after = try DocumentScan.scan(folder, keepsInodes: false)
        func versions(_ document: ScannedDocument) -> [FileVersion?] {
            (0..<document.tree.layout.fileCount).map { document.tree.entry(ofFile: $0).file?.version }
        }
        #expect(zip(versions(before), versions(after)).allSatisfy { $0 != $1 })
        // Without an exchange all counts.
        try exchange(in: folder)
        let again = try DocumentScan.scan(folder, keepsInodes: false)
        #expect(versions(before) == versions(again))
    }

    @Test("What is known of a document then is its place, by its path")
    func identity() throws {
        let scratch = try ScratchFolder()
        func identity(_ path: FilePath) throws -> DocumentIdentity {
            DocumentIdentity(
                FileIdentity(try SystemCalls.status(at: path)), at: path, called: try DocumentLabel(of: path),
                keepsInodes: false)
        }
        _ = try scratch.makeFolder("one")
        let path = try scratch.makeFile("one/report.pdf", [1])
        let first = try identity(path)
        #expect(first.file.isEmpty && first.place.count == DocumentIdentity.byteCount)
        #expect(try identity(scratch.filePath.appending("one/../one/report.pdf")) == first)
        // The disk was put in again: every number is another.
        try SystemCalls.call { rename(scratch.path + "/one", scratch.path + "/before") }
        _ = try scratch.makeFolder("one")
        try scratch.makeFile("one/report.pdf", [1])
        #expect(try identity(path) == first)
        #expect(try identity(scratch.filePath.appending("before/report.pdf")).isOther(than: first))
        #expect(try identity(try scratch.makeFile("one/other.pdf", [1])).isOther(than: first))
    }
}

extension WriterFixture {
    /// Has the ledger remember another number of the one part, as where the file system has made up a new one.
    @discardableResult
    func renumberPart() throws -> PartFileRecord {
        let ledger = try PartFileLedger(stateFolder: scratch.filePath.appending("parts"))
        var record = try #require(try ledger.unfinished().first).record
        record.inode += 1
        try ledger.enter(record)
        return record
    }
}
