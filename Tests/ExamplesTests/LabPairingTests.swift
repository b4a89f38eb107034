// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Foundation
import Testing

/// Pairing at real terminals of 80 columns, over a real network with Avahi.
@Suite(.serialized, .lab, .timeLimit(.minutes(5)))
struct LabPairingTests {
    private static let request = "The six digits on its screen:"

    /// The four characters of the invitation that a command has opened.
    private static func tag(_ inviter: LabShell) async throws -> String {
        try await inviter.terminal.shows("On the network, this invitation is")
        let match = try await inviter.terminal.screen().firstMatch(of: /invitation is ([a-z2-7]{4})\./)
        return String(try #require(match).output.1)
    }

    /// Types the digits of a joiner at the inviter, and yes at the joiner.
    private func pair(_ inviter: LabShell, _ joiner: LabShell) async throws {
        let digits = try await joiner.digits()
        try await inviter.terminal.shows(Self.request)
        try await inviter.type(digits)
        try await inviter.terminal.shows("Right. This is account", "Now answer on the new device.")
        try await joiner.terminal.shows("calls itself “laptop”.", "leave everything as it is:")
        try await joiner.type("yes")
        try await joiner.terminal.shows("is in account", "ended 0")
        try await inviter.terminal.shows("is in the account now.", "ended 0")
    }

    @Test("A device finds the invitation by multicast, joins by digits, and takes a document over")
    func multicast() async throws {
        let lab = try await HandoffLab(["laptop", "desktop", "tablet"], members: 1)
        defer { lab.down() }
        // Another service of the same user is announced meanwhile.
        _ = try await lab.startNode(1)
        let laptop = try await LabShell(lab, 1)
        for (host, name) in [(2, "desktop"), (3, "tablet")] {
            let joiner = try await LabShell(lab, host)
            // The joiner waits for an invitation that is opened later.
            try await joiner.start("baton account join --name \(name)")
            try await joiner.terminal.shows("Looking for an invitation")
            try await laptop.start("baton account invite --key-file '\(lab.keyFile.path)'")
            try await pair(laptop, joiner)
            _ = try await lab.startNode(host)
        }
        try await lab.awaitPeers(2, on: 1)
        let document = try lab.document("report", bytes: 100_000, seed: 77)
        _ = try await lab.offer(1, document.path)
        try await lab.watch(3).listed("report")
        let folder = try lab.destination("to")
        let accepted = try await lab.run(3, "accept", "--to", folder.path)
        #expect(accepted.status == 0, "\(accepted.errors)")
        #expect(try lab.contents(of: folder) == ["report"])
    }

    @Test(
        "The first run of a second device joins, and starts the service",
        .enabled(if: LabServiceManager.unavailableReason == nil, "\(LabServiceManager.unavailableReason ?? "")"))
    func firstRun() async throws {
        let lab = try await HandoffLab(members: 1)
        defer { lab.down() }
        let manager = try lab.startProgram(2, ["env", "-u", "BATON_HOME", "bash", LabServiceManager.script])
        try await manager.program.line(within: .seconds(40)) { $0 == "ready" }
        let (laptop, desktop) = (try await LabShell(lab, 1), try await LabShell(lab, 2))
        try await laptop.start("baton account invite --key-file '\(lab.keyFile.path)'")
        try await desktop.type("unset BATON_HOME")
        try await desktop.start("baton")
        try await desktop.terminal.shows("Which one? (1-2)")
        try await desktop.type("2")
        try await pair(laptop, desktop)
        try await desktop.terminal.shows("The node runs, and starts whenever you log in.", "Next: `baton devices`")
        try await desktop.start("baton status")
        try await desktop.terminal.shows("ended 0")
    }

    @Test("Without multicast the address does it, and each side says so")
    func withoutMulticast() async throws {
        let lab = try await HandoffLab(members: 1)
        defer { lab.down() }
        for host in 1...2 { try lab.lab.command("avahi", "\(host)", "stop") }
        let (laptop, desktop) = (try await LabShell(lab, 1), try await LabShell(lab, 2))
        try await laptop.start("baton account invite --key-file '\(lab.keyFile.path)'")
        try await laptop.terminal.shows(
            "baton account join --address 10.77.0.1", "The new device needs that address",
            "Avahi is not running: install and start avahi-daemon.")
        try await desktop.start("baton account join")
        try await desktop.terminal.shows("invitations cannot be looked for.", "--address ADDRESS", "ended 68")
        try await desktop.start("baton account join --address 10.77.0.1 --name desktop")
        try await pair(laptop, desktop)
    }

    @Test("Of several invitations the user chooses one by its characters")
    func several() async throws {
        let lab = try await HandoffLab(["laptop", "desktop", "server"], members: 1)
        defer { lab.down() }
        let other = try await lab.run(3, "account", "create", "--name", "server")
        let key = lab.folder.appending(path: "other-key")
        try Data((other.lines[0] + "\n").utf8).write(to: key)
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: key.path)
        let (laptop, server) = (try await LabShell(lab, 1), try await LabShell(lab, 3))
        try await laptop.start("baton account invite --key-file '\(lab.keyFile.path)'")
        try await server.start("baton account invite --key-file '\(key.path)'")
        let tag = try await Self.tag(laptop)
        _ = try await Self.tag(server)
        let desktop = try await LabShell(lab, 2)
        try await desktop.start("baton account join --name desktop")
        try await desktop.terminal.shows("Several devices invite.", "Which one? (1-2)")
        try await desktop.terminal.press("C-c")
        try await desktop.terminal.shows("Nothing was changed.", "ended 130")
        try await desktop.start("baton account join --name desktop")
        try await desktop.terminal.shows("Several devices invite.", "Which one? (1-2)")
        let line = try await desktop.terminal.screen().split(separator: "\n").first { $0.contains("  \(tag)  ") }
        let number = try #require(line?.trimmingCharacters(in: .whitespaces).first)
        try await desktop.type("\(number)")
        try await pair(laptop, desktop)
        try await server.terminal.press("C-c")
        try await server.terminal.shows("The invitation is over. Nothing was changed.", "ended 130")
    }

    @Test("^C at each question ends both sides, and nothing is stored")
    func interrupted() async throws {
        let lab = try await HandoffLab(members: 1)
        defer { lab.down() }
        let (laptop, desktop) = (try await LabShell(lab, 1), try await LabShell(lab, 2))
        let invite = "baton account invite --key-file '\(lab.keyFile.path)'"

        // While each of them waits for the other.
        try await desktop.start("baton account join")
        try await desktop.terminal.shows("Looking for an invitation")
        try await desktop.terminal.press("C-c")
        try await desktop.terminal.shows("Nothing was changed.", "ended 130")
        try await laptop.start("baton account invite")
        try await laptop.terminal.shows("Account key:")
        try await laptop.terminal.press("C-c")
        try await laptop.terminal.shows("ended 130")

        // The joiner at the digits: one try is gone, and the next joiner is asked about.
        try await laptop.start(invite)
        try await laptop.terminal.shows("On the network, this invitation is")
        try await desktop.start("baton account join")
        _ = try await desktop.digits()
        try await laptop.terminal.shows(Self.request)
        try await desktop.terminal.press("C-c")
        try await desktop.terminal.shows("Nothing was changed.", "ended 130")
        try await laptop.terminal.shows("That device is gone. 2 tries are left. Waiting for another...")

        // The inviter at the digits.
        try await desktop.start("baton account join")
        _ = try await desktop.digits()
        try await laptop.terminal.press("C-c")
        try await laptop.terminal.shows("The invitation is over. Nothing was changed.", "ended 130")
        try await desktop.terminal.shows("the other device turned this one away", "ended 77")

        // The joiner at its own question.
        try await laptop.start(invite)
        try await laptop.terminal.shows("On the network, this invitation is")
        try await desktop.start("baton account join")
        let digits = try await desktop.digits()
        try await laptop.terminal.shows(Self.request)
        try await laptop.type(digits)
        try await desktop.terminal.shows("leave everything as it is:")
        try await desktop.terminal.press("C-c")
        try await desktop.terminal.shows("Nothing was changed.", "ended 130")
        try await laptop.terminal.shows("the new device did not say that it joined", "ended 1")
        #expect(try await lab.run(2, "account", "show").status == 78)
    }
}
