// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Foundation
import Testing

/// Two hosts with real Avahi daemons, and the real library between them.
@Suite(.lab, .timeLimit(.minutes(5)))
struct LabDiscoveryTests {
    @Test func publishedIsSeenChangedAndWithdrawn() async throws {
        let lab = try Lab()
        defer { lab.down() }
        let (origin, peer) = (try Probe(lab, 1), try Probe(lab, 2, "--verdict", "keep"))
        origin.send("publish 763d31 aa")
        let name = try await origin.event("registered").instance
        #expect(try await peer.record("03763d3101aa").instance == name)
        origin.send("publish 763d31 bb")
        #expect(try await peer.record("03763d3101bb").instance == name)
        origin.send("withdraw 763d31 cc")
        #expect(try await peer.record("03763d3101cc").interface ?? 0 > 0)
        origin.send("quit")
        #expect(try await origin.end() == 0)
        #expect(try await peer.event("removed").instance == name)
        // Nothing is told twice, and a device does not see itself.
        #expect(peer.all("record").compactMap(\.txt) == ["03763d3101aa", "03763d3101bb", "03763d3101cc"])
        #expect(origin.all("record").isEmpty)
    }

    @Test func aNewNameIsSeenBeforeTheOldOneGoes() async throws {
        let lab = try Lab()
        defer { lab.down() }
        let (origin, peer) = (try Probe(lab, 1, "--rotation", "1500"), try Probe(lab, 2, "--verdict", "keep"))
        origin.send("publish 01")
        let first = try await origin.event("registered").instance
        try await peer.record("0101")
        try await origin.event("rotationDue")
        origin.send("rotate 02")
        let second = try await peer.record("0102").instance
        #expect(second != first)
        #expect(try await peer.event("removed").instance == first)
        // A change reaches the others also while both exist.
        origin.send("publish 03")
        try await peer.record("0103")
    }

    /// Without the zeroing allocator a live query crashes here.
    @Test func theDaemonMayBeKilledAndEverythingComesBack() async throws {
        let lab = try Lab()
        defer { lab.down() }
        let (origin, peer) = (try Probe(lab, 1), try Probe(lab, 2, "--verdict", "keep"))
        origin.send("publish 01")
        try await peer.record("0101")
        for round in 2...4 {
            for host in ["1", "2"] { try lab.command("avahi", host, "kill") }
            try await peer.unavailable(because: "Avahi is not running")
            try await origin.unavailable()
            // Published while nobody could hear it.
            origin.send("publish aa0\(round)")
            for host in ["1", "2"] { try lab.command("avahi", host, "start") }
            try await peer.running(times: round)
            // The name is lost, and what belongs to it has no other one.
            try await origin.event("rotationDue", number: round - 1, within: .seconds(40))
            origin.send("publish bb0\(round)")
            origin.send("rotate 0\(round)")
            try await peer.record("010\(round)", within: .seconds(40))
            #expect(origin.all("rotationDue").count == round - 1)
        }
        #expect(origin.isRunning && peer.isRunning)
        #expect(Set(peer.all("record").map(\.txt)) == ["0101", "0102", "0103", "0104"])
        #expect(Set(peer.all("record").map(\.instance)).count == 4)
    }

    @Test func aDaemonOrABusThatIsAbsentAtTheStartIsWaitedFor() async throws {
        let lab = try Lab()
        defer { lab.down() }
        try lab.command("avahi", "1", "stop")
        try lab.command("bus", "2", "kill")
        let (origin, peer) = (try Probe(lab, 1), try Probe(lab, 2, "--verdict", "keep"))
        origin.send("publish 01")
        try await origin.unavailable(because: "Avahi is not running")
        try await peer.unavailable(because: "The D-Bus system bus does not answer")
        try lab.command("avahi", "1", "start")
        try lab.command("bus", "2", "start")
        try lab.command("avahi", "2", "start")
        try await peer.record("0101", within: .seconds(60))
    }

    @Test func aBusThatDiesUnderLiveReferencesIsSurvived() async throws {
        let lab = try Lab()
        defer { lab.down() }
        let (origin, peer) = (try Probe(lab, 1), try Probe(lab, 2, "--verdict", "keep"))
        origin.send("publish 01")
        try await peer.record("0101")
        try lab.command("bus", "2", "kill")
        try await peer.unavailable(because: "The D-Bus system bus does not answer")
        try lab.command("bus", "2", "start")
        try lab.command("avahi", "2", "start")
        try await peer.running(times: 2)
        origin.send("publish 02")
        try await peer.record("0102", within: .seconds(40))
    }

    @Test func whoDisappearsWhileTheDaemonIsDownIsReported() async throws {
        let lab = try Lab()
        defer { lab.down() }
        let origin = try Probe(lab, 1)
        let peer = try Probe(lab, 2, "--verdict", "keep", "--rediscovery", "2000")
        origin.send("publish 01")
        let name = try await peer.record("0101").instance
        try lab.command("avahi", "2", "kill")
        try await peer.unavailable()
        origin.signal(SIGKILL)
        _ = try await origin.end()
        try lab.command("avahi", "2", "start")
        #expect(try await peer.event("removed", within: .seconds(40)).instance == name)
    }

    @Test func aKilledDeviceIsRemoved() async throws {
        let lab = try Lab()
        defer { lab.down() }
        let (origin, peer) = (try Probe(lab, 1), try Probe(lab, 2, "--verdict", "keep"))
        origin.send("publish 01")
        let name = try await peer.record("0101").instance
        origin.signal(SIGKILL)
        #expect(try await peer.event("removed").instance == name)
    }

    /// A query that stays open is a question that Avahi repeats, and that every host of the link hears.
    @Test func changesOfAKeptInstanceAreToldWithoutAQuery() async throws {
        let lab = try Lab()
        defer { lab.down() }
        let (origin, peer) = (try Probe(lab, 1), try Probe(lab, 2, "--verdict", "keep"))
        origin.send("publish 01")
        try await peer.record("0101")
        var answers = 0
        try await eventually("the query ends with the verdict") {
            answers += 1
            peer.send("queries")
            let usage = try await peer.event("queries", number: answers)
            return usage.kept == 1 && usage.probing == 0
        }
        origin.send("publish 02")
        try await peer.record("0102")
        origin.send("withdraw 03")
        try await peer.record("0103")
        peer.send("queries")
        #expect(try await peer.event("queries", number: answers + 1).probing == 0)
    }

    @Test func aStrangerGetsOneRecordAndARejectedOneNoQuery() async throws {
        let lab = try Lab()
        defer { lab.down() }
        let (origin, peer) = (try Probe(lab, 1), try Probe(lab, 2))
        origin.send("publish 01")
        let name = try #require(try await peer.record("0101").instance)
        origin.send("publish 02")
        peer.send("queries")
        #expect(try await peer.event("queries").probing == 1)
        peer.send("reject \(name)")
        peer.send("queries")
        #expect(try await peer.event("queries", number: 2).probing == 0)
        #expect(peer.all("record").count == 1)
        // Somebody else is read all the same.
        let other = try Probe(lab, 1)
        other.send("publish 03")
        try await peer.record("0103")
    }

    @Test func aDaemonThatHangsHoldsUpNobody() async throws {
        let lab = try Lab()
        defer { lab.down() }
        let (origin, peer) = (try Probe(lab, 1), try Probe(lab, 2, "--verdict", "keep"))
        origin.send("publish 01")
        try await peer.record("0101")
        let status = try lab.command("status")
        let line = try #require(status.split(separator: "\n").first { $0.contains("host 1 ") })
        let daemon = try #require(line.split(separator: " ").last.flatMap { Int32($0) })
        kill(daemon, SIGSTOP)
        defer { kill(daemon, SIGCONT) }
        // Each of these would wait 25 s for D-Bus if it waited.
        for _ in 0..<3 { origin.send("publish 02") }
        let echoes = try await origin.event("command", number: 4, within: .seconds(10))
        #expect(echoes.event == "command")
        kill(daemon, SIGCONT)
        // Where D-Bus gave up meanwhile, the name is lost.
        try await eventually("it is heard, or asked for another name", within: .seconds(40)) {
            peer.all("record").contains { $0.txt == "0102" } || !origin.all("rotationDue").isEmpty
        }
        if !origin.all("rotationDue").isEmpty { origin.send("rotate 02") }
        try await peer.record("0102", within: .seconds(40))
    }
}
