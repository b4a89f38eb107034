// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Foundation
import Testing

@testable import BatonCLI

extension ScratchFolder {
    /// The list of shared folders of this home.
    fileprivate var file: String { path + "/config/shared-roots" }

    /// Runs the command in this home.
    fileprivate func run(_ arguments: String...) async throws -> BuiltCommand.Result {
        try await BuiltCommand.run(["roots"] + arguments, home: path, in: path)
    }
}

@Suite("baton roots")
struct RootsTests {
    private func makeHome() throws -> ScratchFolder {
        let home = try ScratchFolder("roots")
        try FileManager.default.createDirectory(atPath: home.path + "/Documents", withIntermediateDirectories: false)
        return home
    }

    @Test("a folder is added, listed and removed, and what the user wrote stays")
    func editing() async throws {
        let home = try makeHome()
        defer { home.remove() }
        let none = try await home.run()
        #expect(none.status == 0 && none.output.isEmpty)
        #expect(none.errors == "No folder is shared: add one with `baton roots add NAME FOLDER`.\n")

        let added = try await home.run("add", "Documents", "Documents")
        #expect(added.status == 0)
        #expect(
            added.errors
                == "Documents is \(home.path)/Documents on this device. Give the folder the same name on your other devices.\n"
        )
        let mode = try FileManager.default.attributesOfItem(atPath: home.file)[.posixPermissions] as? Int
        #expect(mode == 0o600)
        #expect(try await home.run("list").output == "Documents  \(home.path)/Documents\n")
        let json = try await home.run("list", "--json").output
        #expect(json == #"{"name":"Documents","folder":"\#(home.path)/Documents"}"# + "\n")

        let written = "# mine\n" + (try String(contentsOfFile: home.file, encoding: .utf8)) + "\nMusic = /m"
        try Data(written.replacing("Music = ", with: "Music=").utf8).write(to: URL(filePath: home.file))
        let again = try await home.run("add", "Documents", "Documents")
        #expect(again.status == ExitStatus.usage.rawValue)
        #expect(
            again.errors == "baton: \(home.file): line 5: Documents is there already, in line 2\n")
        #expect(try await home.run("add", "Second", ".").status == 0)
        #expect(try await home.run("remove", "Documents").errors == "Documents is no longer shared.\n")
        #expect(
            try String(contentsOfFile: home.file, encoding: .utf8) == "# mine\n\nMusic=/m\nSecond=\(home.path)\n")
        let listed = try await home.run()
        #expect(listed.output == "Music  /m\nSecond  \(home.path)\n")
        #expect(listed.errors == "baton: line 3: /m is no folder: make it first\n")
    }

    @Test("commands side by side lose none of each other's folders, and a link to the file stays one")
    func sideBySide() async throws {
        let home = try makeHome()
        defer { home.remove() }
        let elsewhere = home.path + "/elsewhere"
        try FileManager.default.createDirectory(atPath: home.path + "/config", withIntermediateDirectories: true)
        try Data("# mine\n".utf8).write(to: URL(filePath: elsewhere))
        try FileManager.default.createSymbolicLink(atPath: home.file, withDestinationPath: elsewhere)
        let names = (1...12).map { "Folder\($0)" }
        for name in names {
            try FileManager.default.createDirectory(atPath: home.path + "/" + name, withIntermediateDirectories: true)
        }
        try await withThrowingDiscardingTaskGroup { group in
            for name in names {
                group.addTask {
                    let added = try await home.run("add", name, name)
                    #expect(added.status == 0, "\(added.errors)")
                }
            }
        }
        let lines = try String(contentsOfFile: elsewhere, encoding: .utf8).split(separator: "\n").sorted()
        #expect(lines == (["# mine"] + names.map { "\($0)=\(home.path)/\($0)" }).sorted())
        #expect(try FileManager.default.destinationOfSymbolicLink(atPath: home.file) == elsewhere)
    }

    @Test("what cannot be shared is refused with a sentence, and a broken file by its line")
    func refusals() async throws {
        let home = try makeHome()
        defer { home.remove() }
        let missing = try await home.run("add", "Documents", "nowhere")
        #expect(missing.status == ExitStatus.usage.rawValue)
        #expect(missing.errors == "baton: \(home.path)/nowhere is no folder: make it first\n")
        for name in [".", "..", ".hidden", "a/b", "a b", "a=b", "é", String(repeating: "a", count: 65)] {
            let refused = try await home.run("add", "--", name, "Documents")
            #expect(refused.status == ExitStatus.usage.rawValue && refused.errors.contains("is no name: use up to 64"))
        }
        #expect(!FileManager.default.fileExists(atPath: home.file))
        let unknown = try await home.run("remove", "Documents")
        #expect(unknown.status == ExitStatus.usage.rawValue)
        #expect(unknown.errors == "baton: no shared folder is called \"Documents\": see `baton roots`\n")

        try home.write("# mine\nDocuments=relative\n", to: "config/shared-roots")
        let broken = try await home.run()
        #expect(broken.status == ExitStatus.usage.rawValue && broken.output.isEmpty)
        #expect(
            broken.errors
                == "baton: \(home.file): line 2: the folder \"relative\" has to begin with / or ~/\n")
    }
}
