import BatonProtocol
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
        ledger = try PartFileLedger(stateFolder: scratch.path.appending("parts"))
    }

    var document: FilePath { folder.appending("report.pdf") }
    /// What stands in the destination folder.
    var names: [String] { DocumentFixture.names(in: folder) }
    var records: [String] { DocumentFixture.names(in: scratch.path.appending("parts")) }

    func writer(_ size: Int, permissions: UInt16 = 0o644, in other: FilePath? = nil) async throws -> DocumentWriter {
        try await DocumentWriter.create(
            try DocumentLabel(Array("report.pdf".utf8)), documentSize: UInt64(size), permissions: permissions,
            in: try DestinationFolder(other ?? folder), ledger: ledger)
    }

    /// That nothing but `expected` is left: no part file, no record, no open descriptor.
    func expectOnly(_ expected: [String], sourceLocation: SourceLocation = #_sourceLocation) {
        #expect(names == expected, sourceLocation: sourceLocation)
        #expect(records.isEmpty, sourceLocation: sourceLocation)
    }
}

extension DocumentWriter {
    /// Writes these bytes in buffers of `size`.
    func write(_ bytes: [UInt8], by size: Int = 300_000) throws {
        for start in stride(from: 0, to: bytes.count, by: size) {
            try write(Buffer(copying: bytes[start..<min(start + size, bytes.count)]))
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
        #expect(fixture.names.count == 1)
        #expect(fixture.names.first?.hasPrefix(".report.pdf.") == true)
        #expect(fixture.records.count == 1)
        try await writer.write(DocumentFixture.records(content))
        #expect(await writer.verifiedByteCount == UInt64(size))
        #expect(try await writer.commit() == fixture.document)
        #expect(try DocumentFixture.read(fixture.document) == content)
        fixture.expectOnly(["report.pdf"])
        await writer.abort()
        fixture.expectOnly(["report.pdf"])
        #expect(await DocumentFixture.code { _ = try await writer.commit() } == .cancelled)
        #expect(await DocumentFixture.code { try await writer.write([0]) } == .cancelled)
    }

    @Test func partFileIsPrivateAndReserved() async throws {
        let writer = try await fixture.writer(8 << 20)
        let status = try SystemCalls.status(at: fixture.folder.appending(try #require(fixture.names.first)))
        #expect(status.st_mode & 0o7777 == 0o600)
        #expect(status.st_size == 0)
        #expect(status.st_blocks * 512 >= 8 << 20)
        await writer.abort()
    }

    @Test(arguments: [
        (0o644, 0o644), (0o755, 0o755), (0o600, 0o600), (0o6755, 0o755), (0o1777, 0o777), (0o444, 0o444), (0, 0o400),
    ])
    func permissionsFollowTheOriginAndTheUmask(_ given: UInt16, _ expected: UInt32) async throws {
        let writer = try await fixture.writer(0, permissions: given)
        let path = try await writer.commit()
        let mode = try SystemCalls.status(at: path).st_mode
        #expect(mode & 0o7777 == expected & ~ProcessUmask.current)
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

    @Test func damageDropsTheDocument() async throws {
        var wire = DocumentFixture.records(DocumentFixture.content(3 << 20, seed: 21))
        wire[2_500_000] ^= 1
        let writer = try await fixture.writer(3 << 20)
        #expect(await DocumentFixture.code { try await writer.write(wire) } == .checksumMismatch)
        fixture.expectOnly([])
        #expect(await DocumentFixture.code { try await writer.write(wire) } == .checksumMismatch)
        #expect(await DocumentFixture.code { _ = try await writer.commit() } == .checksumMismatch)
    }

    @Test func tooFewBytesDropTheDocument() async throws {
        let wire = DocumentFixture.records(DocumentFixture.content(2 << 20, seed: 22))
        let writer = try await fixture.writer(2 << 20)
        try await writer.write(Array(wire.dropLast()))
        #expect(await DocumentFixture.code { _ = try await writer.commit() } == .incomplete)
        fixture.expectOnly([])
    }

    @Test func tooManyBytesDropTheDocument() async throws {
        let writer = try await fixture.writer(10)
        let wire = DocumentFixture.records(DocumentFixture.content(10, seed: 23)) + [0]
        #expect(await DocumentFixture.code { try await writer.write(wire) } == .excess)
        fixture.expectOnly([])
    }

    @Test func abortLeavesNothing() async throws {
        let writer = try await fixture.writer(2 << 20)
        try await writer.write([UInt8](repeating: 1, count: 100_000))
        await writer.abort()
        fixture.expectOnly([])
        #expect(DocumentFixture.openFiles(in: fixture.folder).isEmpty || fixture.names.isEmpty)
        #expect(await DocumentFixture.code { try await writer.write([1]) } == .cancelled)
    }

    @Test func droppingLeavesNothing() async throws {
        var writer: DocumentWriter? = try await fixture.writer(2 << 20)
        try await writer?.write([UInt8](repeating: 1, count: 100_000))
        #expect(fixture.names.count == 1)
        writer = nil
        #expect(await DocumentFixture.eventually { fixture.names.isEmpty && fixture.records.isEmpty })
        #expect(await DocumentFixture.eventually { DocumentFixture.openFiles(in: fixture.folder).isEmpty })
    }

    @Test func progressCountsVerifiedBytes() async throws {
        let wire = DocumentFixture.records(DocumentFixture.content(2 << 20, seed: 24))
        let writer = try await fixture.writer(2 << 20)
        #expect(try await writer.write(Buffer(copying: wire[..<(1 << 20)])) == 0)
        #expect(try await writer.write(Buffer(copying: wire[(1 << 20)..<(1 << 20) + 16])) == 1 << 20)
        await writer.abort()
    }

    @Test func sizesThatNoFileHasAreRefused() async throws {
        let label = try DocumentLabel(Array("report.pdf".utf8))
        for size in [UInt64.max, UInt64(Int64.max) + 1, UInt64(Int64.max)] {
            let code = await DocumentFixture.code {
                _ = try await DocumentWriter.create(
                    label, documentSize: size, in: try DestinationFolder(fixture.folder), ledger: fixture.ledger)
            }
            #expect(code == .tooLarge || code == .destinationFull)
            fixture.expectOnly([])
        }
    }

    @Test func concurrentWritersAreBounded() async throws {
        var writers: [DocumentWriter] = []
        for number in 0..<PartFileLedger.recordLimit {
            let label = try DocumentLabel(Array("document \(number)".utf8))
            writers.append(
                try await DocumentWriter.create(
                    label, documentSize: 1, in: try DestinationFolder(fixture.folder), ledger: fixture.ledger))
        }
        #expect(await DocumentFixture.code { _ = try await fixture.writer(1) } == .busy)
        #expect(fixture.names.count == PartFileLedger.recordLimit)
        await writers.removeLast().abort()
        await (try fixture.writer(1)).abort()
        for writer in writers { await writer.abort() }
        fixture.expectOnly([])
    }
}
