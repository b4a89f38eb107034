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
        let header = JournalHeader(origin: DocumentFixture.origin, tree: tree)
        let bytes = DocumentFixture.content(30 << 20, seed: 41)
        do {
            let content = try Part(creating: header, at: try PartPlace(folder, ledger))
            for chunk in 0..<UInt64(30) {
                let place = Int(chunk) << 20..<Int(chunk + 1) << 20
                try bytes[place].withUnsafeBytes {
                    try content.take(.init(number: chunk, content: $0, checksum: ChunkChecksum(of: $0)))
                }
            }
            try content.note()
            #expect(content.end() == 30 << 20)
        }
        // This stands for a process that is killed before it can report the result.
        let part = folder.appending(try #require(DocumentFixture.names(in: folder).first))
        do {
            let file = try SystemCalls.open(part, O_RDONLY)
            #expect(throws: Errno.self) { try SystemCalls.synchronize(file) }
        }
        // It can be read still, and Linux does not say so again.
        #expect(try DocumentFixture.read(part) == bytes)
        let unfinished = try #require(try ledger.unfinished().first)
        let content = try #require(
            try Part(reopening: unfinished, at: try PartPlace(folder, ledger)) { false })
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

    @Test("A part of which a checkpoint speaks is found again by its record")
    func record() async throws {
        let disk = try LoopDisk(try ScratchFolder(), size: 64 << 20)
        let mounted = try disk.mount()
        let folder = mounted.path.appending("destination")
        try SystemCalls.call { mkdir(folder.string, 0o755) }
        let parts = mounted.path.appending("parts")
        let ledger = try PartFileLedger(stateFolder: parts)
        // Everything written earlier is on the disk.
        sync()
        let tree = try DocumentFixture.tree(200 << 20, version: 1, isSparse: true)
        let header = JournalHeader(origin: DocumentFixture.origin, tree: tree)
        let content = try Part(creating: header, at: try PartPlace(folder, ledger))
        let megabyte = DocumentFixture.content(1 << 20, seed: 45)
        for chunk in 0..<UInt64(150) {
            try megabyte.withUnsafeBytes {
                let checksum = chunk < 10 ? ChunkChecksum(of: $0) : .ofZeros(1 << 20)
                try content.take(.init(number: chunk, content: chunk < 10 ? $0 : nil, checksum: checksum))
            }
        }
        let name = try #require(DocumentFixture.names(in: parts).first { $0.hasSuffix(PartFileRecord.suffix) })
        let record = try #require(try PartFileRecord(readingFrom: parts.appending(name)))
        let journal = ledger.journal(of: record)
        let isThere = try await eventually(within: .seconds(30)) {
            try content.note()
            return try TransferJournal.content(at: journal)?.vouched == ChunkSet(0..<150)
        }
        #expect(isThere)
        let after = try disk.cutPower()
        let found = try PartFileLedger(stateFolder: after.path.appending("parts")).unfinished()
        #expect(found.map(\.record) == [record])
        let unfinished = try #require(found.first)
        #expect(unfinished.content.vouched == ChunkSet(0..<150))
        let part = after.path.appending("destination").appending(try #require(DocumentFixture.names(in: folder).first))
        #expect(FileIdentity(try SystemCalls.status(at: part)).inode == record.inode)
        #expect(content.end() == 150 << 20)
    }
}
