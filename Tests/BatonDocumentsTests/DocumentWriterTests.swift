// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import BatonTestSupport
import CLinux
import Foundation
import Glibc
import SystemPackage
import Testing

@testable import BatonDocuments

/// A destination, a ledger, and what tests do with them.
struct WriterFixture {
    let scratch: ScratchFolder
    let folder: FilePath
    let ledger: PartFileLedger

    init() throws {
        scratch = try ScratchFolder()
        folder = try scratch.makeFolder("destination")
        ledger = try PartFileLedger(stateFolder: scratch.filePath.appending("parts"))
    }

    var document: FilePath { folder.appending("report.pdf") }
    /// The names in the destination folder.
    var names: [String] { DocumentFixture.names(in: folder) }
    /// The names of the ledger's records and journals.
    var records: [String] { DocumentFixture.names(in: scratch.filePath.appending("parts")) }

    func writer(_ size: Int, in other: FilePath? = nil) async throws -> DocumentWriter {
        try await writer(try DocumentFixture.tree(UInt64(size)), in: other)
    }

    /// A writer that waits for all that is missing.
    func writer(_ tree: DocumentTree, in other: FilePath? = nil) async throws -> DocumentWriter {
        try await DocumentWriter.begun(tree, in: other ?? folder, ledger: ledger)
    }

    /// That nothing but `expected` is left: no part file, no record, no journal.
    func expectOnly(_ expected: [String], sourceLocation: SourceLocation = #_sourceLocation) {
        #expect(names == expected, sourceLocation: sourceLocation)
        #expect(records.isEmpty, sourceLocation: sourceLocation)
    }

    /// That one part is left, with its record and its journal, and nothing else.
    @discardableResult
    func expectOnePart(sourceLocation: SourceLocation = #_sourceLocation) throws -> FilePath {
        let name = try #require(names.first, sourceLocation: sourceLocation)
        #expect(names.count == 1 && name.hasPrefix(".report.pdf."), sourceLocation: sourceLocation)
        let tag = name.split(separator: ".").dropLast().last ?? ""
        #expect(records == ["\(tag).journal", "\(tag).part-record"], sourceLocation: sourceLocation)
        return folder.appending(name)
    }
}

extension DocumentWriter {
    /// A writer of a document of ``DocumentFixture/origin`` that waits for all that is missing.
    static func begun(
        _ tree: DocumentTree, in folder: FilePath, ledger: PartFileLedger
    ) async throws -> DocumentWriter {
        try await begun(tree, in: try DestinationFolder(folder), ledger: ledger)
    }

    /// The same.
    static func begun(
        _ tree: DocumentTree, in folder: DestinationFolder, ledger: PartFileLedger
    ) async throws -> DocumentWriter {
        let writer = try await create(tree, from: DocumentFixture.origin, in: folder, ledger: ledger)
        try await writer.begin(try await writer.missing())
        return writer
    }

    /// Writes these bytes, and waits until they are written.
    @discardableResult
    func write(_ bytes: Buffer) async throws(DocumentError) -> Progress {
        _ = try await submit(bytes)
        try await settle(leaving: 0)
        return progress
    }

    /// Writes these bytes in buffers of `size`.
    func write(_ bytes: [UInt8], by size: Int = 300_000) async throws {
        for start in stride(from: 0, to: bytes.count, by: size) {
            try await write(Buffer(copying: bytes[start..<min(start + size, bytes.count)]))
        }
    }
}

@Suite("Document writer")
struct DocumentWriterTests {
    let fixture: WriterFixture

    init() throws {
        fixture = try WriterFixture()
    }

    @Test(arguments: [0, 1, 1 << 20, (1 << 20) + 1, 10 * (1 << 20) + 5])
    func wholeDocumentIsPutInPlace(_ size: Int) async throws {
        let content = DocumentFixture.content(size, seed: 20)
        let writer = try await fixture.writer(size)
        try fixture.expectOnePart()
        try await writer.write(DocumentFixture.records(content))
        try await writer.finish()
        #expect(await writer.progress.verifiedByteCount == UInt64(size))
        #expect(try await writer.commit() == fixture.document)
        #expect(try DocumentFixture.read(fixture.document) == content)
        fixture.expectOnly(["report.pdf"])
        #expect(await writer.end() == 0)
        fixture.expectOnly(["report.pdf"])
        #expect(await DocumentFixture.code { _ = try await writer.commit() } == .cancelled)
        #expect(await DocumentFixture.code { try await writer.write([0]) } == .cancelled)
    }

    @Test func partFileIsPrivateAndReserved() async throws {
        let writer = try await fixture.writer(8 << 20)
        let status = try SystemCalls.status(at: fixture.folder.appending(try #require(fixture.names.first)))
        #expect(status.st_mode & 0o7777 == 0o600)
        #expect(status.st_size == 8 << 20)
        #expect(status.st_blocks * 512 >= 8 << 20)
        await writer.end()
    }

    /// An origin of an earlier version says nothing of permissions.
    @Test(arguments: [(false, 0o600), (true, 0o700)])
    func permissionsWithoutAModeAreTheOwners(_ isExecutable: Bool, _ expected: UInt32) async throws {
        // In a process of its own: the umask belongs to all of its threads.
        await #expect(processExitsWith: .success) {
            [path = fixture.scratch.path as String, isExecutable, expected] in
            let scratch = FilePath(path)
            let ledger = try PartFileLedger(stateFolder: scratch.appending("parts"))
            for (index, value) in ([0o022, 0o077, 0o000, 0o777] as [mode_t]).enumerated() {
                umask(value)
                let writer = try await DocumentWriter.begun(
                    try DocumentFixture.tree(0, called: "report \(index)", isExecutable: isExecutable),
                    in: scratch.appending("destination"), ledger: ledger)
                let mode = try SystemCalls.status(at: try await writer.commit()).st_mode
                #expect(mode & 0o7777 == expected & ~value)
            }
        }
    }

    @Test(arguments: [
        FileIdentity.Time(seconds: 1_000_000_000, nanoseconds: 123_456_789), .init(seconds: -5, nanoseconds: 0),
        .init(seconds: 4_000_000_000, nanoseconds: 999_999_999),
    ])
    func timeOfTheLastEditComesAlong(_ time: FileIdentity.Time) async throws {
        let writer = try await fixture.writer(try DocumentFixture.tree(3, modified: time))
        try await writer.write(DocumentFixture.records([1, 2, 3]))
        let status = try SystemCalls.status(at: try await writer.commit())
        #expect(FileIdentity(status).modified == time)
    }

    @Test func umaskIsTheProcesss() async throws {
        // In a process of its own: the umask belongs to all of its threads.
        await #expect(processExitsWith: .success) {
            for value in [0o077, 0o000, 0o027] as [mode_t] {
                umask(value)
                #expect(ProcessUmask.current == value)
            }
        }
    }

    /// A transfer that ends keeps what was verified, and leaves nothing where nothing was.
    private func expectEnded(keeping chunks: Int, sourceLocation: SourceLocation = #_sourceLocation) throws {
        if chunks == 0 {
            fixture.expectOnly([], sourceLocation: sourceLocation)
        } else {
            try fixture.expectOnePart(sourceLocation: sourceLocation)
        }
        let parts = try fixture.ledger.unfinished()
        #expect(parts.count == min(chunks, 1), sourceLocation: sourceLocation)
        for part in parts {
            #expect(part.content.all == ChunkSet(0..<UInt64(chunks)), sourceLocation: sourceLocation)
        }
    }

    @Test("A document that nobody wants any more is not put in place, and what has come is kept")
    func cancelledCommit() async throws {
        let content = DocumentFixture.content(3 << 20, seed: 22)
        let writer = try await fixture.writer(content.count)
        try await writer.write(DocumentFixture.records(content))
        try await writer.finish()
        let committing = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return await DocumentFixture.code { _ = try await writer.commit() }
        }
        #expect(await committing.value == .cancelled)
        try expectEnded(keeping: 3)
    }

    @Test("What was synchronised and could not be put in place is not read again")
    func destinationTaken() async throws {
        let content = DocumentFixture.content(3 << 20, seed: 23)
        let writer = try await fixture.writer(content.count)
        try await writer.write(DocumentFixture.records(content))
        try await writer.finish()
        let other = try fixture.scratch.makeFile("destination/report.pdf", [7])
        #expect(await DocumentFixture.code { _ = try await writer.commit() } == .destinationExists)
        try SystemCalls.call { unlink(other.string) }
        try expectEnded(keeping: 3)
    }

    @Test(arguments: [(500_000, 0), (1_500_000, 1), (2_500_000, 2)])
    func damageEndsTheTransfer(_ position: Int, _ intact: Int) async throws {
        var wire = DocumentFixture.records(DocumentFixture.content(3 << 20, seed: 21))
        wire[position] ^= 1
        let writer = try await fixture.writer(3 << 20)
        #expect(await DocumentFixture.code { try await writer.write(wire) } == .checksumMismatch)
        try expectEnded(keeping: intact)
        #expect(await DocumentFixture.code { try await writer.write(wire) } == .checksumMismatch)
        #expect(await DocumentFixture.code { _ = try await writer.commit() } == .checksumMismatch)
    }

    @Test(arguments: [1, 2]) func tooFewBytesAreNoDocument(_ chunks: Int) async throws {
        let wire = DocumentFixture.records(DocumentFixture.content(chunks << 20, seed: 22))
        for finishes in [false, true] {
            let writer = try await fixture.writer(chunks << 20)
            try await writer.write(Array(wire.dropLast()))
            let code = await DocumentFixture.code {
                if finishes { try await writer.finish() } else { _ = try await writer.commit() }
            }
            #expect(code == .incomplete)
            try expectEnded(keeping: chunks - 1)
            // Of no version: it is of no use to the next.
            for name in fixture.names { unlink(fixture.folder.appending(name).string) }
            for name in fixture.records { unlink(fixture.scratch.filePath.appending("parts").appending(name).string) }
        }
    }

    @Test func tooManyBytesEndTheTransfer() async throws {
        let writer = try await fixture.writer(10)
        let wire = DocumentFixture.records(DocumentFixture.content(10, seed: 23)) + [0]
        #expect(await DocumentFixture.code { try await writer.write(wire) } == .excess)
        try expectEnded(keeping: 1)
    }

    @Test func endWithoutAVerifiedChunkLeavesNothing() async throws {
        let writer = try await fixture.writer(2 << 20)
        try await writer.write([UInt8](repeating: 0, count: 100_000))
        #expect(await writer.end() == 0)
        fixture.expectOnly([])
        #expect(DocumentFixture.openFiles(in: fixture.folder).isEmpty || fixture.names.isEmpty)
        #expect(await DocumentFixture.code { try await writer.write([1]) } == .cancelled)
    }

    @Test func endAfterAVerifiedChunkKeepsIt() async throws {
        let wire = DocumentFixture.records(DocumentFixture.content(2 << 20, seed: 25))
        let writer = try await fixture.writer(2 << 20)
        try await writer.write(Array(wire.prefix(DocumentFixture.recordSize + 1000)))
        #expect(await writer.end() == 1 << 20)
        try expectEnded(keeping: 1)
        // That is so still.
        #expect(await writer.end() == 1 << 20)
        let isClosed = await eventually { DocumentFixture.openFiles(in: fixture.scratch.filePath).isEmpty }
        #expect(isClosed)
    }

    @Test func droppingLeavesNothing() async throws {
        var writer: DocumentWriter? = try await fixture.writer(2 << 20)
        try await writer?.write([UInt8](repeating: 0, count: 100_000))
        #expect(fixture.names.count == 1)
        writer = nil
        #expect(await eventually { fixture.names.isEmpty && fixture.records.isEmpty })
        #expect(await eventually { DocumentFixture.openFiles(in: fixture.folder).isEmpty })
    }

    @Test func progressCountsVerifiedBytes() async throws {
        let wire = DocumentFixture.records(DocumentFixture.content(2 << 20, seed: 24))
        let writer = try await fixture.writer(2 << 20)
        let end = DocumentFixture.recordSize
        #expect(try await writer.write(Buffer(copying: wire[..<(end - 1)])).verifiedByteCount == 0)
        #expect(try await writer.write(Buffer(copying: wire[(end - 1)..<end])).verifiedByteCount == 1 << 20)
        await writer.end()
    }

    @Test func sizesThatNoFileHasAreRefused() async throws {
        for size in [UInt64.max, UInt64(Int64.max) + 1, UInt64(Int64.max)] {
            let code = await DocumentFixture.code {
                _ = try await fixture.writer(try DocumentFixture.tree(size))
            }
            #expect(code == .tooLarge || code == .destinationFull)
            fixture.expectOnly([])
        }
    }

    @Test func concurrentWritersAreBounded() async throws {
        var writers: [DocumentWriter] = []
        // The check of a destination takes one record more for a moment.
        let limit = PartFileLedger.recordLimit - 1
        for number in 0..<limit {
            writers.append(try await fixture.writer(try DocumentFixture.tree(1, called: "document \(number)")))
        }
        #expect(await DocumentFixture.code { _ = try await fixture.writer(1) } == .busy)
        #expect(fixture.names.count == limit)
        await writers.removeLast().end()
        await (try fixture.writer(1)).end()
        for writer in writers { await writer.end() }
        fixture.expectOnly([])
    }
}
