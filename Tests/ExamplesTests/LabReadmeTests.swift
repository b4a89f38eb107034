// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Foundation
import Testing

/// The first handoff of the README, typed as it stands there.
@Suite(.serialized, .lab, .timeLimit(.minutes(3)))
struct LabReadmeTests {
    /// The lines under a heading that a host is to type, without their comments.
    private static func commands(under heading: String) throws -> [(host: String, command: String)] {
        let file = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../README.md")
        let part = try #require(
            try String(contentsOf: file, encoding: .utf8).components(separatedBy: heading + "\n").last?
                .components(separatedBy: "\n## ").first)
        return part.split(separator: "\n").compactMap { line in
            let halves = line.split(separator: "$", maxSplits: 1)
            guard line.hasPrefix("    "), halves.count == 2 else { return nil }
            let command = halves[1].components(separatedBy: " # ")[0]
            return (
                halves[0].trimmingCharacters(in: .whitespaces), command.trimmingCharacters(in: .whitespaces)
            )
        }
    }

    private static let passphrase = "correct horse battery staple"

    /// Types a command and what it asks for. It has ended when this returns, or it runs in the background.
    private func type(_ command: String, _ shell: LabShell) async throws {
        if command.hasSuffix("&") { return try await shell.type(command) }
        try await shell.start(command)
        try await shell.terminal.shows("ended 0")
    }

    /// Makes the account, as `baton` alone asks for it.
    private func create(_ shell: LabShell) async throws {
        try await shell.start("baton")
        try await shell.terminal.shows("Which one? (1-2)")
        try await shell.type("1")
        try await shell.terminal.shows("Passphrase:")
        try await shell.type(Self.passphrase)
        try await shell.terminal.shows("Once more:")
        try await shell.type(Self.passphrase)
        try await shell.terminal.shows("Write it down.", "ended 0")
    }

    /// Joins the account of the device that invites, as `baton` alone asks for it.
    private func join(_ shell: LabShell, _ inviter: LabShell) async throws {
        try await shell.start("baton")
        try await shell.terminal.shows("Which one? (1-2)")
        try await shell.type("2")
        let digits = try await shell.digits()
        try await inviter.terminal.shows("The six digits on its screen:")
        try await inviter.type(digits)
        try await shell.terminal.shows("leave everything as it is:")
        try await shell.type("yes")
        try await shell.terminal.shows("ended 0")
        try await inviter.terminal.shows("is in the account now.", "ended 0")
    }

    @Test("The six commands work in the order given")
    func firstHandoff() async throws {
        let lab = try await HandoffLab(members: 0)
        defer { lab.down() }
        let (laptop, desktop) = (try await LabShell(lab, 1), try await LabShell(lab, 2))
        for shell in [laptop, desktop] { try await shell.type("echo 'the report' >report.pdf; mkdir to; cd to") }
        let commands = try Self.commands(under: "## Your first handoff")
        #expect(commands.count == 6)
        for (name, command) in commands {
            let (shell, host) = name == "laptop" ? (laptop, 1) : (desktop, 2)
            switch command {
            case "baton account invite":
                try await shell.start(command)
                try await shell.terminal.shows("Passphrase (Enter alone to type the account key):")
                try await shell.type(Self.passphrase)
                try await shell.terminal.shows("On the network, this invitation is")
            case "baton":
                if host == 1 { try await create(shell) } else { try await join(shell, laptop) }
                // A lab host has no systemd, which would have started the node.
                try await type("baton node &", shell)
                try await eventually("the node runs") { try await lab.status(host) != nil }
            case "baton activities":
                try await eventually("it is listed") {
                    try await lab.run(host, "activities", "--json").lines.contains { $0.contains("report.pdf") }
                }
                try await type(command, shell)
                try await shell.terminal.shows("report.pdf")
            case _: try await type(command, shell)
            }
        }
        try await type("cat report.pdf", desktop)
        try await desktop.terminal.shows("the report")
    }
}
