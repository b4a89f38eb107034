// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import BatonTestSupport
import Glibc
import SystemPackage
import Testing

@testable import BatonDocuments

@Suite("Going on with a folder")
struct FolderResumeTests {
    let writers: WriterFixture
    /// The files and their sizes. Each file's version is the seed of its content.
    static let sizes = [("a", 3 << 20), ("b", 100), ("in/c", 2 << 20), ("in/d", 0), ("in/e", 5000)]

    init() throws {
        writers = try WriterFixture()
    }

    private func tree(_ versions: [UInt64]) throws -> DocumentTree { try Self.tree(versions) }

    private static func tree(_ versions: [UInt64]) throws -> DocumentTree {
        var builder = DocumentTree.Builder(try DocumentLabel(Array("folder".utf8)))
        try builder.append(DocumentEntry(path: .root, kind: .folder))
        for ((name, size), version) in zip(sizes, versions) {
            if name == "in/c" {
                try builder.append(DocumentEntry(path: try EntryPath(Array("in".utf8)), kind: .folder))
            }
            let file = DocumentEntry.File(size: UInt64(size), version: FileVersion(high: 0, low: version))
            try builder.append(DocumentEntry(path: try EntryPath(Array(name.utf8)), kind: .file(file)))
        }
        return try builder.finish()
    }

    private func content(of file: Int, _ versions: [UInt64]) -> [UInt8] {
        DocumentFixture.content(Self.sizes[file].1, seed: versions[file])
    }

    private func records(_ chunks: [Range<UInt64>], _ versions: [UInt64]) throws -> [UInt8] {
        let layout = try tree(versions).layout
        return chunks.joined().flatMap { chunk in
            let place = layout.place(of: chunk)
            let content = content(of: place.file, versions)
            return DocumentFixture.record(Array(content[Int(place.offset)..<Int(place.offset) + place.size]))
        }
    }

    /// The next attempt, after another start of the node.
    private func open(_ versions: [UInt64]) async throws -> DocumentWriter {
        try await DocumentWriter.begun(
            try tree(versions), in: try DestinationFolder(writers.folder),
            ledger: try PartFileLedger(stateFolder: writers.scratch.filePath.appending("parts")))
    }

    /// An attempt that ends after some chunks of what was missing.
    private func receive(_ count: Int, _ versions: [UInt64]) async throws {
        let writer = try await open(versions)
        let chunks = try await writer.missing().joined().prefix(count).map { $0..<$0 + 1 }
        try await writer.write(try records(chunks, versions))
        #expect(await writer.end() > 0)
    }

    /// Writes the journal again, with a checkpoint after a chunk.
    private func rewriteJournal(_ versions: [UInt64], checkpointAfter last: UInt64?) throws {
        let name = try #require(writers.records.first { $0.hasSuffix(PartFileRecord.journalSuffix) })
        let path = writers.scratch.filePath.appending("parts").appending(name)
        let said = try #require(try TransferJournal.content(at: path))
        let journal = try TransferJournal.create(at: path, said.header)
        for chunk in said.all.ranges.joined() {
            let place = said.header.tree.layout.place(of: chunk)
            let content = content(of: place.file, versions)[Int(place.offset)..<Int(place.offset) + place.size]
            journal.append(chunk, content.withUnsafeBytes { ChunkChecksum(of: $0) })
            if chunk == last { try journal.checkpoint() }
        }
        try journal.flush()
    }

    private func complete(_ writer: DocumentWriter, _ versions: [UInt64]) async throws {
        try await writer.write(try records(try await writer.missing(), versions))
        try await writer.finish()
        let folder = try await writer.commit()
        for (file, (name, _)) in Self.sizes.enumerated() {
            #expect(try DocumentFixture.read(folder.appending(name)) == content(of: file, versions), "\(name)")
        }
        writers.expectOnly(["folder"])
    }

    private func part() throws -> FilePath { writers.folder.appending(try #require(writers.names.first)) }

    @Test("Only what is missing is asked for, however often it is interrupted")
    func interrupted() async throws {
        let versions: [UInt64] = [1, 2, 3, 4, 5]
        for round in 0..<6 {
            let writer = try await open(versions)
            #expect(try await writer.missing() == [UInt64(round)..<7])
            await writer.end()
            try await receive(1, versions)
        }
        let writer = try await open(versions)
        #expect(try await writer.missing() == [6..<7])
        try await complete(writer, versions)
    }

    @Test(
        "Of another version all is asked for, and what came of the other one is built upon, also after an interruption")
    func otherVersion() async throws {
        try await receive(6, [1, 2, 3, 4, 5])
        // `a` and `in/e` are others now.
        let versions: [UInt64] = [11, 2, 3, 4, 15]
        let first = try await open(versions)
        #expect(try await first.missing() == [0..<7])
        #expect(first.pieceSize != nil)
        await first.end()
        try await receive(2, versions)
        let second = try await open(versions)
        #expect(try await second.missing() == [2..<7])
        #expect(second.pieceSize != nil)
        try await complete(second, versions)
    }

    @Test("A version that comes back is gone on with")
    func versionThatComesBack() async throws {
        let (before, between): ([UInt64], [UInt64]) = ([1, 2, 3, 4, 5], [11, 2, 3, 4, 15])
        try await receive(6, before)
        try await receive(2, between)
        let writer = try await open(before)
        #expect(try await writer.missing() == [6..<7])
        await writer.end()
        let other = try await open(between)
        #expect(try await other.missing() == [2..<7])
        await other.end()
        try await complete(try await open(before), before)
    }

    @Test(
        "Another version arrives whole, whatever a power cut has left of the one before",
        arguments: [false, true])
    func otherVersionAfterAPowerCut(isCut: Bool) async throws {
        let before: [UInt64] = [1, 2, 3, 4, 5]
        try await receive(6, before)
        try rewriteJournal(before, checkpointAfter: isCut ? 4 : nil)
        let file = try part().appending("in/c")
        if isCut {
            // Nobody knows what is left of a file that somebody cut, whatever was on the disk.
            try SystemCalls.call { truncate(file.string, 1000) }
        } else {
            // The second half was not on the disk.
            try DocumentFixture.write([UInt8](repeating: 0, count: 1 << 20), to: file, at: 1 << 20)
        }
        let versions: [UInt64] = [11, 2, 3, 4, 15]
        let writer = try await open(versions)
        #expect(try await writer.missing() == [0..<7])
        try await complete(writer, versions)
    }

    @Test(
        "Where something is mounted on a folder in the part, another part is begun, and what is mounted stays",
        .enabled(if: DocumentFixture.isRoot, DocumentFixture.needsRoot))
    func mounted() async throws {
        let versions: [UInt64] = [1, 2, 3, 4, 5]
        try await receive(6, versions)
        let folder = try part().appending("in")
        do {
            let mounted = try MountedFolder(tmpfsAt: folder, size: 1 << 20)
            try DocumentFixture.write([1], to: folder.appending("kept"))
            let writer = try await open(versions)
            #expect(try await writer.missing() == [0..<7])
            await writer.end()
            #expect(try DocumentFixture.read(mounted.path.appending("kept")) == [1])
        }
        let writer = try await open(versions)
        #expect(try await writer.missing() == [6..<7])
        try await complete(writer, versions)
    }

    @Test("A process that is killed as soon as it goes on with another version loses nothing")
    func killedAtOnce() async throws {
        try await receive(6, [1, 2, 3, 4, 5])
        await #expect(processExitsWith: .signal(SIGKILL)) { [path = writers.scratch.path as String] in
            let scratch = FilePath(path)
            _ = try await DocumentWriter.begun(
                try FolderResumeTests.tree([11, 2, 3, 4, 15]), in: scratch.appending("destination"),
                ledger: try PartFileLedger(stateFolder: scratch.appending("parts")))
            kill(getpid(), SIGKILL)
        }
        let versions: [UInt64] = [11, 2, 3, 4, 15]
        let writer = try await open(versions)
        #expect(try await writer.missing() == [0..<7])
        try await complete(writer, versions)
    }

    @Test(
        "A state folder without room for another journal leaves the older part as it is",
        .enabled(if: DocumentFixture.isRoot, DocumentFixture.needsRoot))
    func fullStateFolder() async throws {
        let state = try MountedFolder(tmpfsAt: writers.scratch.filePath.appending("parts"), size: 64 << 10)
        defer { withExtendedLifetime(state) {} }
        try await receive(6, [1, 2, 3, 4, 5])
        let versions: [UInt64] = [11, 2, 3, 4, 15]
        let filler = state.path.appending("filler")
        for count in [64 << 10, 4 << 10, 1] {
            try? DocumentFixture.write([UInt8](repeating: 1, count: count), to: filler)
        }
        let names = DocumentFixture.names(in: try part())
        if let writer = try? await open(versions) {
            #expect(try await writer.missing() == [0..<7])
            await writer.end()
        }
        #expect(DocumentFixture.names(in: try part()) == names)
        try SystemCalls.call { unlink(filler.string) }
        let writer = try await open(versions)
        #expect(try await writer.missing() == [0..<7])
        try await complete(writer, versions)
    }

    @Test(
        "A file that somebody cut, removed, linked or gave a second name is asked for again, and stays asked for",
        arguments: 0..<4)
    func handsOn(_ attack: Int) async throws {
        let versions: [UInt64] = [1, 2, 3, 4, 5]
        try await receive(6, versions)
        try rewriteJournal(versions, checkpointAfter: 5)
        let file = try part().appending("a")
        let aside = writers.scratch.filePath.appending("aside")
        switch attack {
        case 0: try SystemCalls.call { truncate(file.string, 2 << 20) }
        case 1: try SystemCalls.call { unlink(file.string) }
        case 2: try SystemCalls.call { rename(file.string, aside.string) }
        case _: try SystemCalls.call { link(file.string, aside.string) }
        }
        if attack == 2 { try SystemCalls.call { symlink(aside.string, file.string) } }
        let first = try await open(versions)
        #expect(try await first.missing() == [0..<7])
        await first.end()
        // With the last of its chunks the file has its size again, and two holes that no journal may vouch for.
        let second = try await DocumentWriter.begun(
            try tree(versions), in: writers.folder,
            ledger: try PartFileLedger(stateFolder: writers.scratch.filePath.appending("parts")))
        try await second.begin([2..<3])
        try await second.write(try records([2..<3], versions))
        await second.end()
        let third = try await open(versions)
        #expect(try await third.missing() == [0..<2, 3..<7])
        try await complete(third, versions)
        if attack >= 2 { #expect(try DocumentFixture.read(aside) == content(of: 0, versions)) }
    }
}
