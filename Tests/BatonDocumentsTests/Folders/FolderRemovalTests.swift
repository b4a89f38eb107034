// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import CLinux
import Foundation
import Glibc
import SystemPackage
import Testing

@testable import BatonDocuments

@Suite("Removal of a folder")
struct FolderRemovalTests {
    let scratch: ScratchFolder
    let folder: FilePath

    init() throws {
        scratch = try ScratchFolder()
        folder = try scratch.makeFolder("folder")
    }

    private func inode(_ path: FilePath) throws -> UInt64 { UInt64(try SystemCalls.status(at: path).st_ino) }

    private func remove(_ name: String, inode: UInt64) throws -> Bool {
        let system = try FileSystem(at: scratch.filePath).number
        let record = PartFileRecord(
            folder: scratch.filePath, name: Array(name.utf8), tag: "tag", inode: inode, fileSystem: system)
        let removal = record.removePart()
        if removal == .unreachable { throw Errno.resourceBusy }
        return removal == .removed
    }

    @Test("Links are removed, and what they lead to stays")
    func links() throws {
        let outside = try scratch.makeFolder("outside")
        let file = try scratch.makeFile("outside/x", [7])
        _ = try scratch.makeFolder("folder/sub")
        for (name, target) in [("a", outside), ("sub/b", file), ("sub/c", folder), ("d", FilePath("/nothing"))] {
            try SystemCalls.call { symlink(target.string, folder.appending(name).string) }
        }
        #expect(try remove("folder", inode: try inode(folder)))
        #expect(DocumentFixture.names(in: scratch.filePath) == ["outside"])
        #expect(try DocumentFixture.read(file) == [7])
    }

    @Test("A folder of a random shape goes, as deep as a document can be and deeper")
    func deep() throws {
        let seed = SeededGenerator.chosenSeed
        _ = try RandomFolder(at: folder.appending("random"), seed: seed, entries: 200)
        do {
            var parent = try SystemCalls.open(folder, O_RDONLY | O_DIRECTORY)
            for _ in 0..<EntryPath.maximumDepth + 10 {
                try SystemCalls.makeFolder([0x64], in: parent, mode: 0o700)
                parent = try SystemCalls.open([0x64], beneath: parent, O_RDONLY | O_DIRECTORY)
            }
        }
        #expect(try remove("folder", inode: try inode(folder)), "seed \(seed)")
        #expect(DocumentFixture.names(in: scratch.filePath).isEmpty)
        #expect(DocumentFixture.openFiles(in: scratch.filePath).isEmpty)
    }

    @Test("What is not the folder that was meant stays")
    func strangers() throws {
        let before = try inode(folder)
        try scratch.makeFile("folder/x", [1])
        #expect(try !remove("folder", inode: before + 1))
        #expect(try !remove("nothing", inode: before))
        try SystemCalls.call { symlink("folder", scratch.filePath.appending("link").string) }
        #expect(try !remove("link", inode: before))
        #expect(try DocumentFixture.read(folder.appending("x")) == [1])
    }

    @Test(.enabled(if: DocumentFixture.isRoot, DocumentFixture.needsRoot))
    func whatIsMountedInItStays() async throws {
        let point = try scratch.makeFolder("folder/mounted")
        let tmpfs = try MountedFolder(tmpfsAt: point, size: 1 << 20)
        try scratch.makeFile("folder/mounted/kept", [1])
        #expect(throws: Errno.self) { try remove("folder", inode: try inode(folder)) }
        #expect(try DocumentFixture.read(point.appending("kept")) == [1])
        withExtendedLifetime(tmpfs.path) {}
    }
}
