// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Foundation
import Testing

/// The attacks that need a network: real nodes, real Avahi, and an attacker on the same link. One lab at a time.
@Suite("Attacks on a network", .serialized, .lab, .timeLimit(.minutes(5)))
struct LabAttackTests {
    /// A host of the attacker's, on the link of the others and of no account.
    private static let stranger = 3

    /// What is recorded on the laptop's link, and by whom.
    struct Tap {
        let program: HostCommand
        let file: URL

        init(_ lab: HandoffLab, host: Int) async throws {
            file = lab.folder.appendingPathComponent("capture-\(UUID().uuidString)")
            program = try lab.startProgram(host, ["python3", "-c", HostilePrograms.tap, file.path])
            try await program.program.line { $0 == "ready" }
        }

        /// The recording so far.
        func now() throws -> Capture { try Capture(file) }

        func end() async throws -> Capture {
            try await program.end(by: SIGKILL)
            return try Capture(file)
        }
    }

    /// Martin et al., PoPETs 2019; Celosia and Cunche, PoPETs 2020: what a listener learns from a whole session, from
    /// the announcement to the end of the document.
    @Test("Passive capture of a whole session, and probing with what was captured")
    func passiveCapture() async throws {
        let names = ["annas-laptop", "annas-desktop", "stranger"]
        // The nodes run as this user of this machine, whatever their devices are called.
        let people = [NSUserName(), ProcessInfo.processInfo.hostName].filter { $0.utf8.count >= 4 }
        #expect(!people.isEmpty)
        // Said in the title, which is sealed: nothing else says them.
        let title = "Letter of \(people.joined(separator: " at "))"
        let userInfo = "the-recipient-is-the-board"
        let secrets = [
            title, "org.example.secret-plans", userInfo, "https://intranet.example.org/board", "salaries-2026.csv",
            "a line of the document itself", "a line of the stream",
        ]
        let lab = try await HandoffLab(names, members: 2)
        defer { lab.down() }
        let tap = try await Tap(lab, host: 1)
        // The same for as long as it is probed.
        let port = try await lab.startNode(1, "--port", "47100").port
        _ = try await lab.startNode(2)
        try await lab.awaitPeers(1, on: 2)
        try await lab.awaitPeers(1, on: 1)
        let watch = try lab.watch(2)

        let note = try await lab.offer(
            1, "--type", "org.example.secret-plans", "--title", title, "--user-info", #"{"to":"\#(userInfo)"}"#,
            "--web-page-url", "https://intranet.example.org/board", "--serve", "cat")
        try await watch.listed(title)
        let payload = try await lab.run(2, "accept", "--print", note.id)
        #expect(payload.lines.contains { $0.contains(userInfo) }, "\(payload.lines) \(payload.errors)")
        let stream = try lab.start(2, "accept", "--stream", note.id)
        stream.program.send("a line of the stream")
        try await stream.program.line { $0.contains("a line of the stream") }
        stream.program.closeInput()
        _ = try await stream.end()

        let document = lab.folder.appendingPathComponent("salaries-2026.csv")
        try Data(String(repeating: "a line of the document itself\n", count: 10_000).utf8).write(to: document)
        let file = try await lab.offer(1, document.path)
        try await watch.listed("salaries-2026.csv")
        let inbox = try lab.destination("inbox")
        #expect(try await lab.run(2, "accept", file.id, "--to", inbox.path).status == 0)
        try await file.command.end(by: SIGTERM)
        try await note.command.end(by: SIGTERM)
        let session = try await tap.end()
        let own = session.records.filter { !$0.text.isEmpty }
        #expect(!own.isEmpty && session.said.count >= 2)
        // A stranger repeats the desktop's first message to the laptop: unchanged, and with its last byte changed.
        let toLaptop = session.said.filter { direction, bytes in
            direction.target.suffix(2) == [UInt8(port >> 8), UInt8(port & 0xFF)] && bytes.first == 0x16
        }
        let recorded = try #require(toLaptop.values.first)
        let hello = Array(recorded.prefix(5 + Int(recorded[3]) << 8 + Int(recorded[4])))
        var changed = hello
        changed[changed.count - 1] ^= 1
        let messages = [hello, changed, Array(recorded.prefix(hello.count + 20))]
        let probed = try await answers(of: port, to: messages, in: lab)
        await attack("an answer to what was recorded of a session") {
            Outcome(succeeds: probed.contains { $0 != "0" })
        }
        await attack("reading a whole session from the wire") {
            Outcome(succeeds: secrets.contains { session.holds($0) })
        }
        await attack("reading who talks from the wire") {
            Outcome(succeeds: names.prefix(2).contains { session.holds($0) })
        }
        await attack("reading the user's and the machine's real name from the wire") {
            Outcome(succeeds: people.contains { session.holds($0) })
        }
        await attack("telling idle from busy by the size of the records") {
            Outcome(succeeds: Set(own.map(\.text.count)).count > 1)
        }
    }

    /// How many bytes a stranger hears from the laptop's port for each message.
    private func answers(of port: Int, to messages: [[UInt8]], in lab: HandoffLab) async throws -> [String] {
        let prober = try lab.startProgram(
            Self.stranger, ["python3", "-c", HostilePrograms.prober, "10.77.0.1", "\(port)"])
        for message in messages { prober.program.send(message.map { String(format: "%02x", $0) }.joined()) }
        prober.program.closeInput()
        let ended = try await prober.end(within: .seconds(120))
        #expect(ended.lines.count == messages.count, "\(ended.errors)")
        return ended.lines
    }

    /// Stute et al., USENIX Security 2021, section 6; and the kind of CVE-2023-29380: anybody can write DNS-SD. A
    /// program that believes its SRV and address records can be sent to any host and any port.
    @Test("SRV and address records that lead to a third host, and to a port below 1024")
    func spoofedRecords() async throws {
        let lab = try await HandoffLab(["laptop", "desktop", "stranger"], members: 2)
        defer { lab.down() }
        let tap = try await Tap(lab, host: 1)
        _ = try await lab.startMembers()
        let document = try lab.document("report.pdf", bytes: 100_000, seed: 44)
        let offer = try await lab.offer(1, document.path)
        try await lab.watch(2).listed("report.pdf")
        let laptop = try #require(try await tap.end().announcement(of: 1))

        try lab.lab.command("avahi", "\(Self.stranger)", "stop")
        let ports = ["22", "80", "9", "40000"]
        let spoofer = try lab.startProgram(
            Self.stranger,
            [
                "python3", "-c", HostilePrograms.spoofer, "10.77.0.3",
                laptop.text.map { String(format: "%02x", $0) }.joined(), laptop.instance, "host1",
            ] + ports)
        try await spoofer.program.line(from: 3) { $0 == "announced" }
        /// The ports at which the attacker's host was dialled so far.
        func hits() -> Set<String> {
            Set(spoofer.program.lines.filter { $0.hasPrefix("hit ") }.map { String($0.dropFirst(4)) })
        }
        /// Asks a program that dials what SRV records say for one of these ports.
        func believe(_ ports: String...) async throws -> Set<String> {
            let believer = try lab.startProgram(
                2, ["python3", "-c", HostilePrograms.believer, "10.77.0.2"] + ports)
            #expect(try await believer.end().status == 0, "\(believer.errors)")
            try await spoofer.program.line { $0.hasPrefix("hit") && ports.contains(String($0.dropFirst(4))) }
            return hits()
        }
        let inbox = try lab.destination("inbox")
        // Somebody else claims the laptop's name: it is away for a moment, until it has taken another one.
        let accepted = try await lab.run(2, "accept", "--wait", "30", "--to", inbox.path)
        #expect(accepted.status == 0, "\(accepted.errors)")
        // This dials every announced device. The attacker's next round comes after the connections to its ports.
        #expect(try await lab.run(2, "devices").status == 0)
        try await spoofer.program.line(from: spoofer.program.lines.count) { $0 == "announced" }
        let hitByNode = hits()
        // No code here asks for SRV or dials what it says, so that there is nothing to switch off. Announcements that
        // are believed have their attacks (``AdvertisementAttacks``).
        try await attack("an SRV record that leads to a third host") {
            Outcome(succeeds: !hitByNode.isEmpty)
        } against: {
            Outcome(succeeds: try await believe("40000").contains("40000"))
        }
        try await attack("an SRV record that leads to a port below 1024") {
            Outcome(succeeds: !hitByNode.isDisjoint(with: ["22", "80", "9"]))
        } against: {
            Outcome(succeeds: try await !believe("22", "80").isDisjoint(with: ["22", "80"]))
        }
        try await eventually("the laptop is the only device") { try await lab.status(2)?.peers == 1 }
        try await spoofer.end(by: SIGKILL)
        try await offer.command.end(by: SIGTERM)
    }
}

extension HandoffLab {
    /// Starts the nodes of the two hosts that are of the account, and waits until they see each other.
    func startMembers() async throws -> [HostCommand] {
        let nodes = [try await startNode(1).command, try await startNode(2).command]
        for host in 1...2 { try await awaitPeers(1, on: host) }
        return nodes
    }
}
