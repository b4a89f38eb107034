// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Glibc
import SystemPackage
import Testing

@testable import BatonDocuments

/// Which files of a folder are built upon where there are more of them than there can be signatures.
@Suite("Files that are built upon", .timeLimit(.minutes(5)))
struct BasesTests {
    private struct Folder {
        let scratch: ScratchFolder
        let path: FilePath
        private(set) var builder: DocumentTree.Builder

        init() throws {
            scratch = try ScratchFolder()
            path = try scratch.makeFolder("older")
            builder = try DocumentTree.Builder(DocumentLabel(Array("folder".utf8)))
            try builder.append(DocumentEntry(path: .root, kind: .folder))
        }

        mutating func add(_ name: String, _ size: UInt64) throws {
            try builder.append(
                DocumentEntry(path: EntryPath(Array(name.utf8)), kind: .file(.init(size: size))))
        }
    }

    @Test("A large file is built upon, however many small ones come before it in a folder")
    func crowd() throws {
        let limit = 100
        var folder = try Folder()
        for number in 0..<limit {
            try folder.scratch.makeFile("older/a \(1000 + number)", [1])
            try folder.add("a \(1000 + number)", 1)
        }
        let content = DocumentFixture.content(1 << 20, seed: 64)
        try folder.scratch.makeFile("older/z", content)
        try folder.add("z", UInt64(content.count))
        let bases = Bases(of: try folder.builder.finish(), limit: limit)
        bases.add(try OlderCopy(opening: folder.path)) { _ in true }
        #expect(bases.sizes == [UInt64(content.count)] + [UInt64](repeating: 1, count: limit - 1))
    }

    /// All that is told, by basis.
    private static func told(_ next: () async throws -> SignatureBatch?) async throws -> [Int: [UInt8]] {
        var told: [Int: [UInt8]] = [:]
        while let batch = try await next() {
            #expect(batch.bytes.count <= 56 << 10 && batch.bytes.count.isMultiple(of: PieceSignature.byteCount))
            told[batch.basis, default: []] += batch.bytes
        }
        return told
    }

    @Test("Each request of a transfer is told all of a copy")
    func everyRequest() async throws {
        let fixture = try ResumeFixture(seed: 54)
        let copy = try fixture.scratch.makeFile("older copy", fixture.content)
        let expected = try DeltaFixture.signatures(of: fixture.content)
        let writer = try await DocumentWriter.create(
            fixture.tree, from: DocumentFixture.origin, in: try DestinationFolder(fixture.folder),
            ledger: try fixture.nextStart(), against: [copy])
        for _ in 0..<3 {
            #expect(try await Self.told { try await writer.nextSignatures() } == [0: expected])
            #expect(writer.pieceSize == .smallest)
        }
        await writer.end()
    }

    @Test("While a copy is read slowly the other device hears of it, and in the end of all of it")
    func slowly() async throws {
        let scratch = try ScratchFolder()
        let path = try scratch.makeFile("copy", DocumentFixture.content(9 << 20, seed: 58))
        let tree = try DocumentFixture.tree(9 << 20)
        func told(_ bases: Bases) async throws -> (bytes: [UInt8]?, batches: Int) {
            bases.add(try OlderCopy(opening: path)) { _ in true }
            var batches = 0
            let told = try await Self.told {
                defer { batches += 1 }
                return bases.nextSignatures()
            }
            return (told[0], batches - 1)
        }
        let atOnce = try await told(Bases(of: tree, longestSilence: .seconds(3600)))
        // Each step takes longer than that.
        let slowly = try await told(Bases(of: tree, longestSilence: .zero))
        #expect(slowly.bytes == atOnce.bytes && atOnce.batches == 1)
        #expect(slowly.batches >= 9)
    }

    @Test("Of a part every file is built upon, whatever its path was, and what is large comes first")
    func moved() async throws {
        let sizes: [UInt64] = [3, 50, 700, 9000, 11_000]
        let writers = try WriterFixture()
        var older = try Folder()
        let others = sizes.shuffled()
        for (number, size) in others.enumerated() { try older.add("\(number)", size) }
        let writer = try await DocumentWriter.begun(
            try older.builder.finish(), in: writers.folder, ledger: writers.ledger)
        for size in others { try await writer.write(DocumentFixture.record([UInt8](repeating: 1, count: Int(size)))) }
        #expect(await writer.end() > 0)
        var folder = try Folder()
        try folder.add("needed", 9000)
        let bases = Bases(of: try folder.builder.finish())
        let part = try #require(try writers.ledger.unfinished().first)
        bases.add(try #require(OlderCopy(part, in: try DestinationFolder(writers.folder)))) { _ in true }
        #expect(bases.sizes == sizes.reversed())
    }
}
