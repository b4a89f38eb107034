// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import BatonTestSupport
import CLinux
import Glibc
import SystemPackage
import Testing

@testable import BatonDocuments

@Suite("Disks that fill up", .enabled(if: DocumentFixture.isRoot, DocumentFixture.needsRoot))
struct FullDiskTests {
    let scratch: ScratchFolder

    init() throws {
        scratch = try ScratchFolder()
    }

    /// Writes to a file until its file system has no room left.
    private static func fill(_ path: FilePath) throws {
        let bytes = [UInt8](repeating: 1, count: 4096)
        var end: UInt64 = 0
        do {
            while true {
                try DocumentFixture.write(bytes, to: path, at: end)
                end += UInt64(bytes.count)
            }
        } catch Errno.noSpace {
            #expect(end > 0)
        }
    }

    @Test("What was reserved for what has not come is given back", arguments: [true, false])
    func givenBack(_ isFolder: Bool) async throws {
        let disk = try MountedFolder(tmpfsAt: try scratch.makeFolder("destination"), size: 32 << 20)
        let file = DocumentEntry.File(size: 24 << 20, version: FileVersion(high: 0, low: 3))
        var builder = DocumentTree.Builder(try DocumentLabel(Array("report.pdf".utf8)))
        if isFolder { try builder.append(DocumentEntry(path: .root, kind: .folder)) }
        try builder.append(
            DocumentEntry(path: isFolder ? try EntryPath(Array("x".utf8)) : .root, kind: .file(file)))
        let tree = try builder.finish()
        let ledger = try PartFileLedger(stateFolder: scratch.filePath.appending("parts"))
        let content = DocumentFixture.content(24 << 20, seed: 99)
        for attempt in 1...2 {
            let writer = try await DocumentWriter.create(
                tree, from: DocumentFixture.origin, in: try DestinationFolder(disk.path), ledger: ledger)
            let missing = try await writer.missing()
            #expect(missing == [UInt64(attempt - 1)..<24])
            try await writer.begin(missing)
            try await writer.write(ResumeFixture.records([missing[0].lowerBound..<UInt64(attempt)], of: content))
            // Files of a folder that is gone on with are not reserved again.
            if attempt == 1 || !isFolder { #expect(try room(in: disk.path) < 9 << 20) }
            #expect(await writer.end() == UInt64(attempt) << 20)
            #expect(try room(in: disk.path) > 29 << 20)
        }
        let writer = try await DocumentWriter.create(
            tree, from: DocumentFixture.origin, in: try DestinationFolder(disk.path), ledger: ledger)
        try await writer.begin([2..<24])
        try await writer.write(ResumeFixture.records([2..<24], of: content))
        let path = try await writer.commit()
        #expect(try DocumentFixture.read(isFolder ? path.appending("x") : path) == content)
    }

    /// Bytes that are free.
    private func room(in folder: FilePath) throws -> UInt64 {
        var status = statvfs()
        try SystemCalls.call { statvfs(folder.string, &status) }
        return UInt64(status.f_bavail) * UInt64(status.f_frsize)
    }

    private static var tree: DocumentTree {
        get throws { try DocumentFixture.tree(400 << 20, version: 3, isSparse: true) }
    }

    private static let zeros = DocumentFixture.record(
        [UInt8](repeating: 0, count: 1 << 20), encoding: 1, saying: [])

    @Test(
        "The state folder's disk: the document arrives, and what its journal had room for is kept",
        arguments: [true, false])
    func stateFolder(_ isWhole: Bool) async throws {
        let state = try MountedFolder(tmpfsAt: try scratch.makeFolder("state"), size: 20 << 10)
        let parts = state.path.appending("parts")
        let folder = try scratch.makeFolder("destination")
        let (tree, zeros) = (try Self.tree, Self.zeros)
        let writer = try await DocumentWriter.begun(tree, in: folder, ledger: try PartFileLedger(stateFolder: parts))
        let filler = state.path.appending("filler")
        try Self.fill(filler)
        for _ in 0..<300 { try await writer.write(zeros) }
        if isWhole {
            for _ in 0..<100 { try await writer.write(zeros) }
            let path = try await writer.commit()
            #expect(try DocumentFixture.size(at: path) == 400 << 20)
        } else {
            let told = await writer.progress.keptByteCount >> 20
            // The page that the journal has takes some entries.
            let kept = await writer.end() >> 20
            #expect(kept >= 80 && kept < 300 && told == kept)
            let next = try await DocumentWriter.begun(
                tree, in: folder, ledger: try PartFileLedger(stateFolder: parts))
            #expect(try await next.missing() == [kept..<400])
            // When there is room again, what waited is written down as well.
            for _ in kept..<350 { try await next.write(zeros) }
            try SystemCalls.call { unlink(filler.string) }
            // What is looked at again is written down again as well.
            try state.resize(to: 64 << 10)
            #expect(await next.end() == 350 << 20)
            let last = try await DocumentWriter.begun(
                tree, in: folder, ledger: try PartFileLedger(stateFolder: parts))
            #expect(try await last.missing() == [350..<400])
            for _ in 350..<400 { try await last.write(zeros) }
            _ = try await last.commit()
        }
        #expect(DocumentFixture.names(in: folder) == ["report.pdf"])
        #expect(DocumentFixture.names(in: parts).isEmpty)
    }

    @Test("The state folder's: a process that is killed has written down what its disk took")
    func stateFolderOfAKilledProcess() async throws {
        let state = try MountedFolder(tmpfsAt: try scratch.makeFolder("state"), size: 64 << 10)
        let folder = try scratch.makeFolder("destination")
        await #expect(processExitsWith: .signal(SIGKILL)) { [path = scratch.path as String] in
            let scratch = FilePath(path)
            let writer = try await DocumentWriter.begun(
                try Self.tree, in: scratch.appending("destination"),
                ledger: try PartFileLedger(stateFolder: scratch.appending("state").appending("parts")))
            try Self.fill(scratch.appending("state").appending("filler"))
            for _ in 0..<300 { try await writer.write(Self.zeros) }
            kill(getpid(), SIGKILL)
        }
        let next = try await DocumentWriter.begun(
            try Self.tree, in: folder, ledger: try PartFileLedger(stateFolder: state.path.appending("parts")))
        let start = try #require(try await next.missing().first).lowerBound
        #expect(start >= 80 && start < 300)
        await next.end()
    }

    @Test("The one that state folder and destination are on: what waits has the room that the document gives back")
    func sharedDisk() async throws {
        let (chunks, page) = (UInt64(126), 4096)
        let disk = try MountedFolder(tmpfsAt: try scratch.makeFolder("disk"), size: 128 << 20)
        let folder = disk.path.appending("destination")
        try SystemCalls.call { mkdir(folder.string, 0o700) }
        let filler = disk.path.appending("filler")
        // What is left beside the document is enough for a record and a journal's first page, and for no more of it.
        try DocumentFixture.write([UInt8](repeating: 1, count: 2 << 20 - 4 * page), to: filler)
        let ledger = try PartFileLedger(stateFolder: disk.path.appending("parts"))
        let writer = try await DocumentWriter.begun(
            try DocumentFixture.tree(chunks << 20, version: 3), in: folder, ledger: ledger)
        try Self.fill(disk.path.appending("more"))
        let record = Buffer(copying: DocumentFixture.record([UInt8](repeating: 5, count: 1 << 20)))
        for _ in 1..<chunks { try await writer.write(record) }
        #expect(await writer.end() == (chunks - 1) << 20)
    }

    @Test("The state folder's, before a record fits: nothing is received")
    func stateFolderFromTheStart() async throws {
        let state = try MountedFolder(tmpfsAt: try scratch.makeFolder("state"), size: 64 << 10)
        let ledger = try PartFileLedger(stateFolder: state.path.appending("parts"))
        try Self.fill(state.path.appending("filler"))
        let folder = try scratch.makeFolder("destination")
        let code = await DocumentFixture.code {
            _ = try await DocumentWriter.begun(try DocumentFixture.tree(5), in: folder, ledger: ledger)
        }
        #expect(code == .stateUnavailable)
        #expect(DocumentFixture.names(in: folder).isEmpty)
    }

    @Test("The destination's: the part is kept, and the transfer goes on when there is room")
    func destination() async throws {
        let mounted = try MountedFolder(tmpfsAt: try scratch.makeFolder("destination"), size: 10 << 20)
        let parts = scratch.filePath.appending("parts")
        let filler = mounted.path.appending("filler")
        try DocumentFixture.write([UInt8](repeating: 1, count: 5 << 20), to: filler)
        let content = DocumentFixture.content(8 << 20 - 99, seed: 90)
        // With holes, by its name: nothing is reserved.
        let tree = try DocumentFixture.tree(UInt64(content.count), version: 4, isSparse: true)
        let first = try await DocumentWriter.begun(
            tree, in: mounted.path, ledger: try PartFileLedger(stateFolder: parts))
        #expect(
            await DocumentFixture.code { try await first.write(DocumentFixture.records(content)) } == .destinationFull)
        #expect(DocumentFixture.names(in: mounted.path).count == 2)
        // While it is full the next attempt ends the same way, and loses nothing.
        let second = try await DocumentWriter.begun(
            tree, in: mounted.path, ledger: try PartFileLedger(stateFolder: parts))
        let missing = try await second.missing()
        let start = try #require(missing.first).lowerBound
        #expect(missing == [start..<8] && start >= 3)
        let rest = ResumeFixture.records(missing, of: content)
        #expect(await DocumentFixture.code { try await second.write(rest) } == .destinationFull)
        try SystemCalls.call { unlink(filler.string) }
        let third = try await DocumentWriter.begun(
            tree, in: mounted.path, ledger: try PartFileLedger(stateFolder: parts))
        let still = try await third.missing()
        #expect(try #require(still.first).lowerBound >= start)
        try await third.write(ResumeFixture.records(still, of: content))
        let path = try await third.commit()
        #expect(try DocumentFixture.read(path) == content)
        #expect(DocumentFixture.names(in: mounted.path) == ["report.pdf"])
        #expect(DocumentFixture.names(in: parts).isEmpty)
    }

    @Test(
        "The destination's, which cannot reserve room: what came before it was full is kept as well",
        .enabled(if: LoopDisk.isAvailable, "it needs root, a loop device and mkfs.ext4"))
    func destinationThatReservesNothing() async throws {
        let disk = try LoopDisk(scratch, size: 32 << 20, type: "ext3").mount()
        let parts = scratch.filePath.appending("parts")
        let content = DocumentFixture.content(8 << 20 - 99, seed: 91)
        let tree = try DocumentFixture.tree(UInt64(content.count), version: 5)
        let first = try await DocumentWriter.begun(
            tree, in: disk.path, ledger: try PartFileLedger(stateFolder: parts))
        try await first.write(ResumeFixture.records([0..<5], of: content))
        let filler = disk.path.appending("filler")
        try Self.fill(filler)
        let rest = ResumeFixture.records([5..<8], of: content)
        #expect(await DocumentFixture.code { try await first.write(rest) } == .destinationFull)
        try SystemCalls.call { unlink(filler.string) }
        let second = try await DocumentWriter.begun(
            tree, in: disk.path, ledger: try PartFileLedger(stateFolder: parts))
        #expect(try await second.missing() == [5..<8])
        try await second.write(rest)
        #expect(try DocumentFixture.read(try await second.commit()) == content)
    }
}
