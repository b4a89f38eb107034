// SPDX-License-Identifier: Apache-2.0

import Foundation
import SystemPackage
import Testing

@testable import BatonNode

private let names = "use up to 64 letters, digits, dots, hyphens and underscores"

@Suite("The file of shared folders")
struct SharedRootsTests {
    private func parse(_ text: String) throws(ConfigurationError) -> SharedRoots {
        try SharedRoots(parsing: Array(text.utf8))
    }

    @Test("A line names a folder, with spaces and whatever a path may have")
    func lines() throws {
        let roots = try parse(
            "# mine\r\n\nDocuments=~/Documents\n  Big.Disk-1_a=/mnt/the disk/.//disk=2 # x\t \r\nHome=~\n")
        #expect(roots.roots.map(\.name) == ["Documents", "Big.Disk-1_a", "Home"])
        let home = FilePath(try #require(ProcessInfo.processInfo.environment["HOME"]))
        #expect(roots.roots.map(\.folder) == [home.appending("Documents"), "/mnt/the disk/disk=2 # x", home])
        #expect(roots.roots.map(\.line) == [3, 4, 5])
        #expect(roots["Home"]?.line == 5 && roots["home"] == nil)
        #expect(try parse("").roots.isEmpty)
    }

    @Test(
        "An error is said with its place",
        arguments: [
            ("Documents", "line 1: NAME=FOLDER was expected"),
            ("\n =/x", "line 2: \"\" is no name: \(names)"),
            (".a=/x", "line 1: \".a\" is no name: \(names)"),
            ("a/b=/x", "line 1: \"a/b\" is no name: \(names)"),
            ("a=", "line 1: a has no folder"), ("a= ", "line 1: a has no folder"),
            ("a=x/y", "line 1: the folder \"x/y\" has to begin with / or ~/"),
            ("a=~u/x", "line 1: the folder \"~u/x\" has to begin with / or ~/"),
            ("a=/x\nb=/y\na=/z", "line 3: a is there already, in line 1"),
            ("a=/x\u{1B}y", "line 1: there is a control character"),
        ])
    func errors(text: String, problem: String) {
        #expect { try parse(text) } throws: { "\($0)" == problem }
    }

    @Test("64 folders fit, one more does not; the file is UTF-8")
    func bounds() throws {
        let full = (0..<SharedRoots.bound).map { "r\($0)=/r\($0)\n" }.joined()
        #expect(try parse(full).roots.count == 64)
        #expect { try parse(full + "one=/more") } throws: { "\($0)" == "line 65: there are over 64 folders" }
        #expect(throws: ConfigurationError.self) { try SharedRoots(parsing: [0x61, 0x3D, 0x2F, 0xFF]) }
        #expect(try parse(String(repeating: "n", count: 64) + "=/x").roots.count == 1)
        #expect(throws: ConfigurationError.self) { try parse(String(repeating: "n", count: 65) + "=/x") }
    }
}
