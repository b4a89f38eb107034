// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import CLinux
import Glibc
import SystemPackage
import Testing

@testable import BatonDocuments

@Suite("Power cuts", .enabled(if: LoopDisk.isAvailable, "it mounts a file system on a file, which needs root"))
struct PowerCutTests {
    @Test("What a disk did not take while a process was killed is not believed, although it can still be read")
    func killedWhileItFails() async throws {
        let scratch = try ScratchFolder()
        // The disk says that it is larger than what it stands on.
        let below = try MountedFolder(tmpfsAt: try scratch.makeFolder("below"), size: 24 << 20)
        let mounted = try LoopDisk(scratch, size: 128 << 20, in: below.path).mount()
        let folder = mounted.path.appending("destination")
        try SystemCalls.call { mkdir(folder.string, 0o755) }
        let ledger = try PartFileLedger(stateFolder: scratch.filePath.appending("parts"))
        // Small enough to go through the page cache.
        let tree = try DocumentFixture.tree(30 << 20, version: 1)
        let header = JournalHeader(origin: DocumentFixture.origin, boot: .current, tree: tree)
        let bytes = DocumentFixture.content(30 << 20, seed: 41)
        let record: PartFileRecord
        do {
            let content = try PartContent(creating: header, at: try PartPlace(folder, ledger))
            for chunk in 0..<UInt64(30) {
                let place = Int(chunk) << 20..<Int(chunk + 1) << 20
                let checksum = try bytes[place].withUnsafeBytes {
                    try content.take(.content(chunk: chunk, offset: 0, bytes: $0))
                    return ChunkChecksum(of: $0)
                }
                try content.take(.verified(chunk: chunk, checksum: checksum))
            }
            #expect(content.end() == 30 << 20)
            record = try #require(try ledger.unfinished().first).record
        }
        // What a process does that is killed in the middle of it, or before it can say how it went.
        let part = folder.appending(try #require(DocumentFixture.names(in: folder).first))
        do {
            let journal = try #require(try TransferJournal.open(ledger.journal(of: record), boot: .current)).journal
            #expect(journal.attempt(journal.entryCount))
            let file = try SystemCalls.open(part, O_RDONLY)
            #expect(throws: Errno.self) { try SystemCalls.synchronize(file) }
        }
        // It can be read still, and Linux does not say so again.
        #expect(try DocumentFixture.read(part) == bytes)
        let unfinished = try #require(try ledger.unfinished().first)
        let content = try #require(try PartContent(reopening: unfinished, at: try PartPlace(folder, ledger)))
        #expect(!content.verified.missing(in: 0..<30).isEmpty)
        let file = try SystemCalls.open(part, O_RDONLY)
        let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 4096)
        defer { room.deallocate() }
        // Past the page cache.
        let number = file.rawValue
        try SystemCalls.kernel { baton_set_direct(number, 1) }
        for chunk in content.verified.ranges.joined() {
            _ = try SystemCalls.read(file, into: room, at: chunk << 20)
            #expect(room.elementsEqual(bytes[Int(chunk) << 20..<Int(chunk + 1) << 20]), "chunk \(chunk)")
        }
        _ = content.end()
    }

    @Test("What a disk had not taken that was pulled out is not believed when it is there again")
    func pulledOut() async throws {
        let fixture = try ResumeFixture(seed: 44)
        let disk = try LoopDisk(fixture.scratch, size: 64 << 20)
        let destination = fixture.folder
        do {
            let mounted = try disk.mount(at: destination)
            // A disk has a number, which another one has not.
            let number = try #require(BootID.disk(of: try DestinationFolder(destination).file))
            let other = BootID.disk(of: try DestinationFolder(fixture.scratch.filePath).file)
            #expect(!number.isEmpty && number != other)
            try await fixture.receive([0..<5])
            _ = consume mounted
        }
        // What it has not taken is the zeros that it had been given to reserve the room.
        do {
            let mounted = try disk.mount(at: destination)
            try DocumentFixture.write([UInt8](repeating: 0, count: 1 << 20), to: try fixture.part(), at: 3 << 20)
            _ = consume mounted
        }
        let mounted = try disk.mount(at: destination)
        let writer = try await fixture.open()
        #expect(try await writer.missing() == [3..<4, 5..<8])
        try await fixture.complete(writer)
        _ = consume mounted
    }

    @Test("A part of which a mark speaks is found again by its record")
    func record() async throws {
        let disk = try LoopDisk(try ScratchFolder(), size: 64 << 20)
        let mounted = try disk.mount()
        let folder = mounted.path.appending("destination")
        try SystemCalls.call { mkdir(folder.string, 0o755) }
        let parts = mounted.path.appending("parts")
        let ledger = try PartFileLedger(stateFolder: parts)
        // What was there before is on the disk.
        sync()
        let tree = try DocumentFixture.tree(200 << 20, version: 1, isSparse: true)
        let header = JournalHeader(origin: DocumentFixture.origin, boot: .current, tree: tree)
        let content = try PartContent(creating: header, at: try PartPlace(folder, ledger))
        for chunk in 0..<UInt64(150) {
            try content.take(.zeros(chunk: chunk))
            try content.take(.verified(chunk: chunk, checksum: ChunkChecksum(ofZeros: 1 << 20)))
        }
        let name = try #require(DocumentFixture.names(in: parts).first { $0.hasSuffix(PartFileRecord.suffix) })
        let record = try #require(try PartFileRecord(readingFrom: parts.appending(name)))
        let journal = ledger.journal(of: record)
        let isMarked = try await eventually {
            try content.note()
            let said = try TransferJournal.open(journal, boot: BootID(text: "a later run"))?.content
            return said?.verified.ranges == [0..<150]
        }
        #expect(isMarked)
        let after = try disk.cutPower()
        let found = try PartFileLedger(stateFolder: after.path.appending("parts")).unfinished()
        #expect(found.map(\.record) == [record])
        let unfinished = try #require(found.first)
        let said = try #require(try TransferJournal.open(unfinished.journal, boot: BootID(text: "a later run"))).content
        #expect(said.verified.ranges == [0..<150])
        let part = after.path.appending("destination").appending(try #require(DocumentFixture.names(in: folder).first))
        #expect(FileIdentity(try SystemCalls.status(at: part)).inode == record.inode)
        #expect(content.end() == 150 << 20)
    }
}
