// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import BatonTestSupport
import CLinux
import Foundation
import Glibc
import SystemPackage
import Testing

@testable import BatonDocuments

@Suite("Destination of a document")
struct DestinationTests {
    let fixture: WriterFixture
    let content = DocumentFixture.content(1000, seed: 30)

    init() throws {
        fixture = try WriterFixture()
    }

    func code(in folder: FilePath? = nil, _ size: Int = 1000) async -> DocumentError.Code? {
        await DocumentFixture.code { _ = try await fixture.writer(size, in: folder) }
    }

    @Test func fileThatExistsIsNamedBeforeTheTransfer() async throws {
        try fixture.scratch.makeFile("destination/report.pdf", [7])
        do {
            _ = try await fixture.writer(1000)
            Issue.record("an existing file was not noticed")
        } catch {
            let error = try #require(error as? DocumentError)
            #expect(error.code == .destinationExists)
            #expect(error.message.contains(fixture.document.string))
        }
        #expect(try DocumentFixture.read(fixture.document) == [7])
        fixture.expectOnly(["report.pdf"])
    }

    @Test(
        "A name that is taken gets a number",
        arguments: [
            ("film.bin", false, "film (2).bin"), ("film.tar.gz", false, "film.tar (2).gz"), ("film", false, "film (2)"),
            (".profile", false, ".profile (2)"), ("photos.2026", true, "photos.2026 (2)"),
            (String(repeating: "ä", count: 127), true, String(repeating: "ä", count: 125) + " (2)"),
            (
                "notes." + String(repeating: "x", count: 40), false,
                "notes." + String(repeating: "x", count: 40) + " (2)"
            ),
            (String(repeating: "n", count: 251) + ".bin", false, String(repeating: "n", count: 247) + " (2).bin"),
        ])
    func numbered(_ name: String, _ isFolder: Bool, _ expected: String) throws {
        let label = try DocumentLabel(Array(name.utf8)).numbered(2, isFolder: isFolder)
        #expect(String(decoding: label.bytes, as: UTF8.self) == expected)
        #expect(try DocumentLabel(label.bytes) == label)
    }

    @Test("A document whose name is taken gets a number up to 99, and nothing is replaced")
    func renamed() async throws {
        let naming = DocumentNaming(label: nil, renames: true)
        try fixture.scratch.makeFile("destination/report.pdf", [7])
        for number in 2..<99 { try fixture.scratch.makeFile("destination/report (\(number)).pdf", [7]) }
        // Two at once, which both begin while the last name is free.
        var writers: [DocumentWriter] = []
        for version in [1, 2] as [UInt64] {
            let tree = try DocumentFixture.tree(1000, version: version)
            writers.append(
                try await DocumentWriter.create(
                    tree, from: DocumentFixture.origin, in: try DestinationFolder(fixture.folder),
                    ledger: fixture.ledger, naming: naming))
            try await writers.last?.begin([0..<1])
            try await writers.last?.write(DocumentFixture.records(content))
        }
        #expect(try await writers[0].commit().lastComponent?.string == "report (99).pdf")
        let code = await DocumentFixture.code { _ = try await writers[1].commit() }
        #expect(code == .destinationExists)
        #expect(try DocumentFixture.read(fixture.document) == [7])
    }

    enum Obstacle: CaseIterable {
        case file, folder, linkToNowhere, linkToFile, pipe
    }

    func put(_ obstacle: Obstacle) throws {
        let path = fixture.document
        switch obstacle {
        case .file: try fixture.scratch.makeFile("destination/report.pdf", [7])
        case .folder: _ = try fixture.scratch.makeFolder("destination/report.pdf")
        case .linkToNowhere: try SystemCalls.call { symlink("../target", path.string) }
        case .linkToFile:
            try fixture.scratch.makeFile("target", [7])
            try SystemCalls.call { symlink("../target", path.string) }
        case .pipe: try SystemCalls.call { mkfifo(path.string, 0o600) }
        }
    }

    @Test(arguments: Obstacle.allCases) func nothingIsEverReplaced(_ obstacle: Obstacle) async throws {
        try put(obstacle)
        #expect(await code() == .destinationExists)
        fixture.expectOnly(["report.pdf"])
    }

    @Test(arguments: Obstacle.allCases) func whatCameMeanwhileIsNotReplaced(_ obstacle: Obstacle) async throws {
        let writer = try await fixture.writer(1000)
        try await writer.write(DocumentFixture.records(content))
        try put(obstacle)
        let before = try SystemCalls.call { lstatInode(fixture.document) }
        #expect(await DocumentFixture.code { _ = try await writer.commit() } == .destinationExists)
        #expect(try SystemCalls.call { lstatInode(fixture.document) } == before)
        let target = fixture.scratch.filePath.appending("target")
        if obstacle == .linkToFile { #expect(try DocumentFixture.read(target) == [7]) }
        if obstacle == .linkToNowhere { #expect(access(target.string, F_OK) != 0) }
        // The received content is kept until the obstacle is gone.
        #expect(fixture.names.count == 2 && fixture.names.contains("report.pdf"))
        #expect(fixture.records.count == 2)
    }

    private func lstatInode(_ path: FilePath) -> Int {
        var status = stat()
        return lstat(path.string, &status) == 0 ? Int(status.st_ino) : -1
    }

    @Test func raceWithALinkNeverWritesThroughIt() async throws {
        let target = try fixture.scratch.makeFile("target", [7])
        let path = fixture.document
        let rounds = SharedCounter()
        let attack = Task.detached {
            while !Task.isCancelled {
                symlink(target.string, path.string)
                try? await Task.sleep(for: .microseconds(50))
                unlink(path.string)
                rounds.increment()
                try? await Task.sleep(for: .microseconds(50))
            }
        }
        #expect(await eventually { rounds.value > 0 })
        for _ in 0..<50 {
            let code = await DocumentFixture.code {
                let writer = try await fixture.writer(1000)
                try await writer.write(DocumentFixture.records(content))
                _ = try await writer.commit()
            }
            // Taken away between getting its name and the look at it, it is not there.
            #expect([nil, .destinationExists, .writeFailed].contains(code))
            #expect(try DocumentFixture.read(target) == [7])
            unlink(path.string)
        }
        attack.cancel()
        await attack.value
        // A transfer that found the name taken at its end keeps what has come, with its record and its journal.
        let parts = fixture.names.filter { $0 != "report.pdf" }
        #expect(parts.allSatisfy { $0.hasSuffix(PartFileName.suffix) })
        #expect(fixture.records.count == 2 * parts.count)
    }

    @Test("A part that somebody has taken away is not said to be kept, and not remembered")
    func partTakenAway() async throws {
        let writer = try await fixture.writer(1000)
        try await writer.write(DocumentFixture.records(content))
        let names = fixture.names
        #expect(names.count == 1)
        for name in names { unlink(fixture.folder.appending(name).string) }
        #expect(await writer.end() == 0)
        #expect(fixture.records.isEmpty)
    }

    @Test func folderThatIsMovedAwayIsTheOneWrittenTo() async throws {
        let elsewhere = try fixture.scratch.makeFolder("elsewhere")
        let moved = fixture.scratch.filePath.appending("moved")
        let writer = try await fixture.writer(1000)
        try SystemCalls.call { rename(fixture.folder.string, moved.string) }
        try SystemCalls.call { symlink(elsewhere.string, fixture.folder.string) }
        try await writer.write(DocumentFixture.records(content))
        _ = try await writer.commit()
        #expect(DocumentFixture.names(in: elsewhere).isEmpty)
        #expect(try DocumentFixture.read(moved.appending("report.pdf")) == content)
    }

    @Test func strangerUnderThePartNameIsNeitherCommittedNorRemoved() async throws {
        let writer = try await fixture.writer(1000)
        try await writer.write(DocumentFixture.records(content))
        let part = fixture.folder.appending(try #require(fixture.names.first))
        let stranger = try fixture.scratch.makeFile("destination/stranger", [9])
        try SystemCalls.call { rename(stranger.string, part.string) }
        #expect(await DocumentFixture.code { _ = try await writer.commit() } == .writeFailed)
        #expect(try DocumentFixture.read(part) == [9])
        #expect(fixture.names == [part.lastComponent?.string ?? ""])
    }

    @Test func missingFolder() async throws {
        #expect(await code(in: fixture.folder.appending("nothing")) == .destinationMissing)
        #expect(await code(in: try fixture.scratch.makeFile("file", [])) == .destinationMissing)
    }

    @Test func folderThatIsRemovedMeanwhile() async throws {
        let writer = try await fixture.writer(0)
        try FileManager.default.removeItem(atPath: fixture.folder.string)
        let code = await DocumentFixture.code { _ = try await writer.commit() }
        #expect(code == .writeFailed || code == .destinationMissing)
        #expect(fixture.records.isEmpty)
    }

    @Test func theUsersOwnLinkToAFolderIsFollowed() async throws {
        let link = fixture.scratch.filePath.appending("link")
        try SystemCalls.call { symlink("destination", link.string) }
        let writer = try await fixture.writer(0, in: link)
        #expect(try await writer.commit() == link.appending("report.pdf"))
        fixture.expectOnly(["report.pdf"])
    }

    @Test func longestNameAndAForeignEncoding() async throws {
        for bytes in [[UInt8](repeating: 0x78, count: 255), [0xFF, 0xC0, 0x0A, 0x20]] {
            let writer = try await fixture.writer(
                try DocumentTree(file: .init(size: 0), called: try DocumentLabel(bytes)))
            let path = try await writer.commit()
            #expect(path.lastComponent?.withPlatformString { [UInt8](bytesOf: $0) } == bytes)
            #expect(try SystemCalls.status(at: path).st_size == 0)
        }
    }

    @Test func folderWithoutPermission() async throws {
        let folder = try fixture.scratch.makeFolder("theirs", mode: 0o555)
        let state = try fixture.scratch.makeFolder("state", mode: 0o777)
        try SystemCalls.call { chmod(state.string, 0o777) }
        try SystemCalls.call { chmod(fixture.scratch.path, 0o755) }
        await #expect(processExitsWith: .success) {
            [folder = folder.string as String, state = state.string as String] in
            try DocumentFixture.becomeNobody()
            let ledger = try PartFileLedger(stateFolder: FilePath(state).appending("parts"))
            for path in [folder, "/proc/1"] {
                let code = await DocumentFixture.code {
                    _ = try await DocumentWriter.begun(
                        try DocumentFixture.tree(9), in: FilePath(path), ledger: ledger)
                }
                #expect(code == .destinationNotWritable || path == "/proc/1" && code != nil)
            }
            #expect(DocumentFixture.names(in: FilePath(state).appending("parts")).isEmpty)
        }
        #expect(DocumentFixture.names(in: folder).isEmpty)
    }

    @Test func stateFolderWithoutPermission() async throws {
        try SystemCalls.call { chmod(fixture.scratch.path, 0o555) }
        await #expect(processExitsWith: .success) { [path = fixture.scratch.path as String] in
            try DocumentFixture.becomeNobody()
            let code = await DocumentFixture.code {
                _ = try PartFileLedger(stateFolder: FilePath(path).appending("new"))
            }
            #expect(code == .stateUnavailable)
        }
        try SystemCalls.call { chmod(fixture.scratch.path, 0o755) }
    }

    @Test(.enabled(if: DocumentFixture.isRoot, DocumentFixture.needsRoot)) func fullDiskIsNoticedBeforeTheFirstByte()
        async throws
    {
        let mounted = try MountedFolder(tmpfsAt: try fixture.scratch.makeFolder("full"), size: 8 << 20)
        #expect(await code(in: mounted.path, 9 << 20) == .destinationFull)
        #expect(DocumentFixture.names(in: mounted.path).isEmpty)
        let writer = try await fixture.writer(7 << 20, in: mounted.path)
        // Reserved: nobody else can take it.
        #expect(await code(in: mounted.path, 7 << 20) == .destinationFull)
        let content = DocumentFixture.content(7 << 20, seed: 31)
        try await writer.write(DocumentFixture.records(content))
        let path = try await writer.commit()
        #expect(try DocumentFixture.read(path) == content)
        #expect(fixture.records.isEmpty)
    }

    @Test("Of a folder that was moved meanwhile it is said where it is, and not what stands in its place")
    func movedFolder() async throws {
        let (place, moved) = (try fixture.scratch.makeFolder("inbox"), fixture.scratch.filePath.appending("moved"))
        let writer = try await fixture.writer(1 << 20, in: place)
        let content = DocumentFixture.content(1 << 20, seed: 33)
        try await writer.write(DocumentFixture.records(content))
        try SystemCalls.call { rename(place.string, moved.string) }
        try SystemCalls.call { symlink("/etc", place.string) }
        let path = try await writer.commit()
        #expect(path.removingLastComponent().lastComponent == "moved")
        #expect(try DocumentFixture.read(path) == content)
    }

    @Test(.enabled(if: DocumentFixture.isRoot, DocumentFixture.needsRoot)) func diskThatFillsUpMeanwhile() async throws
    {
        let mounted = try MountedFolder(tmpfsAt: try fixture.scratch.makeFolder("filling"), size: 8 << 20)
        let tree = try DocumentFixture.tree(16 << 20, isSparse: true)
        let part = try Part(creating: tree, at: try PartPlace(mounted.path, fixture.ledger))
        let bytes = [UInt8](repeating: 1, count: 1 << 20)
        let code = await DocumentFixture.code {
            for index in 0..<9 {
                try bytes.withUnsafeBytes { try part.write($0, toFile: 0, at: UInt64(index) << 20) }
            }
        }
        #expect(code == .destinationFull)
        part.discard()
        #expect(DocumentFixture.names(in: mounted.path).isEmpty)
    }

    @Test(.enabled(if: DocumentFixture.isRoot, DocumentFixture.needsRoot)) func readOnlyFileSystem() async throws {
        let mounted = try MountedFolder(readOnly: fixture.folder, at: try fixture.scratch.makeFolder("readonly"))
        #expect(await code(in: mounted.path) == .destinationNotWritable)
        fixture.expectOnly([])
    }

    @Test(.enabled(if: DocumentFixture.isRoot, DocumentFixture.needsRoot))
    func unknownFileSystemIsTriedBeforeTheFirstByte()
        async throws
    {
        let mounted = try MountedFolder(ramfsAt: try fixture.scratch.makeFolder("unknown"))
        let writer = try await fixture.writer(1000, in: mounted.path)
        // It has its own name again, one record and its journal.
        let name = try #require(DocumentFixture.names(in: mounted.path).first)
        #expect(DocumentFixture.names(in: mounted.path).count == 1 && name.hasPrefix(".report.pdf."))
        let tag = name.split(separator: ".")[2]
        #expect(fixture.records == ["\(tag).journal", "\(tag).part-record"])
        try await writer.write(DocumentFixture.records(content))
        #expect(try DocumentFixture.read(try await writer.commit()) == content)
        #expect(DocumentFixture.names(in: mounted.path) == ["report.pdf"])
        #expect(fixture.records.isEmpty)
    }
}
