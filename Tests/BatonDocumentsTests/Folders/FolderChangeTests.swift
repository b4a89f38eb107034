// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Glibc
import SystemPackage
import Testing

@testable import BatonDocuments

/// What changes in a folder while some of its files are sent, the rest having come before.
@Suite("Folder that changes")
struct FolderChangeTests {
    enum Change: CaseIterable {
        case none, lockCameAndWent, edited, grown, emptyWritten, added, addedBelow, removed, renamed, linkTurned,
            movedAway, replaced
    }

    @Test(
        "Whatever changes, also beyond what is asked for, is noticed before the last records go",
        arguments: Change.allCases)
    func noticed(_ change: Change) async throws {
        let scratch = try ScratchFolder()
        let root = try scratch.makeFolder("folder")
        func file(_ name: String) -> FilePath { root.appending(name) }
        try DocumentFixture.write(DocumentFixture.content(1 << 20, seed: 1), to: file("came"))
        try DocumentFixture.write(DocumentFixture.content(3 << 20, seed: 2), to: file("comes"))
        try DocumentFixture.write([], to: file("empty"))
        try SystemCalls.call { mkdir(file("below").string, 0o755) }
        try SystemCalls.call { symlink("came", file("link").string) }
        // So that another time of theirs is another one, however coarse the file system's clock is.
        for folder in [file("below"), root] { try DocumentFixture.backdate(folder) }
        let pool = BufferPool(budget: 4 << 20)
        let document = try DocumentScan.scan(root)
        let tree = document.tree
        let comes = try #require(
            (0..<tree.layout.fileCount).first { tree.entry(ofFile: $0).path.description == "comes" })
        let reader = try await DocumentReader.open(document, ranges: [tree.layout.chunks(ofFile: comes)], pool: pool)
        pool.release(try #require(try await reader.next()).buffer)

        switch change {
        case .none: break
        case .lockCameAndWent:
            try DocumentFixture.write([], to: file(".~lock"))
            try SystemCalls.call { unlink(file(".~lock").string) }
        case .edited: try DocumentFixture.write([9], to: file("came"), at: 5)
        case .grown: try DocumentFixture.write([9], to: file("came"), at: 1 << 20)
        case .emptyWritten: try DocumentFixture.write([9], to: file("empty"), at: 0)
        case .added: try DocumentFixture.write([9], to: file("new"))
        case .addedBelow: try DocumentFixture.write([], to: file("below/new"))
        case .removed: try SystemCalls.call { unlink(file("came").string) }
        case .renamed: try SystemCalls.call { rename(file("empty").string, file("other").string) }
        case .linkTurned:
            try SystemCalls.call { unlink(file("link").string) }
            try SystemCalls.call { symlink("comes", file("link").string) }
        case .movedAway: try SystemCalls.call { rename(root.string, scratch.filePath.appending("elsewhere").string) }
        case .replaced:
            let copy = scratch.filePath.appending("copy")
            #expect(
                try ChildProcess.run(["cp", "-a", root.string, copy.string], output: .inherited).ending == .exited(0))
            try SystemCalls.call { rename(root.string, scratch.filePath.appending("elsewhere").string) }
            try SystemCalls.call { rename(copy.string, root.string) }
        }
        let code = await DocumentFixture.code {
            while let records = try await reader.next() { pool.release(records.buffer) }
        }
        #expect(code == ([.none, .lockCameAndWent, .movedAway].contains(change) ? nil : .sourceChanged))
        #expect(pool.lentCount == 0)
        await reader.close()
    }

    enum Trouble: CaseIterable {
        case lookedAt, walked, noDescriptors
    }

    @Test("That something cannot be looked at any more, as the last records go, is no change of it")
    func unreadable() async {
        await #expect(processExitsWith: .success) {
            try DocumentFixture.becomeNobody()
            for trouble in Trouble.allCases {
                let scratch = try ScratchFolder()
                let root = try scratch.makeFolder("folder")
                let below = try scratch.makeFolder("folder/below")
                try scratch.makeFile("folder/file", DocumentFixture.content(1 << 20, seed: 1))
                if trouble == .lookedAt { try scratch.makeFile("folder/below/empty", []) }
                try DocumentFixture.backdate(root)
                let document = try DocumentScan.scan(root)
                let reader = try await DocumentReader.open(document, pool: BufferPool(budget: 4 << 20))
                // As if something had come and gone, so that all of it is walked again.
                if trouble != .lookedAt { try DocumentFixture.backdate(root, by: 60) }
                let read = { await DocumentFixture.code { _ = try await reader.next() } }
                if trouble == .noDescriptors {
                    #expect(try await DocumentFixture.withoutDescriptors(read) == .busy)
                } else {
                    try SystemCalls.call { chmod(below.string, 0) }
                    #expect(await read() == .unreadable, "\(trouble)")
                }
                await reader.close()
                try SystemCalls.call { chmod(below.string, 0o755) }
            }
        }
    }

    @Test("That a file has holes, which file systems tell late, is no change of the folder")
    func holes() throws {
        let scratch = try ScratchFolder()
        let root = try scratch.makeFolder("folder")
        let file = root.appending("file")
        try DocumentFixture.write(DocumentFixture.content(1 << 20, seed: 1), to: file)
        let offered = try DocumentScan.scan(root)
        var builder = DocumentTree.Builder(offered.tree.label)
        for index in 0..<offered.tree.entryCount {
            var entry = offered.tree[index]
            if case .file(var file) = entry.kind {
                file.isSparse.toggle()
                entry.kind = .file(file)
            }
            // It is looked at as a whole.
            if entry.path.isRoot { entry.modified = nil }
            try builder.append(entry)
        }
        let other = ScannedDocument(path: root, tree: try builder.finish(), leftOut: .init())
        try DocumentFiles(other).requireUnchangedFolder()
        try DocumentFixture.write([9], to: file, at: 5)
        #expect(throws: DocumentError.self) { try DocumentFiles(other).requireUnchangedFolder() }
    }
}
