// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Glibc
import SystemPackage
import Testing

@testable import BatonDocuments

/// A folder changes while some of its files are sent. The others arrived before.
@Suite("Folder that changes")
struct FolderChangeTests {
    enum Change: CaseIterable {
        case none, lockCameAndWent, edited, grown, emptyWritten, added, addedBelow, removed, renamed, linkTurned,
            movedAway, replaced
    }

    @Test(
        "Changes beside the files that are asked for stop nothing: the folder goes out as it was offered",
        arguments: Change.allCases)
    func goesOn(_ change: Change) async throws {
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
        let reader = try await DocumentReader.open(document, ranges: [tree.layout.chunks(ofFile: comes)])
        pool.release(try #require(try await reader.next(from: pool)).buffer)

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
            while let records = try await reader.next(from: pool) { pool.release(records.buffer) }
        }
        #expect(code == nil)
        #expect(pool.lentCount == 0)
        await reader.close()
    }
}
