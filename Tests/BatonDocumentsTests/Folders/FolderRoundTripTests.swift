// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import CLinux
import Foundation
import Glibc
import SystemPackage
import Testing

@testable import BatonDocuments

@Suite("Folders from disk to disk")
struct FolderRoundTripTests {
    let scratch: ScratchFolder
    let target: FilePath

    init() throws {
        scratch = try ScratchFolder()
        target = try scratch.makeFolder("destination")
    }

    @Test("A random folder arrives as it was, but for what no document has", arguments: 0..<6)
    func randomFolder(_ round: Int) throws {
        let seed = SeededGenerator.chosenSeed
        var random = SeededGenerator(seed: seed)
        let folder = try RandomFolder(at: scratch.filePath.appending("folder"), seed: seed, entries: 60)
        let document = try DocumentScan.scan(folder.path)
        #expect(document.leftOut.count == folder.leftOut.count, "\(random)")
        #expect(document.leftOut.examples.allSatisfy { folder.leftOut.contains($0.bytes) }, "\(random)")
        try transfer(document, inOrder: round % 2 == 0, &random)
        #expect(DocumentFixture.openFiles(in: scratch.filePath).isEmpty)
        try expectSame(folder, document, "\(random)")
    }

    private func transfer(_ document: ScannedDocument, inOrder: Bool, _ random: inout SeededGenerator) throws {
        let part = try Part(creating: document.tree, at: try FolderFixture.place(target))
        let files = try DocumentFiles(document)
        // In the manifest's order, or as ranged reads would have it.
        let order = Array(0..<document.tree.layout.fileCount)
        for index in inOrder ? order : order.shuffled(using: &random) {
            try FolderFixture.copy(index, of: files, into: part, &random)
        }
        #expect(DocumentFixture.names(in: target) == [String(decoding: part.record.name, as: UTF8.self)])
        #expect(try part.commit() == target.appending("folder"))
    }

    private func expectSame(_ folder: RandomFolder, _ document: ScannedDocument, _ seed: String) throws {
        var sent = try FolderSnapshot(withoutPipes: folder)
        for path in folder.leftOut { sent.remove(path) }
        let arrived = try FolderSnapshot(target.appending("folder"))
        #expect(arrived.differences(from: sent) == [], "\(seed)")
        for index in 0..<document.tree.entryCount {
            let entry = document.tree[index]
            guard entry.file?.isSparse == true else { continue }
            // Three places with data at the most, each with what else is in its pieces.
            let (there, here) = (sent.diskBytes[entry.path.bytes] ?? 0, arrived.diskBytes[entry.path.bytes] ?? .max)
            #expect(here <= there + (1 << 20), "\(entry.path) \(seed)")
        }
    }

    @Test("A large file with one byte of data stays as small as it was")
    func sparse() throws {
        let folder = try scratch.makeFolder("folder")
        let path = try scratch.makeFile("folder/disk", [])
        try DocumentFixture.write([1], to: path, at: 5 << 30)
        try SystemCalls.call { truncate(path.string, 16 << 30) }
        let document = try DocumentScan.scan(folder)
        let entry = try #require(document.tree.entry(ofFile: 0).file)
        #expect(entry.isSparse && entry.size == 16 << 30)
        let part = try Part(creating: document.tree, at: try FolderFixture.place(target))
        let opened = try DocumentFiles(document).open(file: 0)
        let holes = [opened.isHole(0..<1 << 30), opened.isHole(5 << 30..<6 << 30), opened.isHole(6 << 30..<16 << 30)]
        #expect(holes == [true, false, true])
        try part.clear(0..<16 << 30, ofFile: 0)
        try part.write([1], toFile: 0, at: 5 << 30)
        let status = try SystemCalls.status(at: try part.commit().appending("disk"))
        #expect(status.st_size == 16 << 30 && status.st_blocks < 1024)
    }

    @Test("A part goes on after the process was killed")
    func resuming() throws {
        let tree = try FolderFixture.tree([
            ("a", .folder), ("a/one", FolderFixture.file(5000)), ("b", FolderFixture.file(3 << 20)),
            ("empty", FolderFixture.file(0)),
            ("link", .link(try #require(LinkTarget(Array("a".utf8), at: EntryPath(Array("link".utf8)))))),
        ])
        let (one, b) = (DocumentFixture.content(5000, seed: 1), DocumentFixture.content(3 << 20, seed: 2))
        let place = try FolderFixture.place(target, umask: 0o077)
        var part = try Part(creating: tree, at: place)
        try part.write(one, toFile: 0, at: 0)
        try part.write(Array(b[..<(1 << 20)]), toFile: 1, at: 0)
        try part.synchronize()
        // As a kill leaves it: nobody commits, nobody discards.
        part = try #require(try Part(reopening: tree, part.record, at: place))
        let isWhole = try (0..<3).map { try part.isWhole(file: $0) }
        #expect(isWhole == [true, true, false])
        try part.write(Array(b[(1 << 20)...]), toFile: 1, at: 1 << 20)
        let path = try part.commit()
        #expect(try DocumentFixture.read(path.appending("a").appending("one")) == one)
        #expect(try DocumentFixture.read(path.appending("b")) == b)
        #expect(DocumentFixture.names(in: path) == ["a", "b", "empty", "link"])
        #expect(try SystemCalls.status(at: path).st_mode & 0o777 == 0o700)
        #expect(try SystemCalls.status(at: path.appending("b")).st_mode & 0o777 == 0o600)
        #expect(part.discard())
        #expect(access(path.string, F_OK) == 0)
    }

    @Test("A part in which something else has the name of a file or folder is not gone on with", arguments: 0..<3)
    func somethingElse(_ attack: Int) throws {
        let tree = try FolderFixture.tree([
            ("a", .folder), ("a/x", FolderFixture.file(1)), ("b", FolderFixture.file(2)),
        ])
        let place = try FolderFixture.place(target)
        let part = try Part(creating: tree, at: place)
        for index in 0..<2 { try part.write([UInt8](repeating: 7, count: index + 1), toFile: index, at: 0) }
        let inside = target.appending(String(decoding: part.record.name, as: UTF8.self))
        let aside = scratch.filePath.appending("aside")
        switch attack {
        case 0:
            try SystemCalls.call { rename(inside.appending("a").string, aside.string) }
            try SystemCalls.call { symlink(aside.string, inside.appending("a").string) }
        case 1: try SystemCalls.call { link(inside.appending("b").string, aside.string) }
        case _:
            try SystemCalls.call { unlink(inside.appending("b").string) }
            try SystemCalls.call { mkdir(inside.appending("b").string, 0o700) }
        }
        #expect(try Part(reopening: tree, part.record, at: place) == nil)
        #expect(access(aside.string, F_OK) == (attack == 2 ? -1 : 0))
    }
}

extension FolderSnapshot {
    /// A folder whose pipes are gone: they were left out, and a snapshot has no kind for them.
    fileprivate init(withoutPipes folder: RandomFolder) throws {
        for key in folder.leftOut {
            let name = FilePath(platformString: key.map { CChar(bitPattern: $0) } + [0])
            let path = folder.path.appending(name.components)
            let before = try SystemCalls.status(at: path.removingLastComponent())
            path.withPlatformString { _ = unlink($0) }
            var times = [before.st_mtim, before.st_mtim]
            try SystemCalls.call {
                path.removingLastComponent().withPlatformString { utimensat(AT_FDCWD, $0, &times, 0) }
            }
        }
        try self.init(folder.path)
    }
}
