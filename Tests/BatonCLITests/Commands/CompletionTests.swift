// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Foundation
import Glibc
import SystemPackage
import Testing

@testable import BatonCLI

/// The built command as a shell asks it for words.
@Suite("Live completions", .timeLimit(.minutes(3)))
struct CompletionTests {
    /// The call of a completion script for an empty last word.
    private static func call(_ words: [String], _ argument: String) -> [String] {
        let subcommands = words.filter { !$0.hasPrefix("-") }
        return ["---completion"] + subcommands + ["--", argument, String(words.count + 1), "0", "baton"] + words + [""]
    }

    private static let live = [
        call(["accept"], "positional@0"), call(["accept", "--from"], "--from"), call(["withdraw"], "positional@0"),
        call(["devices", "revoke"], "positional@0"), call(["accept", "--application"], "--application"),
        call(["roots", "remove"], "positional@0"),
    ]

    @Test("without a node nothing is said", arguments: live)
    func noNode(_ arguments: [String]) async throws {
        let result = try await BuiltCommand.run(arguments)
        #expect(result.status == 0 && result.output == "\n" && result.errors.isEmpty, "\(result)")
    }

    @Test("own offers, applications and shared folders are completed")
    func local() async throws {
        let folder = try ScratchFolder("completion")
        defer { folder.remove() }
        let home = folder.path
        try #require(try await BuiltCommand.run(["account", "create"], home: home).status == 0)
        try #require(try await BuiltCommand.run(["roots", "add", "Music", home], home: home).status == 0)
        let node = try BuiltNode(["BATON_HOME": home], in: home)
        try await node.ready()
        let offer = try ChildProcess(
            [BuiltCommand.path.string, "offer", "--url", "https://swift.org", "--json"],
            environment: ProcessInfo.processInfo.environment.merging(["BATON_HOME": home]) { $1 },
            output: .file(home + "/offer"), error: .null)
        defer { offer.signal(SIGTERM) }
        let offered = Self.call(["withdraw"], "positional@0")
        try await eventually("the offer is completed") {
            try await BuiltCommand.run(offered, home: home).output.wholeMatch(of: /[0-9a-f]{8}\n/) != nil
        }
        let roots = try await BuiltCommand.run(Self.call(["roots", "remove"], "positional@0"), home: home)
        #expect(roots.output == "Music\n" && roots.errors.isEmpty)
    }

    @Test("a node that does not answer is not waited for")
    func hangingNode() async throws {
        let folder = try ScratchFolder("completion")
        defer { folder.remove() }
        let home = folder.path
        try #require(try await BuiltCommand.run(["account", "create"], home: home).status == 0)
        let node = try BuiltNode(["BATON_HOME": home], in: home)
        try await node.ready()
        node.send(SIGSTOP)
        defer { node.send(SIGCONT) }
        let result = try await BuiltCommand.run(Self.call(["accept"], "positional@0"), home: home)
        #expect(result.status == 0 && result.output == "\n" && result.errors.isEmpty)
    }
}

/// The same between two devices.
@Suite("Live completions between devices", .serialized, .lab, .timeLimit(.minutes(3)))
struct LabCompletionTests {
    @Test("activities and devices are completed")
    func others() async throws {
        let lab = try await HandoffLab()
        defer { lab.down() }
        _ = try await lab.startNode(1)
        _ = try await lab.startNode(2)
        try await lab.awaitPeers(1, on: 2)
        let offer = try lab.start(1, "offer", "--url", "https://swift.org")
        defer { offer.program.closeInput() }
        try await eventually("the activity is completed") {
            let completed = try await lab.run(
                2, "---completion", "accept", "--", "positional@0", "2", "0", "baton", "accept", "")
            return completed.lines.count == 1 && completed.lines[0].wholeMatch(of: /[0-9a-f]{8}/) != nil
        }
        try await eventually("the device is completed") {
            try await lab.run(
                2, "---completion", "accept", "--", "--from", "3", "0", "baton", "accept", "--from", ""
            ).lines == ["laptop"]
        }
        // The completion of bash expands the words that it is given.
        // U+0D4E is a letter, and makes one character of itself and what follows.
        let renamed = try await lab.run(1, "devices", "rename", "\u{D4E}`true\u{D4E}`phone")
        #expect(renamed.status == 0, "\(renamed.errors)")
        try await eventually("a device whose name is a command is completed by its id") {
            let completed = try await lab.run(
                2, "---completion", "accept", "--", "--from", "3", "0", "baton", "accept", "--from", "")
            return completed.lines.count == 1 && completed.lines[0].wholeMatch(of: /[a-z2-7]{8}/) != nil
        }
    }
}
