// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Foundation
import Testing

extension LabHandoffTests {
    /// Rules of its user decide which documents a device takes over by itself, and which it refuses.
    @Suite(.timeLimit(.minutes(3)))
    struct LabPolicyTests {
        /// Writes the policy of the second host's second home, which is a folder of the test's.
        private func write(_ policy: String, _ home: URL) throws {
            let folder = home.appendingPathComponent("config")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            try Data(policy.utf8).write(to: folder.appendingPathComponent("accept-policy"), options: .atomic)
        }

        /// A device of the account in a home that the test can write to.
        private func join(_ lab: HandoffLab, _ name: String) async throws -> URL {
            let home = try lab.destination(name)
            let key = lab.folder.appendingPathComponent("key-\(name)")
            let account = try await lab.run(1, "account", "create", "--name", "origin", home: try lab.destination("o"))
            try Data((account.lines.first ?? "").utf8).write(to: key)
            try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: key.path)
            let joined = try await lab.run(2, "account", "join", "--name", name, "--key-file", key.path, home: home)
            #expect(joined.status == 0, "\(joined.errors)")
            return home
        }

        @Test("A rule takes documents over, another refuses them, and a wrong file asks about everything")
        func policy() async throws {
            let lab = try await HandoffLab()
            defer { lab.down() }
            let home = try await join(lab, "taker")
            let origin = lab.folder.appendingPathComponent("o")
            let scans = try lab.destination("scans")
            try write(
                "accept device=origin type=public.* max=1MB to=\(scans.path) on-conflict=rename\nrefuse max=3MB\n", home
            )
            _ = try await lab.startNode(1, home: origin)
            let node = try await lab.startNode(2, home: home).command
            // The origin as well: before that it has no name for who takes something over.
            for (host, home) in [(1, origin), (2, home)] {
                try await eventually("they see each other") {
                    try await lab.run(host, "status", "--json", home: home).events.first?.peers == 1
                }
            }

            // Accepted: it comes by itself, once, and its origin is told.
            try Data("mine".utf8).write(to: scans.appendingPathComponent("small"))
            let small = try lab.document("small", bytes: 500_000, seed: 40)
            let offer = try lab.start(1, ["offer", "--json", small.path], home: origin)
            try await offer.event("continued") { $0.device == "taker" }
            try await eventually("it is here") { try lab.contents(of: scans) == ["small", "small (2)"] }
            #expect(try String(contentsOf: scans.appendingPathComponent("small"), encoding: .utf8) == "mine")
            try FileManager.default.removeItem(at: scans.appendingPathComponent("small"))
            let copy = scans.appendingPathComponent("small (2)")
            #expect(FileManager.default.contentsEqual(atPath: copy.path, andPath: small.path))
            #expect(node.errors.contains("accept policy, line 1"))
            try FileManager.default.removeItem(at: copy)

            // Refused: in no list, and `accept` says why.
            let large = try lab.document("large", bytes: 2_000_000, seed: 41)
            let refused = try lab.start(1, ["offer", "--json", large.path], home: origin)
            let id = try await refused.event("offered").id ?? ""
            let folder = try lab.destination("folder")
            try await eventually("it is refused") {
                let accepted = try await lab.run(2, "accept", id, "--json", "--to", folder.path, home: home)
                return accepted.events.last?.code == "refused"
                    && accepted.events.last?.message?.contains("line 2: refuse max=3MB") == true
            }
            let listed = try await lab.run(2, "activities", "--json", home: home)
            #expect(!listed.events.contains { $0.title == "large" })
            #expect(try lab.contents(of: folder).isEmpty)

            // The first is offered still and was taken once: it does not come again, not even to a new node.
            try await node.end(by: SIGTERM)
            let again = try await lab.startNode(2, home: home).command
            try await refused.end(by: SIGTERM)
            let watch = try lab.start(2, ["activities", "--watch", "--json"], home: home)
            try await watch.listed("small")
            // A second document shows that the rule is at work: had the first been taken again, it would be here first.
            let second = try lab.document("second", bytes: 1000, seed: 42)
            let next = try lab.start(1, ["offer", "--json", second.path], home: origin)
            try await next.event("continued") { $0.device == "taker" }
            #expect(try lab.contents(of: scans) == ["second"])

            // Wrong: nothing is accepted, the node goes on and says so; what is refused stays refused.
            try write("accept device=origin to=\(scans.path)\nrefuse everything\nrefuse type=public.url\n", home)
            let third = try lab.document("third", bytes: 1000, seed: 43)
            let asked = try lab.start(1, ["offer", "--json", third.path], home: origin)
            try await watch.listed("third")
            let status = try await lab.run(2, "status", home: home)
            #expect(status.lines.contains { $0.contains("accept-policy: line 2") }, "\(status.lines)")
            let checked = try await lab.run(2, "policy", "check", home: home)
            #expect(checked.status == 64 && checked.errors.contains("line 2"), "\(checked.errors)")
            #expect(again.errors.contains("its rules accept nothing and only refuse"))
            #expect(try lab.contents(of: scans) == ["second"])
            #expect(try await lab.run(2, "accept", "--latest", "--to", folder.path, home: home).status == 0)
            #expect(try lab.contents(of: folder) == ["third"])
            try await asked.end(by: SIGTERM)
        }

        @Test("Devices that have gone in the middle of what a rule has accepted keep no other one waiting")
        func gone() async throws {
            let lab = try await HandoffLab(["taker", "first", "second", "third"])
            defer { lab.down() }
            let scans = try lab.destination("scans")
            let writing = try lab.startProgram(
                1,
                [
                    "sh", "-c", "mkdir -p \"$BATON_HOME/config\" && echo \"$1\" >\"$BATON_HOME/config/accept-policy\"",
                    "sh",
                    "accept type=public.* to=\(scans.path)",
                ])
            #expect(try await writing.end().status == 0, "\(writing.errors)")
            var nodes: [HostCommand] = []
            for host in 1...4 { nodes.append(try await lab.startNode(host).command) }
            for host in 1...4 { try await lab.awaitPeers(3, on: host) }
            for host in 2...3 {
                try lab.lab.command("rate", "\(host)", "20")
                let document = try lab.document("film \(host)", bytes: 60 << 20, seed: UInt64(60 + host))
                _ = try await lab.offer(host, document.path)
            }
            try await eventually("both come", within: .seconds(30)) { try lab.contents(of: scans).count == 2 }
            for host in 2...3 { nodes[host - 1].program.signal(SIGKILL) }
            try await eventually("both are waited for", within: .seconds(30)) {
                nodes[0].errors.split(separator: "\n").count { $0.contains("stopped coming") } == 2
            }
            // For longer than the pause after which how far they had come is told again, though they are away.
            let gone = ContinuousClock.now
            var count = 0
            while ContinuousClock.now - gone < .seconds(4) {
                count += 1
                let letter = "letter \(count)"
                let offer = try await lab.offer(4, try lab.document(letter, bytes: 1000, seed: 65).path)
                try await offer.command.event("continued")
                #expect(try lab.contents(of: scans).contains(letter))
                try await offer.command.end(by: SIGTERM)
            }
        }

        @Test("What a user accepts is held against the rules as it is, and not as it was announced")
        func grown() async throws {
            let lab = try await HandoffLab()
            defer { lab.down() }
            let home = try await join(lab, "taker")
            let origin = lab.folder.appendingPathComponent("o")
            try write("ask max=1KB\nrefuse type=public.*\n", home)
            _ = try await lab.startNode(1, home: origin)
            _ = try await lab.startNode(2, home: home)
            let document = try lab.document("small", bytes: 1000, seed: 44)
            let offer = try lab.start(1, ["offer", "--json", document.path], home: origin)
            let id = try await offer.event("offered").id ?? ""
            try await lab.start(2, ["activities", "--watch", "--json"], home: home).listed("small")
            let file = try FileHandle(forWritingTo: document)
            try file.seekToEnd()
            try file.write(contentsOf: Data(count: 5000))
            try file.close()
            let folder = try lab.destination("folder")
            let accepted = try await lab.run(2, "accept", id, "--json", "--to", folder.path, home: home)
            #expect(accepted.events.last?.code == "refused", "\(accepted)")
            #expect(accepted.events.last?.message?.contains("ine 2: refuse type=public.*") == true, "\(accepted)")
            #expect(try lab.contents(of: folder).isEmpty)
            try await offer.end(by: SIGTERM)
        }
    }
}
