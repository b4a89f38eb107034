import Foundation
import SystemPackage
import Testing

@testable import BatonDocuments

@Suite("Looking files up beneath a folder")
struct FileLookupTests {
    private final class Tree: Sendable {
        let path = FileManager.default.temporaryDirectory.path + "/baton-lookup-\(UUID().uuidString)"
        var root: FilePath { FilePath(path + "/root") }

        init() throws {
            let files = FileManager.default
            try files.createDirectory(atPath: path + "/root/inner", withIntermediateDirectories: true)
            try Data("hello".utf8).write(to: URL(filePath: path + "/root/inner/a"))
            try Data("secret".utf8).write(to: URL(filePath: path + "/outside"))
            let links = [
                "inside": "inner/a", "out": "../outside", "absolute": path + "/root/inner/a", "up": "..",
                "round": "inner/../inner/a", "dangling": "nowhere", "danglingOut": "../nowhere", "loop": "loop",
                "process": "/proc/self/root",
            ]
            for (name, target) in links {
                try files.createSymbolicLink(atPath: path + "/root/" + name, withDestinationPath: target)
            }
        }

        deinit { try? FileManager.default.removeItem(atPath: path) }

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
        #expect(try tree.find("inner") == .other)
        #expect(try tree.find("") == .other)
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
