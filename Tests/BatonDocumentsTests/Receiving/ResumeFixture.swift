// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import BatonTestSupport
import Glibc
import SystemPackage
import Testing

@testable import BatonDocuments

/// A document of eight chunks that is received in several attempts.
struct ResumeFixture {
    static let chunkCount = 8
    static let version: UInt64 = 77

    let writers: WriterFixture
    let content: [UInt8]
    let tree: DocumentTree

    var scratch: ScratchFolder { writers.scratch }
    var folder: FilePath { writers.folder }
    var document: FilePath { writers.document }
    var names: [String] { writers.names }

    init(seed: UInt64) throws {
        writers = try WriterFixture()
        content = DocumentFixture.content((Self.chunkCount - 1) << 20 + 4321, seed: seed)
        tree = try DocumentFixture.tree(UInt64(content.count), version: Self.version)
    }

    /// The ledger as the next start sees it.
    func nextStart() throws -> PartFileLedger {
        try PartFileLedger(stateFolder: scratch.filePath.appending("parts"))
    }

    /// Where the one part is that stands in the destination.
    func part() throws -> FilePath {
        folder.appending(try #require(names.first { $0.hasSuffix(PartFileName.suffix) }))
    }

    /// Where the one journal is.
    func journal() throws -> FilePath {
        let name = try #require(writers.records.first { $0.hasSuffix(PartFileRecord.journalSuffix) })
        return scratch.filePath.appending("parts").appending(name)
    }

    /// What the journal says.
    func journalContent() throws -> TransferJournal.Content {
        try #require(try TransferJournal.content(at: try journal()))
    }

    /// The records of these chunks.
    static func records(_ chunks: [Range<UInt64>], of content: [UInt8]) -> [UInt8] {
        chunks.joined().flatMap { chunk in
            let start = Int(chunk) << 20
            return DocumentFixture.record(Array(content[start..<min(start + 1 << 20, content.count)]))
        }
    }

    /// Another process receives some bytes of the records, and is killed.
    func killAfter(_ byteCount: Int, seed: UInt64) async {
        await #expect(processExitsWith: .signal(SIGKILL)) {
            [path = scratch.path as String, count = content.count as Int, byteCount, seed] in
            let scratch = FilePath(path)
            let writer = try await DocumentWriter.begun(
                try DocumentFixture.tree(UInt64(count), version: ResumeFixture.version),
                in: scratch.appending("destination"),
                ledger: try PartFileLedger(stateFolder: scratch.appending("parts")))
            let missing = try await writer.missing()
            let content = DocumentFixture.content(count, seed: seed)
            try await writer.write(Array(ResumeFixture.records(missing, of: content).prefix(byteCount)))
            kill(getpid(), SIGKILL)
        }
    }

    /// A writer ends after these chunks.
    func receive(_ chunks: [Range<UInt64>], of tree: DocumentTree? = nil, _ content: [UInt8]? = nil) async throws {
        let writer = try await open(tree)
        try await writer.begin(chunks)
        try await writer.write(Self.records(chunks, of: content ?? self.content))
        #expect(await writer.end() > 0)
    }

    /// The next attempt.
    func open(
        _ tree: DocumentTree? = nil, ledger: PartFileLedger? = nil, identity: DocumentIdentity = .unknown,
        naming: DocumentNaming = .own
    ) async throws -> DocumentWriter {
        try await DocumentWriter.create(
            tree ?? self.tree, from: DocumentFixture.origin, in: try DestinationFolder(folder),
            ledger: try ledger ?? nextStart(), identity: identity, naming: naming)
    }

    /// Does something while a folder stands in the destination's place, as the root of a disk does that is mounted
    /// there.
    func mounted(_ disk: FilePath, _ body: () async throws -> Void) async throws {
        let mounted = try MountedFolder(disk, at: folder)
        try await body()
        #expect(mounted.path == folder)
    }

    /// Nothing of what came is here at the moment, and neither an attempt nor a start after a week forgets it.
    func expectNothingHere() async throws {
        let other = try await open()
        #expect(try await other.missing() == [0..<8])
        #expect(await other.end() == 0)
        try DocumentFixture.backdate(try journal(), by: 8 * 24 * 3600)
        #expect(try nextStart().removeLeftovers() == 0)
    }

    /// Five chunks are here, and the rest makes it whole.
    func expectRest() async throws {
        let writer = try await open()
        #expect(try await writer.missing() == [5..<8])
        try await complete(writer)
        writers.expectOnly(["report.pdf"])
    }

    /// Receives what is missing, and looks at what came of it.
    func complete(
        _ writer: DocumentWriter, _ content: [UInt8]? = nil, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let missing = try await writer.missing()
        try await writer.begin(missing)
        try await writer.write(Self.records(missing, of: content ?? self.content))
        try await writer.finish()
        #expect(try await writer.commit() == document, sourceLocation: sourceLocation)
        #expect(try DocumentFixture.read(document) == content ?? self.content, sourceLocation: sourceLocation)
    }

    /// Writes the journal again, with a checkpoint after so many of its chunks.
    func rewriteJournal(checkpointAfter count: Int) throws {
        let (path, content) = (try journal(), try journalContent())
        let journal = try TransferJournal.create(at: path, content.header)
        for (index, chunk) in content.all.ranges.joined().enumerated() {
            if index == count { try journal.checkpoint() }
            journal.append(chunk, checksum(of: chunk))
        }
        try journal.flush()
    }

    func checksum(of chunk: UInt64) -> ChunkChecksum {
        let start = Int(chunk) << 20
        return content[start..<min(start + 1 << 20, content.count)].withUnsafeBytes { ChunkChecksum(of: $0) }
    }

    /// Changes a byte of a chunk in the part: one that is read and compared shows it, one that is not does not.
    func damage(_ chunk: UInt64) throws {
        let place = chunk << 20 + 1000
        try DocumentFixture.write([~content[Int(place)]], to: try part(), at: place)
    }

    /// Changes it back.
    func repair(_ chunk: UInt64) throws {
        let place = chunk << 20 + 1000
        try DocumentFixture.write([content[Int(place)]], to: try part(), at: place)
    }
}
