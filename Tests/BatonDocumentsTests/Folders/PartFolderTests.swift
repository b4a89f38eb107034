// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonTestSupport
import CLinux
import Foundation
import Glibc
import SystemPackage
import Testing

@testable import BatonDocuments

@Suite("Part of a folder")
struct PartFolderTests {
    let scratch: ScratchFolder
    let target: FilePath

    init() throws {
        scratch = try ScratchFolder()
        target = try scratch.makeFolder("destination")
    }

    private func make(_ entries: [(String, DocumentEntry.Kind)], in folder: FilePath? = nil) throws -> Part {
        try Part(creating: try FolderFixture.tree(entries), at: try FolderFixture.place(folder ?? target))
    }

    private func inside(_ part: Part) -> FilePath {
        target.appending(String(decoding: part.record.name, as: UTF8.self))
    }

    @Test("Nothing is ever replaced, neither before nor after", arguments: DestinationTests.Obstacle.allCases)
    func nothingIsReplaced(_ obstacle: DestinationTests.Obstacle) async throws {
        func put() throws {
            let path = target.appending("folder")
            switch obstacle {
            case .file: try scratch.makeFile("destination/folder", [7])
            case .folder: _ = try scratch.makeFolder("destination/folder")
            case .linkToNowhere: try SystemCalls.call { symlink("../nothing", path.string) }
            case .linkToFile: try SystemCalls.call { symlink("/etc/passwd", path.string) }
            case .pipe: try SystemCalls.call { mkfifo(path.string, 0o600) }
            }
        }
        let part = try make([("x", FolderFixture.file(0))])
        try put()
        #expect(await DocumentFixture.code { _ = try part.commit() } == .destinationExists)
        #expect(DocumentFixture.names(in: inside(part)) == ["x"])
        // Moved away, it can be put in place.
        try SystemCalls.call { rename(target.appending("folder").string, scratch.filePath.appending("away").string) }
        #expect(try part.commit() == target.appending("folder"))
        #expect(DocumentFixture.names(in: target) == ["folder"])
    }

    @Test("What is missing or too short is never put in place")
    func incomplete() async throws {
        let part = try make([("a", FolderFixture.file(10)), ("b", FolderFixture.file(10))])
        #expect(await DocumentFixture.code { _ = try part.commit() } == .incomplete)
        try part.write([UInt8](repeating: 1, count: 10), toFile: 0, at: 0)
        #expect(await DocumentFixture.code { _ = try part.commit() } == .incomplete)
        try part.write([UInt8](repeating: 1, count: 10), toFile: 1, at: 0)
        try SystemCalls.call { truncate(inside(part).appending("a").string, 9) }
        #expect(await DocumentFixture.code { _ = try part.commit() } == .incomplete)
        #expect(part.discard())
        #expect(DocumentFixture.names(in: target).isEmpty)
    }

    @Test("Whoever does not want it any more is asked before each entry, and what is there stays", arguments: 0..<5)
    func cancelled(_ entries: Int) async throws {
        let target = try #require(LinkTarget(Array("a".utf8), at: try EntryPath(Array("z".utf8))))
        let part = try make([("a", .folder), ("a/b", FolderFixture.file(0)), ("z", .link(target))])
        var asked = 0
        let code = await DocumentFixture.code {
            try part.prepare {
                asked += 1
                return asked > entries
            }
        }
        #expect(code == .cancelled && asked == entries + 1)
        #expect(DocumentFixture.names(in: inside(part)) == [[], ["a"], ["a"], ["a"], ["a", "z"]][entries])
        #expect(try part.commit() == self.target.appending("folder"))
    }

    @Test("Folders are made wherever something is missing of their path")
    func missingFolders() throws {
        let deep = (0..<EntryPath.maximumDepth - 1).map { "f\($0)" }.joined(separator: "/")
        let part = try make([])
        let root = try SystemCalls.open(inside(part), O_RDONLY | O_DIRECTORY)
        for path in [deep, deep + "/x", "f0/f1/y/z", deep] {
            _ = try SystemCalls.openOrMakeFolder(try EntryPath(Array(path.utf8)), beneath: root)
            let status = try SystemCalls.status(at: inside(part).appending(path))
            #expect(status.st_mode & S_IFMT == S_IFDIR)
        }
        #expect(DocumentFixture.names(in: inside(part)) == ["f0"])
        part.discard()
    }

    @Test("No byte is written beyond what a file has")
    func excess() async throws {
        let part = try make([("a", FolderFixture.file(10))])
        for (count, offset) in [(11, UInt64(0)), (1, 10), (1, .max), (2, 9)] {
            let bytes = [UInt8](repeating: 1, count: count)
            #expect(await DocumentFixture.code { try part.write(bytes, toFile: 0, at: offset) } == .excess)
        }
        #expect(DocumentFixture.names(in: inside(part)).isEmpty)
        part.discard()
    }

    @Test("A link's target that was made for another entry is looked at again")
    func linkOfAnotherEntry() async throws {
        let deep = try EntryPath(Array("a/b/link".utf8))
        let target = try #require(LinkTarget(Array("../../x".utf8), at: deep))
        #expect(await DocumentFixture.code { _ = try make([("link", .link(target))]) } == .badName)
        #expect(DocumentFixture.names(in: self.target).isEmpty)
    }

    @Test(
        "What somebody else has put into the folder is not written to",
        arguments: ["link", "hard link", "pipe", "folder"])
    func planted(_ obstacle: String) async throws {
        let secret = try scratch.makeFile("secret", [7])
        for isReopened in [false, true] {
            var part = try make([("a", .folder), ("a/x", FolderFixture.file(3))])
            let path = inside(part).appending("a").appending("x")
            try SystemCalls.call { mkdir(inside(part).appending("a").string, 0o700) }
            if isReopened {
                part = try #require(try Part(reopening: part.tree, part.record, at: part.place))
            }
            switch obstacle {
            case "link": try SystemCalls.call { symlink(secret.string, path.string) }
            case "hard link": try SystemCalls.call { link(secret.string, path.string) }
            case "pipe": try SystemCalls.call { mkfifo(path.string, 0o600) }
            default: try SystemCalls.call { mkdir(path.string, 0o700) }
            }
            let code = await DocumentFixture.code { try part.write([1, 2, 3], toFile: 0, at: 0) }
            #expect(code == .writeFailed || code == .destinationUnsuitable)
            #expect(await DocumentFixture.code { _ = try part.commit() } != nil)
            #expect(try DocumentFixture.read(secret) == [7])
            #expect(part.discard())
        }
        #expect(DocumentFixture.names(in: target).isEmpty)
    }

    @Test("A folder that is a link by now leads nowhere")
    func folderBecomesLink() async throws {
        let outside = try scratch.makeFolder("outside")
        let part = try make([
            ("a", .folder), ("a/x", FolderFixture.file(1)), ("b", FolderFixture.file(1)), ("c", .folder),
            ("c/x", FolderFixture.file(1)),
        ])
        try part.write([1], toFile: 0, at: 0)
        try part.write([1], toFile: 1, at: 0)
        try SystemCalls.call { symlink(outside.string, inside(part).appending("c").string) }
        #expect(await DocumentFixture.code { try part.write([1], toFile: 2, at: 0) } != nil)
        #expect(await DocumentFixture.code { _ = try part.commit() } != nil)
        #expect(DocumentFixture.names(in: outside).isEmpty)
        part.discard()
    }

    @Test("Another folder in the part's place is neither put in place nor removed")
    func stranger() async throws {
        let part = try make([("x", FolderFixture.file(1))])
        try part.write([1], toFile: 0, at: 0)
        let stranger = try scratch.makeFolder("destination/stranger")
        try scratch.makeFile("destination/stranger/theirs", [9])
        try SystemCalls.call { rename(inside(part).string, scratch.filePath.appending("away").string) }
        try SystemCalls.call { rename(stranger.string, inside(part).string) }
        #expect(await DocumentFixture.code { _ = try part.commit() } == .writeFailed)
        #expect(try Part(reopening: part.tree, part.record, at: part.place) == nil)
        part.discard()
        #expect(DocumentFixture.names(in: inside(part)) == ["theirs"])
        #expect(DocumentFixture.names(in: scratch.filePath.appending("away")) == ["x"])
    }

    @Test("Entries whose origin tells no permissions are the owner's alone; set-id bits never come")
    func permissions() throws {
        let part = try make([
            ("plain", FolderFixture.file(1)), ("run", .file(.init(size: 1, isExecutable: true))), ("sub", .folder),
        ])
        try part.write([1], toFile: 0, at: 0)
        try part.write([1], toFile: 1, at: 0)
        #expect(try SystemCalls.status(at: inside(part)).st_mode & 0o7777 == 0o700)
        try SystemCalls.call { chmod(inside(part).appending("run").string, 0o6755) }
        let path = try part.commit()
        for (name, mode) in [("", mode_t(0o700)), ("plain", 0o600), ("run", 0o700), ("sub", 0o700)] {
            let path = name.isEmpty ? path : path.appending(name)
            #expect(try SystemCalls.status(at: path).st_mode & 0o7777 == mode, "\(name)")
        }
    }

    @Test("The thread that may reach nothing but the destination can do all of it")
    func confined() async throws {
        let place = try FolderFixture.place(target)
        let link = try #require(LinkTarget(Array("a/x".utf8), at: EntryPath(Array("link".utf8))))
        let tree = try FolderFixture.tree([("a", .folder), ("a/x", FolderFixture.file(3 << 20)), ("link", .link(link))])
        let thread = try PrivateThread(name: "test-confined", waking: EventLoop(name: "test"))
        let outcome = await thread.perform { () -> Result<FilePath, DocumentError> in
            do throws(DocumentError) {
                try? Landlock.confineThread(
                    receivingIn: place.folder.file, recordingIn: place.records.descriptor)
                let lost = try Part(creating: tree, at: place)
                let ones = [UInt8](repeating: 1, count: 1 << 20)
                try ones.withUnsafeBufferPointer { (ones) throws(DocumentError) in
                    try lost.write(UnsafeRawBufferPointer(ones), toFile: 0, at: 0)
                }
                lost.discard()
                let part = try Part(creating: tree, at: place)
                for index in 0..<3 {
                    try ones.withUnsafeBufferPointer { (ones) throws(DocumentError) in
                        try part.write(UnsafeRawBufferPointer(ones), toFile: 0, at: UInt64(index) << 20)
                    }
                }
                return .success(try part.commit())
            } catch {
                return .failure(error)
            }
        }
        let path = try outcome.get()
        #expect(DocumentFixture.names(in: path) == ["a", "link"])
        #expect(try SystemCalls.status(at: path.appending("link")).st_size == 3 << 20)
    }

    @Test(.enabled(if: DocumentFixture.isRoot, DocumentFixture.needsRoot))
    func fullDiskIsNoticed() async throws {
        let mounted = try MountedFolder(tmpfsAt: try scratch.makeFolder("full"), size: 4 << 20)
        // Nobody can say how much of a file with holes comes.
        let part = try make([("x", FolderFixture.file(64 << 20, isSparse: true))], in: mounted.path)
        let bytes = [UInt8](repeating: 1, count: 1 << 20)
        let code = await DocumentFixture.code {
            for index in 0..<5 { try part.write(bytes, toFile: 0, at: UInt64(index) << 20) }
        }
        #expect(code == .destinationFull)
        #expect(part.discard())
        #expect(DocumentFixture.names(in: mounted.path).isEmpty)
    }

    @Test(.enabled(if: DocumentFixture.isRoot, DocumentFixture.needsRoot))
    func fileSystemWithoutHolesAndPromisesWorks() throws {
        let mounted = try MountedFolder(ramfsAt: try scratch.makeFolder("unknown"))
        let part = try make([("x", FolderFixture.file(3 << 20, isSparse: true))], in: mounted.path)
        #expect(DocumentFixture.names(in: mounted.path).count == 1)
        try part.write([UInt8](repeating: 1, count: 3 << 20), toFile: 0, at: 0)
        try part.clear(100..<(2 << 20), ofFile: 0)
        let content = try DocumentFixture.read(try part.commit().appending("x"))
        let expected =
            [UInt8](repeating: 1, count: 100) + [UInt8](repeating: 0, count: (2 << 20) - 100)
            + [UInt8](repeating: 1, count: 1 << 20)
        #expect(content == expected)
    }

    @Test("An unprivileged user receives folders, and hears where they may not go")
    func unprivileged() async throws {
        let open = try scratch.makeFolder("open")
        let closed = try scratch.makeFolder("closed", mode: 0o755)
        for (path, mode) in [(open, mode_t(0o777)), (scratch.filePath, 0o755)] {
            try SystemCalls.call { chmod(path.string, mode) }
        }
        await #expect(processExitsWith: .success) {
            [open = open.string as String, closed = closed.string as String] in
            try DocumentFixture.becomeNobody()
            let parts = FilePath(open).appending("ledger")
            let tree = try FolderFixture.tree([("a", .folder), ("a/x", FolderFixture.file(1))])
            let code = await DocumentFixture.code {
                _ = try Part(creating: tree, at: try FolderFixture.place(FilePath(closed), ledger: parts))
            }
            #expect(code == .destinationNotWritable)
            let part = try Part(
                creating: tree, at: try FolderFixture.place(FilePath(open), umask: 0o077, ledger: parts))
            try part.write([1], toFile: 0, at: 0)
            let path = try part.commit()
            #expect(try DocumentFixture.read(path.appending("a").appending("x")) == [1])
        }
        #expect(DocumentFixture.names(in: closed).isEmpty && DocumentFixture.names(in: open) == ["folder", "ledger"])
    }

    @Test("Files, however many, hold few descriptors, and none when all is over")
    func descriptors() throws {
        let entries = (0..<300).flatMap { index -> [(String, DocumentEntry.Kind)] in
            let name = "d" + String(repeating: "0", count: 3 - String(index).count) + String(index)
            return [(name, .folder), (name + "/x", FolderFixture.file(1))]
        }
        let part = try make(entries)
        for index in 0..<300 {
            try part.write([1], toFile: index, at: 0)
            if index == 150 { #expect(DocumentFixture.openFiles(in: target).count <= 4) }
        }
        let path = try part.commit()
        #expect(DocumentFixture.names(in: path).count == 300)
        withExtendedLifetime(part) {}
    }
}
