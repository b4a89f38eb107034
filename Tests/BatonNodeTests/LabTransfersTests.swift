// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Foundation
import Testing

/// The lists, cancellations and deletions of `baton transfers`.
@Suite(.serialized, .lab, .timeLimit(.minutes(5)))
struct LabTransfersTests {
    private static func transfers(on host: Int, of lab: HandoffLab, _ entry: String) async throws -> [LabEvent] {
        let listed = try await lab.run(host, "transfers", "--json")
        guard listed.status == 0 else { throw Lab.Failure(description: listed.errors) }
        return listed.events.filter { $0.entry == entry }
    }

    /// Accepts the film and waits until much of it has come.
    private static func halfWay(_ lab: HandoffLab, into folder: URL) async throws -> HostCommand {
        let accepting = try lab.start(2, "accept", "--json", "--to", folder.path)
        try await accepting.event("progress") { ($0.bytes ?? 0) > 3_000_000 }
        return accepting
    }

    @Test(
        "Both devices list a transfer and can cancel it; what is kept can be deleted; an offer that still sends says so"
    )
    func cancelled() async throws {
        let lab = try await HandoffLab()
        defer { lab.down() }
        _ = try await lab.startNodes()
        try lab.lab.command("rate", "1", "20")
        let document = try lab.document("film", bytes: 60_000_000, seed: 37)
        let offer = try await lab.offer(1, document.path)
        try await lab.watch(2).listed("film")
        let folder = try lab.destination("inbox")

        // The origin cancels.
        let first = try await Self.halfWay(lab, into: folder)
        let offered = try await Self.transfers(on: 1, of: lab, "offer")
        #expect(offered.map(\.id) == [offer.id] && offered.map(\.title) == ["film"])
        let received = try #require(try await Self.transfers(on: 2, of: lab, "transfer").first)
        #expect(received.direction == "receiving" && received.state == "running" && received.device == "laptop")
        #expect(received.total == 60_000_000 && (received.bytes ?? 0) > 3_000_000 && (received.rate ?? 0) > 0)
        let sent = try #require(try await Self.transfers(on: 1, of: lab, "transfer").first)
        #expect(sent.direction == "sending" && sent.device == "desktop" && sent.title == "film")
        #expect(try await lab.run(1, "transfers", "cancel", "ffff").status == 66)
        #expect(try await lab.run(1, "transfers", "cancel", sent.id ?? "").status == 0)
        let ended = try await first.end()
        #expect(ended.events.last?.code == "cancelled" && ended.status == 1, "\(ended.errors)")
        #expect(ended.events.last?.message?.contains("laptop") == true, "\(ended.events)")
        try await offer.command.event("failed") { $0.code == "cancelled" && $0.device == "desktop" }
        #expect(try await Self.transfers(on: 1, of: lab, "transfer").isEmpty)

        // The received bytes are kept until they are deleted.
        let part = try #require(try await Self.transfers(on: 2, of: lab, "keptPart").first)
        #expect(part.title == "film" && part.device == "laptop" && (part.bytes ?? 0) >= 3_000_000)
        #expect(try await lab.run(2, "transfers", "discard", part.id ?? "").status == 0)
        #expect(try lab.contents(of: folder).isEmpty)
        #expect(try await Self.transfers(on: 2, of: lab, "keptPart").isEmpty)

        // The continuing device cancels what goes on without a terminal.
        try await Self.halfWay(lab, into: folder).end(by: SIGHUP)
        let detached = try #require(try await Self.transfers(on: 2, of: lab, "transfer").first)
        #expect(try await lab.run(2, "transfers", "cancel", String(detached.id?.prefix(8) ?? "")).status == 0)
        try await eventually("nothing is received or sent") {
            guard try await Self.transfers(on: 2, of: lab, "transfer").isEmpty else { return false }
            return try await Self.transfers(on: 1, of: lab, "transfer").isEmpty
        }
        #expect(try await Self.transfers(on: 2, of: lab, "keptPart").count == 1)

        // An offer that ends while a device takes it says what is still sent.
        let last = try await Self.halfWay(lab, into: folder)
        let withdrawn = try await offer.command.end(by: SIGINT)
        #expect(
            withdrawn.status == 0 && withdrawn.lines.last?.contains(#""transfers":[{"#) == true, "\(withdrawn.lines)")
        try lab.lab.command("rate", "1", "off")
        #expect(try await last.end().status == 0)
        #expect(try lab.contents(of: folder) == ["film"])
        for host in 1...2 { #expect(try await lab.run(host, "transfers", "--json").lines.isEmpty) }
    }

    @Test("A transfer that is cut twice while the origin is told of a copy goes on without the copy")
    func cutWhileTelling() async throws {
        let lab = try await HandoffLab()
        defer { lab.down() }
        _ = try await lab.startNodes()
        let size = 240_000_000
        let document = try lab.document("film", bytes: size, seed: 38)
        let offer = try await lab.offer(1, document.path)
        try await lab.watch(2).listed("film")
        let before = try await lab.sentBytes(1)
        let folder = try lab.destination("inbox")
        // What is told of the copy takes seconds then.
        try lab.lab.command("rate", "2", "1")
        let accepting = try lab.start(
            2, "accept", "--json", "--against", document.path, "--to", folder.path)
        // Each host in turn gets another address.
        for host in 1...2 {
            try await eventually("the origin is told of the copy", within: .seconds(60)) {
                let events = accepting.events
                guard events.filter({ $0.event == "interrupted" }).count >= host - 1 else { return false }
                let last = events.lastIndex { $0.event == "interrupted" } ?? -1
                return events[(last + 1)...].filter { $0.event == "progress" }.count >= 2
            }
            _ = try await lab.move(host)
            try await eventually("it is interrupted", within: .seconds(60)) {
                accepting.events.filter { $0.event == "interrupted" }.count >= host
            }
        }
        try lab.lab.command("rate", "2", "off")
        let ended = try await accepting.end()
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(try await lab.sentBytes(1) - before > size)
        #expect(
            FileManager.default.contentsEqual(
                atPath: folder.appendingPathComponent("film").path, andPath: document.path))
        try await offer.command.end(by: SIGTERM)
    }
}
