// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import CLinux
import Glibc
import SystemPackage
import Testing

@testable import BatonDocuments

@Suite("Parts of another version")
struct OtherVersionTests {
    let fixture: ResumeFixture

    init() throws {
        fixture = try ResumeFixture(seed: 30)
    }

    private func newTree() throws -> DocumentTree {
        try DocumentFixture.tree(UInt64(fixture.content.count), version: ResumeFixture.version + 1)
    }

    /// A record that copies a chunk from what the other device was told of, by the definition.
    static func copying(_ chunk: UInt64, of content: [UInt8], from offset: UInt64, basis: Int = 0) -> [UInt8] {
        let start = Int(chunk) << 20
        let bytes = Array(content[start..<min(start + 1 << 20, content.count)])
        let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 1000, alignment: 1)
        defer { room.deallocate() }
        return bytes.withUnsafeBytes { chunk in
            var writer = DeltaWriter(chunk, into: room)
            writer.append(SignatureIndex.Match(basis: basis, offset: offset), length: chunk.count)
            let count = writer.finish() ?? 0
            ContentDigest(of: chunk).write(
                to: UnsafeMutableRawBufferPointer(rebasing: room[count..<count + ContentDigest.byteCount]))
            let payload = Array(UnsafeRawBufferPointer(rebasing: room[..<(count + ContentDigest.byteCount)]))
            let length = withUnsafeBytes(of: UInt32(payload.count).bigEndian) { Array($0) }
            return DocumentFixture.record(bytes, encoding: 3, saying: length + payload)
        }
    }

    @Test("What has come of it is what the new version is built upon, and it goes with the commit")
    func staleIsABasis() async throws {
        try await fixture.receive([0..<6])
        let stale = try fixture.part()
        var content = fixture.content
        content[3 << 20 + 5] ^= 0xFF
        let writer = try await fixture.open(try newTree())
        #expect(try await writer.missing() == [0..<8])
        #expect(writer.start == .unchanged, "nobody says which document it is")
        // It tells of all that has come, and of nothing that has not.
        let size = try #require(writer.pieceSize)
        var index = SignatureIndex(size: size)
        while let batch = try await writer.nextSignatures() {
            #expect(batch.basis == 0 && batch.bytes.count <= 56 << 10)
            try index.append(batch.bytes, basis: batch.basis)
        }
        #expect(index.signatureCount > 0)
        #expect(try DocumentFixture.size(at: stale) == fixture.content.count)
        #expect(fixture.names.count == 2)
        try await writer.begin([0..<8])
        for chunk in 0..<UInt64(8) {
            let isSame = chunk < 6 && chunk != 3
            try await writer.write(
                isSame
                    ? Self.copying(chunk, of: content, from: chunk << 20)
                    : ResumeFixture.records([chunk..<chunk + 1], of: content))
        }
        #expect(try await writer.commit() == fixture.document)
        #expect(try DocumentFixture.read(fixture.document) == content)
        fixture.writers.expectOnly(["report.pdf"])
    }

    @Test("What is copied and is not what the sender has seen is noticed")
    func otherBytesInTheBasis() async throws {
        try await fixture.receive([0..<6])
        try fixture.damage(2)
        let writer = try await fixture.open(try newTree())
        try await writer.begin([0..<8])
        try await writer.write(Self.copying(0, of: fixture.content, from: 0))
        let record = Self.copying(2, of: fixture.content, from: 2 << 20)
        // Chunk 1 comes first.
        try await writer.write(Self.copying(1, of: fixture.content, from: 1 << 20))
        #expect(await !writer.hasMisbuilt)
        #expect(await DocumentFixture.code { try await writer.write(record) } == .basisChanged)
        #expect(await writer.hasMisbuilt)
    }

    @Test("However often it changes, parts of two other versions are kept")
    func versions() async throws {
        for version in 0..<6 {
            let tree = try DocumentFixture.tree(
                UInt64(fixture.content.count), version: ResumeFixture.version + UInt64(version))
            let writer = try await fixture.open(tree)
            try await writer.begin([0..<2])
            try await writer.write(ResumeFixture.records([0..<2], of: fixture.content))
            await writer.end()
            #expect(fixture.names.count == min(version + 1, 1 + PartChoice.olderLimit))
        }
    }

    @Test("The part in which most is stays, however often the document changes afterwards")
    func fullest() async throws {
        try await fixture.receive([0..<6])
        let fullest = try fixture.part()
        for version in 1..<6 {
            let tree = try DocumentFixture.tree(
                UInt64(fixture.content.count), version: ResumeFixture.version + UInt64(version))
            try await fixture.receive([0..<1], of: tree)
            #expect(access(fullest.string, F_OK) == 0)
            #expect(fixture.names.count == min(version + 1, 1 + PartChoice.olderLimit))
        }
    }

    @Test(
        "Nor does it go where its journal cannot be written to at the moment",
        .enabled(if: DocumentFixture.isRoot, DocumentFixture.needsRoot))
    func fullestThatIsReadOnly() async throws {
        try await fixture.receive([0..<6])
        let (fullest, journal) = (try fixture.part(), try fixture.journal())
        for version in 1..<3 {
            let tree = try DocumentFixture.tree(
                UInt64(fixture.content.count), version: ResumeFixture.version + UInt64(version))
            try await fixture.receive([0..<1], of: tree)
        }
        try DocumentFixture.backdate(journal)
        let tree = try DocumentFixture.tree(UInt64(fixture.content.count), version: ResumeFixture.version + 3)
        do {
            let mounted = try MountedFolder(readOnly: journal, at: journal)
            // It is only read, to be built upon.
            let writer = try await fixture.open(tree)
            await writer.end()
            #expect(access(fullest.string, F_OK) == 0)
            withExtendedLifetime(mounted.path) {}
        }
        try await fixture.receive([0..<1], of: tree)
        #expect(access(fullest.string, F_OK) == 0)
        #expect(fixture.names.count == 1 + PartChoice.olderLimit)
    }

    @Test("What may be there after a power cut is built upon as well")
    func unsure() async throws {
        try await fixture.receive([0..<6])
        let writer = try await fixture.open(try newTree())
        var count = 0
        let size = try #require(writer.pieceSize)
        var index = SignatureIndex(size: size)
        while let batch = try await writer.nextSignatures() {
            count += batch.bytes.count
            try index.append(batch.bytes, basis: batch.basis)
        }
        #expect(count > 0)
        try await writer.begin([0..<8])
        for chunk in 0..<UInt64(6) {
            try await writer.write(Self.copying(chunk, of: fixture.content, from: chunk << 20))
        }
        #expect(await writer.end() == 6 << 20)
    }

    @Test(
        "Copies from where nothing is are refused", arguments: [(0, 6 << 20), (1, 0), (0, (5 << 20) + 1), (0, 1 << 40)])
    func copiesOfNothing(_ basis: Int, _ offset: UInt64) async throws {
        try await fixture.receive([0..<6])
        let writer = try await fixture.open(try newTree())
        try await writer.begin([0..<8])
        let record = Self.copying(0, of: fixture.content, from: offset, basis: basis)
        #expect(await DocumentFixture.code { try await writer.write(record) } == .badRecord)
    }

    @Test("Until the new one is committed the old one stays, also when the transfer is interrupted")
    func staleStays() async throws {
        try await fixture.receive([0..<6])
        let stale = try fixture.part()
        for chunks in [[0..<2], [2..<3]] as [[Range<UInt64>]] {
            let writer = try await fixture.open(try newTree())
            try await writer.begin(chunks)
            for chunk in chunks.joined() {
                try await writer.write(Self.copying(chunk, of: fixture.content, from: chunk << 20))
            }
            #expect(await writer.end() > 0)
            #expect(access(stale.string, F_OK) == 0)
            #expect(fixture.names.count == 2)
        }
        let writer = try await fixture.open(try newTree())
        #expect(try await writer.missing() == [3..<8])
        try await fixture.complete(writer)
        fixture.writers.expectOnly(["report.pdf"])
    }

    @Test("A part stays what it is while another document of its name is received, and is gone on with")
    func anotherOfTheSameName() async throws {
        try await fixture.receive([0..<6])
        try await fixture.receive([0..<1], of: try newTree(), fixture.content)
        let again = try await fixture.open()
        #expect(try await again.missing() == [6..<8])
        try await fixture.complete(again)
    }

    private func identity(_ file: UInt8, _ place: UInt8) -> DocumentIdentity {
        DocumentIdentity(file: [UInt8](repeating: file, count: 16), place: [UInt8](repeating: place, count: 16))
    }

    private func receive(
        _ chunks: Range<UInt64>, _ identity: DocumentIdentity, of tree: DocumentTree? = nil
    ) async throws {
        let writer = try await fixture.open(tree, identity: identity)
        try await writer.begin([chunks])
        try await writer.write(ResumeFixture.records([chunks], of: fixture.content))
        #expect(await writer.end() > 0)
    }

    @Test("A part outlives the commit of another document of its name, and is gone on with")
    func anotherDocument() async throws {
        try await receive(0..<6, identity(1, 2))
        let other = try await fixture.open(try newTree(), identity: identity(3, 4))
        #expect(other.pieceSize == nil)
        #expect(other.start == .unchanged)
        try await fixture.complete(other)
        #expect(fixture.names.count == 2)
        // The user has put it elsewhere.
        try SystemCalls.call { unlink(fixture.document.string) }
        let again = try await fixture.open(identity: identity(1, 2))
        #expect(try await again.missing() == [6..<8])
        #expect(again.start == .unchanged)
        try await fixture.complete(again)
        fixture.writers.expectOnly(["report.pdf"])
    }

    @Test(
        "A document whose file was replaced or moved, or of an origin that does not say, is the same one",
        arguments: [(3, 2), (1, 4), (0, 0)] as [(UInt8, UInt8)])
    func sameDocument(_ file: UInt8, _ place: UInt8) async throws {
        try await receive(0..<6, identity(1, 2))
        let next = try await fixture.open(
            try newTree(), identity: file == 0 ? .unknown : identity(file, place))
        #expect(next.pieceSize != nil)
        #expect(next.start == (file == 0 ? .unchanged : .changed(keepsOlder: true)))
        try await fixture.complete(next)
        fixture.writers.expectOnly(["report.pdf"])
    }

    @Test("Whether a file has holes is no part of its version: file systems tell it late", arguments: [false, true])
    func holes(_ hadHoles: Bool) async throws {
        func tree(_ isSparse: Bool) throws -> DocumentTree {
            try DocumentFixture.tree(
                UInt64(fixture.content.count), version: ResumeFixture.version, isSparse: isSparse)
        }
        try await receive(0..<6, identity(1, 2), of: try tree(hadHoles))
        let next = try await fixture.open(try tree(!hadHoles), identity: identity(1, 2))
        #expect(try await next.missing() == [6..<8])
        #expect(next.start == .unchanged)
        try await fixture.complete(next)
        fixture.writers.expectOnly(["report.pdf"])
    }

    @Test("What an origin says of a document tells it from others of its name, and not from itself with other content")
    func identities() throws {
        for name in ["one", "other"] { _ = try fixture.scratch.makeFolder(name) }
        let path = try fixture.scratch.makeFile("one/report.pdf", [1])
        let other = try fixture.scratch.makeFile("other/report.pdf", [1])
        func identity(_ path: FilePath) throws -> DocumentIdentity { try DocumentScan.scan(path).identity }
        let first = try identity(path)
        #expect(try DocumentSource(DocumentScan.scanFile(path)).document == first)
        #expect(try identity(other).isOther(than: first))
        try DocumentFixture.write([1, 2, 3], to: path)
        #expect(try identity(path) == first)
        // As editors save.
        let saved = try fixture.scratch.makeFile("one/report.pdf~", [4])
        try SystemCalls.call { rename(saved.string, path.string) }
        #expect(try identity(path) != first && !(try identity(path)).isOther(than: first))
        let folder = try identity(fixture.scratch.filePath.appending("one"))
        #expect(folder.isOther(than: try identity(fixture.scratch.filePath.appending("other"))))
        #expect(try identity(fixture.scratch.filePath.appending("other/../one/.")) == folder)
    }

    @Test("A copy that the user names is built upon, and stays as it is")
    func against() async throws {
        let copy = try fixture.scratch.makeFile("older copy", fixture.content)
        let writer = try await DocumentWriter.create(
            try newTree(), from: DocumentFixture.origin, in: try DestinationFolder(fixture.folder),
            ledger: fixture.writers.ledger, against: [copy])
        #expect(writer.pieceSize != nil)
        try await writer.begin([0..<8])
        for chunk in 0..<UInt64(8) {
            try await writer.write(Self.copying(chunk, of: fixture.content, from: chunk << 20))
        }
        _ = try await writer.commit()
        #expect(try DocumentFixture.read(fixture.document) == fixture.content)
        #expect(try DocumentFixture.read(copy) == fixture.content)
        fixture.writers.expectOnly(["report.pdf"])
    }

    @Test("A copy that is cut while it is built upon is noticed")
    func copyThatIsCut() async throws {
        let copy = try fixture.scratch.makeFile("older copy", fixture.content)
        let writer = try await DocumentWriter.create(
            try newTree(), from: DocumentFixture.origin, in: try DestinationFolder(fixture.folder),
            ledger: fixture.writers.ledger, against: [copy])
        try await writer.begin([0..<8])
        try SystemCalls.call { truncate(copy.string, 100) }
        let record = Self.copying(0, of: fixture.content, from: 0)
        #expect(await DocumentFixture.code { try await writer.write(record) } == .basisChanged)
        fixture.writers.expectOnly([])
    }
}
