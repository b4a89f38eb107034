// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonTestSupport
import Glibc
import SystemPackage
import Testing

@testable import BatonDocuments

@Suite("Scan of a document")
struct DocumentScanTests {
    let scratch: ScratchFolder
    let folder: FilePath

    init() throws {
        scratch = try ScratchFolder()
        folder = try scratch.makeFolder("folder")
    }

    private func paths(_ document: ScannedDocument) -> [String] {
        (0..<document.tree.entryCount).map { document.tree[$0].path.description }
    }

    @Test func fileIsATreeOfOneEntry() throws {
        let path = try scratch.makeFile("report.pdf", [1, 2, 3], mode: 0o755)
        let document = try DocumentScan.scan(path)
        #expect(document.tree.entryCount == 1 && !document.tree.isFolder)
        #expect(document.tree.label.description == "report.pdf" && document.tree.size == 3)
        let file = try #require(document.tree[0].file)
        #expect(file.isExecutable && !file.isSparse)
        let files = try DocumentFiles(document)
        let opened = try files.open(file: 0)
        try opened.require(file.version)
        #expect(try FolderFixture.read(opened, 0..<3) == [1, 2, 3])
        #expect(document.leftOut.message == nil)
    }

    @Test func entriesComeInTheOrderOfManifests() throws {
        for name in ["a", "a/b", "a.d"] { _ = try scratch.makeFolder("folder/" + name) }
        for name in ["a/b/c", "a/b.c", "a.txt", "Z", "a b"] { try scratch.makeFile("folder/" + name, []) }
        let document = try DocumentScan.scan(folder)
        #expect(paths(document) == ["", "Z", "a", "a/b", "a/b/c", "a/b.c", "a b", "a.d", "a.txt"])
        #expect(document.tree.isFolder && document.tree.layout.fileCount == 5)
    }

    @Test func linksThatStayInsideStayLinks() throws {
        _ = try scratch.makeFolder("folder/deep")
        try scratch.makeFile("outside", [7])
        let links = [
            "kept": "deep", "deep/up": "../kept", "nowhere": "nothing/there", "absolute": "/etc", "out": "../outside",
            "deep/out": "../../outside", "deep/hidden": "x/../../../outside",
        ]
        for (name, target) in links { try SystemCalls.call { symlink(target, folder.appending(name).string) } }
        let document = try DocumentScan.scan(folder)
        #expect(paths(document) == ["", "deep", "deep/up", "kept", "nowhere"])
        #expect(document.tree[3].kind == .link(try #require(LinkTarget(Array("deep".utf8), at: document.tree[3].path))))
        #expect(document.leftOut.count == 4)
        #expect(document.leftOut.examples.map(\.description) == ["absolute", "deep/hidden", "deep/out"])
        let message = try #require(document.leftOut.message)
        #expect(message.hasPrefix("Not sent: 'absolute', 'deep/hidden', 'deep/out' and 1 more."))
    }

    @Test func theUsersOwnLinkIsFollowed() throws {
        try scratch.makeFile("folder/x", [1])
        let link = scratch.filePath.appending("link")
        try SystemCalls.call { symlink("folder", link.string) }
        let document = try DocumentScan.scan(link)
        #expect(document.tree.label.description == "link" && document.tree.size == 1)
        _ = try DocumentFiles(document).open(file: 0)
    }

    @Test func folderIsCalledByItsNameHoweverItWasReached() throws {
        for path in [folder.appending("."), scratch.filePath.appending("x").appending("..").appending("folder")] {
            _ = try? scratch.makeFolder("x")
            #expect(try DocumentScan.scan(path).tree.label.description == "folder")
        }
        #expect(
            try DocumentScan.scan(scratch.filePath.appending("x").appending("..")).tree.label.description
                == scratch.filePath.lastComponent?.string)
    }

    @Test func whatIsNoFileIsNeverOpened() throws {
        try SystemCalls.call { mkfifo(folder.appending("pipe").string, 0o600) }
        let document = try DocumentScan.scan(folder)
        #expect(document.tree.entryCount == 1 && document.leftOut.count == 1)
        #expect(try DocumentScan.scan("/proc/sys/kernel/random").tree.size == 0)
        #expect(try DocumentScan.scan("/proc/sys/kernel/random").leftOut.count > 0)
    }

    @Test func missingAndOddPathsAreNamed() async throws {
        #expect(await DocumentFixture.code { _ = try DocumentScan.scan(folder.appending("nothing")) } == .missing)
        #expect(await DocumentFixture.code { _ = try DocumentScan.scan("/dev/null") } == .notRegularFile)
        #expect(await DocumentFixture.code { _ = try DocumentScan.scan("/") } != nil)
    }

    @Test(arguments: ["folder/sub/secret", "folder/closed"])
    func unreadableEntriesAreNamed(_ name: String) async throws {
        _ = try scratch.makeFolder("folder/sub")
        if name.hasSuffix("closed") {
            _ = try scratch.makeFolder(name, mode: 0)
        } else {
            try scratch.makeFile(name, [1], mode: 0)
        }
        try SystemCalls.call { chmod(scratch.path, 0o755) }
        await #expect(processExitsWith: .success) {
            [folder = folder.string as String, name = name as String] in
            try DocumentFixture.becomeNobody()
            do {
                _ = try DocumentScan.scan(FilePath(folder))
                Issue.record("it was read")
            } catch {
                let error = try #require(error as? DocumentError)
                #expect(error.code == .unreadable && error.subject.hasSuffix(name))
            }
        }
        try SystemCalls.call { chmod(scratch.filePath.appending(name).string, 0o755) }
    }

    @Test func aCancelledTaskScansNoFurtherAndGivesItsRoomBack() async throws {
        for number in 0..<50 { try scratch.makeFile("folder/\(number)", [1]) }
        let part = ByteBudget(bytes: 1 << 20).part(reserved: 0, ceiling: 1 << 20)
        let cancelled = Task { [folder] in
            withUnsafeCurrentTask { $0?.cancel() }
            return await DocumentFixture.code { _ = try DocumentScan.scan(folder, room: ByteReservation(in: part)) }
        }
        #expect(await cancelled.value == .cancelled)
        #expect(part.held == 0 && DocumentFixture.openFiles(in: folder).isEmpty)
        let document = try DocumentScan.scan(folder, room: ByteReservation(in: part))
        // The names that were listed meanwhile have been given back.
        #expect(part.held > 50 * 80 && part.held < 16 << 10, "\(part.held)")
        withExtendedLifetime(document) {}
    }

    @Test func aFolderThatTheBudgetHasNoRoomForIsRefused() async throws {
        for number in 0..<50 { try scratch.makeFile("folder/\(number)", [1]) }
        let part = ByteBudget(bytes: 2000).part(reserved: 0, ceiling: 2000)
        #expect(
            await DocumentFixture.code { _ = try DocumentScan.scan(folder, room: ByteReservation(in: part)) } == .busy)
        #expect(part.held == 0 && DocumentFixture.openFiles(in: folder).isEmpty)
    }

    @Test func depthIsBounded() async throws {
        var path = folder
        for _ in 0..<EntryPath.maximumDepth {
            path.append("d")
            try SystemCalls.call { mkdir(path.string, 0o755) }
        }
        #expect(try DocumentScan.scan(folder).tree.entryCount == EntryPath.maximumDepth + 1)
        try SystemCalls.call { mkdir(path.appending("d").string, 0o755) }
        #expect(await DocumentFixture.code { _ = try DocumentScan.scan(folder) } == .tooDeep)
        #expect(DocumentFixture.openFiles(in: folder).isEmpty)
    }

    @Test func lengthOfPathsIsBounded() async throws {
        let name = String(repeating: "n", count: 255)
        // 16 names and the slashes between them are the 4095 bytes that a path may have.
        let home = try #require(getcwd(nil, 0))
        free(home)
        var parent = try SystemCalls.open(folder, O_RDONLY | O_DIRECTORY)
        for depth in 1...17 {
            try SystemCalls.makeFolder(Array(name.utf8), in: parent, mode: 0o755)
            parent = try SystemCalls.open(Array(name.utf8), beneath: parent, O_RDONLY | O_DIRECTORY)
            let code = await DocumentFixture.code { _ = try DocumentScan.scan(folder) }
            #expect(code == (depth <= 16 ? nil : .tooDeep), "\(depth)")
        }
        let root = try SystemCalls.open(folder, O_RDONLY | O_DIRECTORY)
        try FolderRemoval.removeContents(of: root)
        #expect(DocumentFixture.names(in: folder).isEmpty)
    }

    @Test func numberOfEntriesIsBounded() async throws {
        let sub = try scratch.makeFolder("folder/sub")
        let number = try SystemCalls.open(sub, O_RDONLY | O_DIRECTORY)
        let file = try scratch.makeFile("folder/sub/0", [])
        // Second names of few files, which are made faster. The folder, "sub" and 99,998 in it: the limit.
        var source = file.string
        for index in 1..<DocumentTree.entryLimit - 2 {
            guard index % 50_000 != 0 else {
                source = try scratch.makeFile("folder/sub/\(index)", []).string
                continue
            }
            try SystemCalls.call { linkat(AT_FDCWD, source, number.rawValue, String(index), 0) }
        }
        let document = try DocumentScan.scan(folder)
        #expect(document.tree.entryCount == DocumentTree.entryLimit)
        try scratch.makeFile("folder/more", [])
        #expect(await DocumentFixture.code { _ = try DocumentScan.scan(folder) } == .tooManyEntries)
        try FolderRemoval.removeContents(of: try SystemCalls.open(folder, O_RDONLY | O_DIRECTORY))
        #expect(DocumentFixture.names(in: folder).isEmpty)
    }

    @Test("A folder that changes all the time gives a whole answer or says so")
    func changingFolder() async throws {
        for index in 0..<50 { try scratch.makeFile("folder/\(index)", [1]) }
        let path = folder
        let attack = Task.detached {
            while !Task.isCancelled {
                for index in 0..<50 { rename(path.appending("\(index)").string, path.appending("r\(index)").string) }
                for index in 0..<50 { rename(path.appending("r\(index)").string, path.appending("\(index)").string) }
                try? await Task.sleep(for: .microseconds(100))
            }
        }
        for _ in 0..<100 {
            do {
                // In each of its states it has 50 files.
                #expect(try DocumentScan.scan(folder).tree.entryCount == 51)
            } catch {
                #expect(error.code == .sourceChanged)
            }
        }
        attack.cancel()
        await attack.value
        #expect(try DocumentScan.scan(folder).tree.entryCount == 51)
    }

    @Test(.enabled(if: DocumentFixture.isRoot, DocumentFixture.needsRoot))
    func mountsBelongToTheFolderAndLoopsEnd() throws {
        let mounted = try MountedFolder(tmpfsAt: try scratch.makeFolder("folder/mounted"), size: 1 << 20)
        try scratch.makeFile("folder/mounted/x", [1])
        #expect(paths(try DocumentScan.scan(folder)) == ["", "mounted", "mounted/x"])
        let loop = try scratch.makeFolder("folder/mounted/loop")
        try SystemCalls.call { mount(folder.string, loop.string, nil, 4096, nil) }
        defer { umount2(loop.string, 2) }
        let document = try DocumentScan.scan(folder)
        #expect(document.leftOut.count == 1)
        #expect(document.leftOut.examples.map(\.description) == ["mounted/loop"])
        withExtendedLifetime(mounted.path) {}
    }

    enum Change: CaseIterable {
        case edited, replaced, truncated, grown, removed, becameFolder, becameLink
    }

    @Test(arguments: Change.allCases)
    func changesOfAFileShow(_ change: Change) async throws {
        let path = try scratch.makeFile("folder/x", [1, 2, 3])
        try DocumentFixture.backdate(path)
        let document = try DocumentScan.scan(folder)
        let files = try DocumentFiles(document)
        let before = try files.open(file: 0)
        try before.require(document.tree.entry(ofFile: 0).file?.version)
        try before.requireUnchanged()
        var isThere = true
        switch change {
        case .edited: try DocumentFixture.write([9], to: path)
        case .truncated: try SystemCalls.call { truncate(path.string, 1) }
        case .grown: try DocumentFixture.write([9], to: path, at: 3)
        case .replaced:
            try scratch.makeFile("other", [1, 2, 3])
            try SystemCalls.call { rename(scratch.filePath.appending("other").string, path.string) }
        case .removed:
            try SystemCalls.call { unlink(path.string) }
            isThere = false
        case .becameFolder:
            try SystemCalls.call { unlink(path.string) }
            _ = try scratch.makeFolder("folder/x")
            isThere = false
        case .becameLink:
            try SystemCalls.call { unlink(path.string) }
            try SystemCalls.call { symlink("/etc/passwd", path.string) }
            isThere = false
        }
        #expect(await DocumentFixture.code { try before.requireUnchanged() } == .sourceChanged)
        var identity: FileIdentity?
        let code = await DocumentFixture.code { identity = try files.open(file: 0).identity }
        #expect(code == (isThere ? nil : .sourceChanged))
        #expect(identity != before.identity)
    }

    @Test func folderThatIsMovedAwayIsStillTheOneThatIsRead() throws {
        try scratch.makeFile("folder/x", [1])
        let document = try DocumentScan.scan(folder)
        let files = try DocumentFiles(document)
        try SystemCalls.call { rename(folder.string, scratch.filePath.appending("moved").string) }
        try files.open(file: 0).require(document.tree.entry(ofFile: 0).file?.version)
    }
}
