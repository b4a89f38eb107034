// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Glibc
import SystemPackage
import Testing

@testable import BatonDocuments

@Suite("Looking files up beneath a folder")
struct FileLookupTests {
    private final class Tree: Sendable {
        private let scratch: ScratchFolder
        var path: String { scratch.path }
        var root: FilePath { scratch.filePath.appending("root") }

        init() throws {
            scratch = try ScratchFolder()
            _ = try scratch.makeFolder("root")
            _ = try scratch.makeFolder("root/inner")
            try scratch.makeFile("root/inner/a", Array("hello".utf8))
            try scratch.makeFile("outside", Array("secret".utf8))
            let links = [
                "inside": "inner/a", "out": "../outside", "absolute": path + "/root/inner/a", "up": "..",
                "round": "inner/../inner/a", "dangling": "nowhere", "danglingOut": "../nowhere", "loop": "loop",
                "process": "/proc/self/root",
            ]
            for (name, target) in links {
                try SystemCalls.call { symlink(target, root.appending(name).string) }
            }
        }

        func find(_ path: String) throws -> FileLookup.Found {
            try FileLookup.find(path.split(separator: "/").map { Array($0.utf8) }, beneath: root)
        }
    }

    @Test("files and links that stay inside are found, what leaves the folder is not")
    func beneath() throws {
        let tree = try Tree()
        #expect(try tree.find("inner/a") == .file(size: 5))
        #expect(try tree.find("inside") == .file(size: 5))
        #expect(try tree.find("round") == .file(size: 5))
        #expect(try tree.find("inner") == .folder)
        #expect(try tree.find("") == .folder)
        for missing in ["nothing", "inner/nothing/more", "inner/a/b", "dangling"] {
            #expect(try tree.find(missing) == .missing, "\(missing)")
        }
        for outside in ["out", "absolute", "up/outside", "up", "danglingOut", "loop", "process/etc"] {
            #expect(try tree.find(outside) == .outside, "\(outside)")
        }
        #expect(throws: Errno.noSuchFileOrDirectory) {
            try FileLookup.find([], beneath: tree.root.appending("nowhere"))
        }
        #expect(throws: Errno.notDirectory) { try FileLookup.find([], beneath: tree.root.appending("inner/a")) }
    }

    @Test("a path is resolved as the kernel follows it")
    func resolved() throws {
        let tree = try Tree()
        let root = try FileLookup.resolved(tree.root)
        #expect(try FileLookup.resolved(tree.root.appending("up/root/inside")) == root.appending("inner/a"))
        #expect(
            try FileLookup.resolved(tree.root.appending("out")) == root.removingLastComponent().appending("outside"))
        #expect(throws: Errno.noSuchFileOrDirectory) { try FileLookup.resolved(tree.root.appending("dangling")) }
        #expect(throws: Errno.tooManySymbolicLinkLevels) { try FileLookup.resolved(tree.root.appending("loop")) }
    }
}
