// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Foundation
import Testing

/// A node sees the others again after its machine's Avahi, or its network, has gone and come back.
@Suite(.serialized, .lab, .timeLimit(.minutes(5)))
struct LabResponderTests {
    /// Starts the nodes, and offers on one what the other one's watch has listed.
    private static func offerFirst(in lab: HandoffLab) async throws -> (
        offer: (command: HostCommand, id: String), watch: HostCommand
    ) {
        _ = try await lab.startNodes()
        let offer = try await lab.offer(1, "--url", "https://example.org/first", "--title", "First")
        let watch = try lab.watch(2)
        try await watch.listed("First")
        return (offer, watch)
    }

    @Test("A device that announces the same as before is followed again, and its later offers are seen")
    func startedAnew() async throws {
        let lab = try await HandoffLab()
        defer { lab.down() }
        let (first, watch) = try await Self.offerFirst(in: lab)
        let running = try await lab.offer(2, "--url", "https://example.org/running", "--title", "Running").command
        let accepting = try lab.start(2, "accept", "ffff", "--wait", "600", "--json")
        try lab.lab.command("avahi", "2", "kill")
        // Each running command says so, once.
        for command in [running, watch, accepting] { try await command.event("unannounced") }
        try await eventually("it is noticed") { try await lab.status(2)?.responder?.hasPrefix("unavailable") == true }
        let unannounced = try await lab.offer(2, "--url", "https://example.org/silent")
        #expect(try await unannounced.command.event("unannounced").responder?.hasPrefix("unavailable") == true)
        try await unannounced.command.end(by: SIGTERM)
        try lab.lab.command("avahi", "2", "start")
        try await eventually("it runs again", within: .seconds(60)) {
            try await lab.status(2)?.responder == "running"
        }
        for command in [running, watch, accepting] {
            try await command.event("announced")
            #expect(command.events.filter { $0.event == "unannounced" || $0.event == "announced" }.count == 2)
        }
        for command in [running, accepting] { try await command.end(by: SIGTERM) }
        // The record of the other device is heard anew, unchanged; only then does it change.
        try await lab.awaitPeers(1, on: 2)
        let second = try await lab.offer(1, "--url", "https://example.org/second", "--title", "Second")
        try await watch.listed("Second")
        for offer in [first, second] { try await offer.command.end(by: SIGTERM) }
    }

    @Test("A node says once that it is not announced and why, once that this is over, and what was taken over")
    func said() async throws {
        let lab = try await HandoffLab()
        defer { lab.down() }
        try lab.lab.command("avahi", "2", "kill")
        let node = try await lab.startNode(2).command
        /// How many lines of the log have a text.
        func lines(_ text: String) -> Int {
            node.errors.split(separator: "\n").count { $0.contains(text) }
        }
        let unannounced = "warning: this device is not announced and finds no others: Avahi is not running"
        try await eventually("it is said") { lines(unannounced) == 1 }
        // Some attempts later.
        try await eventually("it is tried again", within: .seconds(60)) {
            try await lab.status(2)?.responder?.hasSuffix("trying again in 2 s") == true
        }
        #expect(lines(unannounced) == 1, "\(node.errors)")
        try lab.lab.command("avahi", "2", "start")
        try await eventually("its end is said", within: .seconds(60)) { lines("this device is announced again") == 1 }

        let other = try await lab.startNode(1).command
        let offer = try await lab.offer(1, "--url", "https://example.org/first", "--title", "First")
        try await lab.watch(2).listed("First")
        #expect(try await lab.run(2, "accept", "--print", "--json").status == 0)
        try await eventually("it is said") { lines("“First” of laptop was taken over here") == 1 }
        try await offer.command.end(by: SIGTERM)
        try await other.end(by: SIGTERM)
        #expect(lines("unavailable(") == 0 && lines("discovery: ") == 0, "\(node.errors)")
    }

    /// An attempt each few seconds, however many have failed: with ever longer pauses it would be found half a minute
    /// late.
    @Test("The others are found within ten seconds of Avahi's return, however long it was away")
    func awayForLong() async throws {
        let lab = try await HandoffLab()
        defer { lab.down() }
        let (offer, _) = try await Self.offerFirst(in: lab)
        try lab.lab.command("avahi", "2", "kill")
        // After 1, 2 and 4 s; were the pauses to double for ever, the next would be 8.
        try await eventually("the longest pause is reached", within: .seconds(60)) {
            try await lab.status(2)?.responder?.hasSuffix("trying again in 2 s") == true
        }
        try lab.lab.command("avahi", "2", "start")
        try await eventually("the other one is found", within: .seconds(10)) {
            try await lab.run(2, "activities", "--json").events.contains { $0.title == "First" }
        }
        try await offer.command.end(by: SIGTERM)
    }

    /// Each call to one that hangs waits for 25 s, and that of the last record for two of them.
    @Test("A node that is stopped while Avahi hangs keeps what it was receiving, and does not wait for Avahi")
    func stoppedWhileItHangs() async throws {
        let lab = try await HandoffLab()
        defer { lab.down() }
        let nodes = try await lab.startNodes()
        // What is left when the node stops takes longer than it may.
        try lab.lab.command("rate", "1", "10")
        let document = try lab.document("film", bytes: 40_000_000, seed: 36)
        let offer = try await lab.offer(1, document.path)
        try await lab.watch(2).listed("film")
        let folder = try lab.destination("inbox")
        let accepting = try lab.start(2, "accept", "--json", "--to", folder.path)
        try await accepting.event("progress") { ($0.bytes ?? 0) > 3_000_000 }

        let line = try #require(try lab.lab.command("status").split(separator: "\n").first { $0.contains("host 2 ") })
        let avahi = try #require(line.split(separator: " ").last.flatMap { Int32($0) })
        kill(avahi, SIGSTOP)
        defer { kill(avahi, SIGCONT) }
        let began = ContinuousClock.now
        let ended = try await nodes[1].end(by: SIGTERM)
        #expect(ContinuousClock.now - began < .seconds(15))
        #expect(ended.status == 0 && ended.events.last?.event == "stopped", "\(ended.errors)")
        _ = try await accepting.end()
        kill(avahi, SIGCONT)

        _ = try await lab.startNode(2)
        let again = try lab.start(2, "accept", "--wait", "30", "--json", "--to", folder.path)
        let progress = try await again.event("progress")
        #expect((progress.resumed ?? 0) >= 3_000_000)
        try lab.lab.command("rate", "1", "off")
        #expect(try await again.end().status == 0)
        let arrived = folder.appendingPathComponent("film")
        #expect(FileManager.default.contentsEqual(atPath: arrived.path, andPath: document.path))
        try await offer.command.end(by: SIGTERM)
    }

    @Test("The offers of another device are listed again once this one's network is back")
    func networkBack() async throws {
        let lab = try await HandoffLab()
        defer { lab.down() }
        let (offer, _) = try await Self.offerFirst(in: lab)
        func isListed() async throws -> Bool {
            try await lab.run(2, "activities", "--json").events.contains { $0.title == "First" }
        }
        // Not as a cable, of which Avahi does not hear: the interface and all that is known through it.
        #expect(try await lab.startProgram(2, ["ip", "link", "set", "eth0", "down"]).end().status == 0)
        try await eventually("it has gone") { try await !isListed() }
        #expect(try await lab.startProgram(2, ["ip", "link", "set", "eth0", "up"]).end().status == 0)
        // Half its time to live passes before the other device says it anew.
        try await eventually("it is listed", within: .seconds(20)) { try await isListed() }
        try await offer.command.end(by: SIGTERM)
    }
}
