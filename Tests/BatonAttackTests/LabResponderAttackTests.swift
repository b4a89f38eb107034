// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Foundation
import Glibc
import SystemPackage
import Testing

@testable import BatonAccount
@testable import BatonNode

extension HandoffLab {
    /// Opens the advertisements of the account's devices, as one more of them.
    func makeOpener() throws -> AdvertisementOpener {
        let text = try Data(contentsOf: keyFile).filter { $0 > 0x20 }
        let key = try AccountKey(parsing: text.withUnsafeBytes { SecretBytes(copying: $0) })
        let store = AccountStore(folder: FilePath(folder.appendingPathComponent("listener").path))
        let listener = try store.join(key)
        return AdvertisementOpener(keys: listener.keys, ownDevice: listener.identity.id)
    }
}

extension LabAttackTests {
    /// Avahi as an adversary, and everybody on the link who can make it one.
    ///
    /// Announcing is free for the attacker. It costs each listener a thread, five descriptors and a connection to
    /// D-Bus, and a user has 256 of these. This is the exhaustion of CVE-2020-26164 (KDE Connect), by way of the
    /// system's responder.
    ///
    /// In the other suite, so that only one lab of theirs is there at a time.
    @Suite(.timeLimit(.minutes(5)))
    struct LabResponderAttackTests {
        /// The bound of what a node may hold: 16 queries of one thread and five descriptors each, and what it has
        /// anyway.
        private static let bound = Holdings(threads: 16 + 36, descriptors: 16 * 5 + 160, kibibytes: 64 << 10)

        @Test("A thousand bogus instances and five hundred clones of a real advertisement", .nightly)
        func flood() async throws {
            let lab = try await HandoffLab(["laptop", "desktop", "stranger"], members: 2)
            defer { lab.down() }
            let siege = try await Siege(lab)
            let (nodes, watch, before, calm) = (siege.nodes, siege.watch, siege.before, siege.calm)
            let desktop = nodes[1].program.processIdentifier
            for node in nodes { try prefer(hostOf: node) }
            let flooder = try siege.flood(instances: 1000, clones: 500)
            try await flooder.program.line { $0 == "round" }

            try await attack("1,500 instances use up threads and descriptors") {
                // Long enough for each probe to have had its turn once.
                let most = try await Holdings.most(of: desktop, for: .seconds(20))
                #expect(most.threads >= calm.threads + 12, "the flood did not arrive: \(most)")
                print("discovery in a flood: \(most)")
                return Outcome(succeeds: most.exceeds(Self.bound))
            }

            // The change of a device that is known, and a device that comes to the middle of it.
            let during = try await lab.offer(1, "--url", "https://example.org/2", "--title", "During")
            try await isFound("During", by: watch, from: nodes[0])
            for offer in [before, during] { try await offer.command.end(by: SIGTERM) }
            try await nodes[0].end(by: SIGTERM)
            let first = ["nice", "-n", "-19"]
            let fresh = try await lab.startNode(1, wrapper: first).command
            let offer = try await lab.offer(1, "--url", "https://example.org/3", "--title", "Fresh")
            try await isFound("Fresh", by: watch, from: fresh)
            #expect(try await lab.run(2, "accept", offer.id).lines == ["https://example.org/3"])
            #expect(try await lab.status(2)?.peers == 1, "a clone is no device")

            // A node that starts in the middle of it: what it sees first is clones of what it has seen before it ended.
            try await nodes[1].end(by: SIGTERM)
            let restarted = try await lab.startNode(2, wrapper: first).command
            let newWatch = try lab.watch(2)
            try await isFound("Fresh", by: newWatch, from: fresh)
            let update = try await lab.offer(1, "--url", "https://example.org/4", "--title", "Update")
            try await isFound("Update", by: newWatch, from: fresh)

            // Killed in the middle of the flood, and started again: all 1,500 come at once.
            try lab.lab.command("avahi", "2", "kill")
            try await eventually("it is said that there is no Avahi") {
                try await lab.status(2)?.responder?.hasPrefix("unavailable") == true
            }
            try lab.lab.command("avahi", "2", "start")
            try prefer(hostOf: restarted)
            let again = try await lab.offer(1, "--url", "https://example.org/5", "--title", "Again")
            try await isFound("Again", by: newWatch, from: fresh)
            #expect(try !Holdings(of: restarted.program.processIdentifier).exceeds(Self.bound))
            #expect(fresh.program.isRunning && restarted.program.isRunning)
            for offer in [offer, update, again] { try await offer.command.end(by: SIGTERM) }
            try await flooder.end(by: SIGKILL)
        }

        /// What is on the network already comes at once to a node that starts, or whose link comes up, and all of it
        /// once.
        ///
        /// Not counted as an attack: the defence is how turns are given, which `QueryBudgetTests` follow in simulated
        /// time.
        @Test("A device that was announced in the middle of 1,500 names, and a node that starts after them", .nightly)
        func startedInTheFlood() async throws {
            let lab = try await HandoffLab(["laptop", "desktop", "stranger"], members: 2)
            defer { lab.down() }
            try lab.lab.command("avahi", "3", "stop")
            // It hears the device on one way, as it hears the flood.
            let flushing = try lab.startProgram(2, ["ip", "-6", "address", "flush", "dev", "eth0"])
            #expect(try await flushing.end().status == 0, "\(flushing.errors)")
            /// Names without a record: each takes all of the time that it is given.
            func flood(by count: Int) async throws -> HostCommand {
                let flooder = try lab.startProgram(
                    3, ["python3", "-c", HostilePrograms.flooder, "10.77.0.3", "0", "0", "", "\(count)"])
                try await flooder.program.line { $0 == "round" }
                return flooder
            }
            let before = try await flood(by: 760)
            let tap = try await Tap(lab, host: 2)
            let laptop = try await lab.startNode(1).command
            let offer = try await lab.offer(1, "--url", "https://example.org/", "--title", "Early")
            try await eventually("it is announced") { try tap.now().announcement(of: 1) != nil }
            _ = try await tap.end()
            let after = try await flood(by: 740)

            let desktop = try await lab.startNode(2, wrapper: ["nice", "-n", "-19"]).command
            try prefer(hostOf: desktop)
            let process = desktop.program.processIdentifier
            async let most = Holdings.most(of: process, for: .seconds(10))
            try await isFound("Early", by: try lab.watch(2), from: laptop)
            print("a node that started in a flood: \(try await most)")
            #expect(try await !most.exceeds(Self.bound))
            try await offer.command.end(by: SIGTERM)
            for flooder in [before, after] { try await flooder.end(by: SIGKILL) }
        }

        /// Not counted as an attack, because no single defence stops it: the node also listens to announcements.
        @Test("Five hundred clones, and the device under its next name", .nightly)
        func nextName() async throws {
            let lab = try await HandoffLab(["laptop", "desktop", "stranger"], members: 2)
            defer { lab.down() }
            let siege = try await Siege(lab)
            let (nodes, watch, before, calm) = (siege.nodes, siege.watch, siege.before, siege.calm)
            let desktop = nodes[1].program.processIdentifier
            for node in nodes { try prefer(hostOf: node) }
            let flooder = try siege.flood(instances: 0, clones: 500)
            // Some may have been open before.
            try await eventually("all that probe are at work") {
                try Holdings(of: desktop).threads >= calm.threads + 12
            }
            try await before.command.end(by: SIGTERM)
            try await nodes[0].end(by: SIGTERM)
            let node = try await lab.startNode(1, wrapper: ["nice", "-n", "-19"]).command
            let fresh = try await lab.offer(1, "--url", "https://example.org/2", "--title", "Fresh")
            try await isFound("Fresh", by: watch, from: node)
            try await fresh.command.end(by: SIGTERM)
            try await flooder.end(by: SIGKILL)
        }

        /// Two devices that know each other, and a stranger on their network who has heard the laptop's announcement.
        private struct Siege {
            let lab: HandoffLab
            let nodes: [HostCommand]
            /// Lists on the desktop what the laptop offers.
            let watch: HostCommand
            /// Offered on the laptop before the flood.
            let before: (command: HostCommand, id: String)
            /// What the desktop's node holds before the flood.
            let calm: Holdings
            private let record: [UInt8]

            init(_ lab: HandoffLab) async throws {
                self.lab = lab
                let tap = try await Tap(lab, host: 1)
                nodes = try await lab.startMembers()
                watch = try lab.watch(2)
                before = try await lab.offer(1, "--url", "https://example.org/1", "--title", "Before")
                try await watch.listed("Before")
                record = try #require(try await tap.end().announcement(of: 1)).text
                calm = try Holdings(of: nodes[1].program.processIdentifier)
            }

            /// Announces other names from the stranger's host, again and again: some without a record, and clones with
            /// the laptop's.
            func flood(instances: Int, clones: Int) throws -> HostCommand {
                try lab.lab.command("avahi", "3", "stop")
                let hexadecimal = record.map { String(format: "%02x", $0) }.joined()
                let counts = ["\(instances)", "\(clones)"]
                return try lab.startProgram(
                    3, ["python3", "-c", HostilePrograms.flooder, "10.77.0.3"] + counts + [hexadecimal])
            }
        }

        /// Waits until a device is found in the flood, within 10 s. The kernel drops packets that Avahi has not read in
        /// time, because the hosts share their processors. Lost records are sent again.
        private func isFound(_ title: String, by watch: HostCommand, from node: HostCommand) async throws {
            let hosts = [watch, node].map(\.program.processIdentifier)
            let (began, before) = (ContinuousClock.now, try hosts.map(Self.droppedPackets))
            try await watch.listed(title, within: .seconds(60))
            let time = ContinuousClock.now - began
            let dropped = zip(try hosts.map(Self.droppedPackets), before).map(-)
            print("“\(title)” was found in the flood after \(time); packets dropped by the kernel: \(dropped)")
            #expect(time < .seconds(10), "“\(title)”; packets dropped by the kernel: \(dropped)")
        }

        /// Datagrams that the host of a process has lost because nobody read them in time ("RcvbufErrors").
        private static func droppedPackets(onHostOf process: Int32) throws -> Int {
            let lines = try String(contentsOfFile: "/proc/\(process)/net/snmp", encoding: .utf8).split(separator: "\n")
            let fields = lines.filter { $0.hasPrefix("Udp:") }.map { $0.split(separator: " ") }
            let (names, values) = (try #require(fields.first), try #require(fields.last))
            return try #require(zip(names, values).first { $0.0 == "RcvbufErrors" }.flatMap { Int($0.1) })
        }

        /// Lets the programs of a lab's host go before the others of this machine, those that they start included.
        ///
        /// A device has a processor of its own, and a host of the lab shares one with the flooder and with every other
        /// test. If Avahi reads too late, the kernel drops packets (2,300 at a load of 7 for each core), which says
        /// nothing about the node.
        private func prefer(hostOf node: HostCommand) throws {
            func network(_ process: String) -> String? {
                try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/\(process)/ns/net")
            }
            let host = try #require(network("\(node.program.processIdentifier)"))
            for process in try FileManager.default.contentsOfDirectory(atPath: "/proc") where network(process) == host {
                let threads = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(process)/task")) ?? []
                // A thread may have ended by now; one that is not preferred shows in the time that is looked at.
                for thread in threads.compactMap(UInt32.init) {
                    _ = setpriority(__priority_which_t(PRIO_PROCESS.rawValue), thread, -19)
                }
            }
        }

        /// `AdvertisementAttacks.rewritten()` shows their cost, with its off-run. This is not counted as an attack,
        /// because there is no defence to switch off.
        @Test(
            "Records under the name of a device that is heard, and what the device itself says",
            arguments: [0.05, 0.001])
        func outshouted(pause: Double) async throws {
            let lab = try await HandoffLab(["laptop", "desktop", "stranger"], members: 2)
            defer { lab.down() }
            let tap = try await Tap(lab, host: 1)
            let nodes = try await lab.startMembers()
            let watch = try lab.watch(2)
            for node in nodes { try prefer(hostOf: node) }
            let before = try await lab.offer(1, "--url", "https://example.org/1", "--title", "Before")
            try await watch.listed("Before")
            let instance = try #require(try await tap.end().announcement(of: 1)).instance
            try lab.lab.command("avahi", "3", "stop")
            let rewriter = try lab.startProgram(
                3, ["python3", "-c", HostilePrograms.rewriter, "10.77.0.3", "10.77.0.2", instance, "\(pause)"])
            try await rewriter.program.line { $0 == "begun" }
            for title in ["First", "Second"] {
                let during = try await lab.offer(1, "--url", "https://example.org/2", "--title", title)
                try await isFound(title, by: watch, from: nodes[0])
                try await during.command.end(by: SIGTERM)
            }
            try await before.command.end(by: SIGTERM)
            try await rewriter.end(by: SIGKILL)
        }

        /// A stranger can repeat the last record of a node that has gone (``AdvertisementAttacks/repeated()``).
        @Test("The last that a node says when it ends is that it offers nothing")
        func idleAtItsEnd() async throws {
            let lab = try await HandoffLab(["laptop"])
            defer { lab.down() }
            let opener = try lab.makeOpener()
            func said(in capture: Capture) throws -> [String] {
                try capture.records.filter { $0.text.count > 100 }.map {
                    try opener.open($0.text).advertisement.content.current?.title ?? "nothing"
                }
            }
            let tap = try await Tap(lab, host: 1)
            let laptop = try await lab.startNode(1).command
            try prefer(hostOf: laptop)
            let offer = try await lab.offer(1, "--url", "https://example.org/", "--title", "Last")
            try await eventually("the offer is announced") { try said(in: tap.now()).last == "Last" }
            try await laptop.end(by: SIGTERM)
            try await offer.command.end(by: SIGTERM)
            // Avahi sends the last record when it gets to it.
            try await eventually("its last word is said") { try said(in: tap.now()).last == "nothing" }
            _ = try await tap.end()
        }

        /// Not counted as an attack: the record of one byte less, which is told whole, shows that the test can fail.
        @Test("A record that is longer than any device's is not kept until it is refused")
        func longRecord() async throws {
            let lab = try await HandoffLab(["laptop", "stranger"], members: 1)
            defer { lab.down() }
            let probe = try lab.startProgram(1, [Lab.product("discovery-probe"), "--verdict", "keep"])
            try await probe.program.line { $0.contains(#""state":"running""#) }
            try lab.lab.command("avahi", "2", "stop")
            // The strings of a record that is as long as may be, and of one that is longer by a byte.
            for (length, expected) in [(1200, 1200), (1201, 0)] {
                var (strings, left) = ("", length)
                while left > 0 {
                    let count = min(left, 256) - 1
                    strings += String(format: "%02x", count) + String(repeating: "61", count: count)
                    left -= count + 1
                }
                let flooder = try lab.startProgram(
                    2, ["python3", "-c", HostilePrograms.flooder, "10.77.0.2", "0", "1", strings])
                try await probe.program.line { line in
                    line.contains(#""event":"record""#)
                        && line.contains(#""txt":"\#(strings.prefix(2 * expected))""#)
                }
                try await flooder.end(by: SIGKILL)
            }
            probe.program.send("quit")
        }

        /// Fills fresh memory with a pattern, so that what the library leaves uninitialised is found.
        private static let perturbed = ["env", "MALLOC_PERTURB_=90", "GLIBC_TUNABLES=glibc.malloc.tcache_count=0"]

        /// The state in which the responder ends.
        enum Moment: String, CaseIterable {
            case starting = "while the node starts"
            case announcing = "while a change is announced"
            case stopping = "while the node stops"
            case rotating = "while one name takes the other's place"
            case withoutBus = "together with its D-Bus, with a change waiting"
        }

        /// No device would find one that lost its responder for good, until its user starts the node again. The defence
        /// is a retry, which asks and announces everything again.
        @Test("Killed in any state", arguments: Moment.allCases)
        func killed(_ moment: Moment) async throws {
            try await attack("Avahi is killed \(moment.rawValue)") {
                try await withNode(meeting: moment) { lab, laptop, watch in
                    #expect(laptop.program.isRunning)
                    return Outcome(succeeds: try await !isListed(on: lab, by: watch))
                }
            }
        }

        /// Not counted as an attack: that what is held is released is no defence that could be off; `killed()` has one.
        @Test("However often Avahi is killed and started again, a node holds no more for it")
        func killedOften() async throws {
            let lab = try await HandoffLab()
            defer { lab.down() }
            let nodes = try await lab.startNodes()
            let offer = try await lab.offer(1, "--url", "https://example.org/1", "--title", "First")
            try await lab.watch(2).listed("First")
            func kill(times: Int) async throws -> Holdings {
                for _ in 0..<times {
                    try lab.lab.command("avahi", "1", "kill")
                    try await eventually("it is said that there is no Avahi") {
                        try await lab.status(1)?.responder?.hasPrefix("unavailable") == true
                    }
                    try lab.lab.command("avahi", "1", "start")
                    try await eventually("Avahi is there again", within: .seconds(20)) {
                        try await lab.status(1)?.responder == "running"
                    }
                }
                return try Holdings(of: nodes[0].program.processIdentifier)
            }
            let (few, many) = (try await kill(times: 2), try await kill(times: 7))
            print("killed twice: \(few); 9 times: \(many)")
            let bound = Holdings(
                threads: few.threads + 4, descriptors: few.descriptors + 8, kibibytes: few.kibibytes + 4096)
            #expect(!many.exceeds(bound))
            try await offer.command.end(by: SIGTERM)
        }

        /// Whether the laptop's next activity is seen by the desktop within ten seconds.
        private func isListed(on lab: HandoffLab, by watch: HostCommand) async throws -> Bool {
            let offer = try await lab.offer(1, "--url", "https://example.org/2", "--title", "Late")
            do {
                try await watch.listed("Late", within: .seconds(10))
            } catch is Lab.Failure {
                return false
            }
            try await offer.command.end(by: SIGTERM)
            return true
        }

        /// Kills the responder of a laptop's node at a moment, and starts it again.
        ///
        /// - Parameter body: gets the node, and what follows the activities on another host.
        private func withNode(
            meeting moment: Moment, _ body: (HandoffLab, HostCommand, HostCommand) async throws -> Outcome
        ) async throws -> Outcome {
            let lab = try await HandoffLab()
            defer { lab.down() }
            let desktop = try await lab.startNode(2).command
            @Sendable func start() async throws -> HostCommand {
                try await lab.startNode(1, wrapper: Self.perturbed).command
            }
            let laptop: HostCommand
            switch moment {
            case .starting:
                let starting = Task { try await start() }
                try lab.lab.command("avahi", "1", "kill")
                laptop = try await starting.value
            case .announcing:
                laptop = try await start()
                try await lab.awaitPeers(1, on: 1)
                let offer = try await lab.offer(1, "--url", "https://example.org/1", "--title", "Early")
                try lab.lab.command("avahi", "1", "kill")
                // Of a node that has ended there is nothing to withdraw.
                _ = try? await offer.command.end(by: SIGTERM)
            case .stopping:
                let stopping = try await lab.startNode(1, wrapper: Self.perturbed).command
                try await lab.awaitPeers(1, on: 1)
                stopping.program.signal(SIGTERM)
                try lab.lab.command("avahi", "1", "kill")
                #expect(try await stopping.end().status == 0)
                laptop = try await start()
            case .rotating:
                laptop = try await start()
                try await lab.awaitPeers(1, on: 1)
                // An address that comes begins another period, with another port: for a moment both of its names are
                // there.
                let port = try await lab.status(1)?.port
                let change = try lab.startProgram(1, ["ip", "address", "add", "10.78.0.1/24", "dev", "eth0"])
                #expect(try await change.end().status == 0, "\(change.errors)")
                try await eventually("the next name is on its way") { try await lab.status(1)?.port != port }
                try lab.lab.command("avahi", "1", "kill")
            case .withoutBus:
                laptop = try await start()
                try await lab.awaitPeers(1, on: 1)
                try lab.lab.command("bus", "1", "kill")
                let offer = try await lab.offer(1, "--url", "https://example.org/1", "--title", "Early")
                try await offer.command.end(by: SIGTERM)
                try lab.lab.command("bus", "1", "start")
            }
            try lab.lab.command("avahi", "1", "start")
            let outcome = try await body(lab, laptop, try lab.watch(2))
            #expect(desktop.program.isRunning)
            return outcome
        }
    }
}

/// What a process holds.
private struct Holdings: CustomStringConvertible {
    var threads = 0
    var descriptors = 0
    var kibibytes = 0

    init(threads: Int = 0, descriptors: Int = 0, kibibytes: Int = 0) {
        self.threads = threads
        self.descriptors = descriptors
        self.kibibytes = kibibytes
    }

    init(of process: Int32) throws {
        let status = try String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8)
        func field(_ name: String) -> Int {
            let line = status.split(separator: "\n").first { $0.hasPrefix(name + ":") }
            return line?.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Int($0) } ?? 0
        }
        threads = field("Threads")
        kibibytes = field("VmRSS")
        descriptors = try FileManager.default.contentsOfDirectory(atPath: "/proc/\(process)/fd").count
    }

    /// The most of each in so long a time.
    static func most(of process: Int32, for time: Duration) async throws -> Holdings {
        var most = Holdings()
        let end = ContinuousClock.now + time
        while ContinuousClock.now < end {
            let now = try Holdings(of: process)
            most.threads = max(most.threads, now.threads)
            most.descriptors = max(most.descriptors, now.descriptors)
            most.kibibytes = max(most.kibibytes, now.kibibytes)
            try await Task.sleep(for: .milliseconds(50))
        }
        return most
    }

    func exceeds(_ bound: Holdings) -> Bool {
        threads > bound.threads || descriptors > bound.descriptors || kibibytes > bound.kibibytes
    }

    var description: String { "\(threads) threads, \(descriptors) descriptors, \(kibibytes) KiB" }
}
