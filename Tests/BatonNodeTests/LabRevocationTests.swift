// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Foundation
import Testing

extension LabHandoffTests {
    /// A lost device is locked out, and everybody else learns of it.
    ///
    /// In the other suite, so that only one lab of theirs is there at a time.
    @Suite(.timeLimit(.minutes(3)))
    struct LabRevocationTests {
        /// Starts the nodes of the first hosts, and waits until each sees the others.
        private func startNodes(_ lab: HandoffLab, _ count: Int) async throws -> [HostCommand] {
            var nodes: [HostCommand] = []
            for host in 1...count { nodes.append(try await lab.startNode(host).command) }
            for host in 1...count { try await lab.awaitPeers(count - 1, on: host) }
            return nodes
        }

        private func revoke(_ lab: HandoffLab, on host: Int, _ device: String) async throws -> HostCommand.Finished {
            try await lab.run(host, "devices", "revoke", device, "--yes", "--key-file", lab.keyFile.path)
        }

        /// Looks through the memory of a node for the keys of the first revocation in one piece, as they travel.
        private func expectNoTravelledKeys(of node: HostCommand, on host: Int, _ lab: HandoffLab) async throws {
            let places = URL(filePath: #filePath).deletingLastPathComponent()
                .appending(path: "Support/memory-places.py")
            let looking = "exec python3 \"$1\" \"$2\" \"$(find \"$BATON_HOME\" -name 'generation-1-*.keys')\""
            let process = "\(node.program.processIdentifier)"
            let found = try await lab.startProgram(host, ["sh", "-c", looking, "sh", places.path, process])
                .end(within: .seconds(60))
            #expect(found.status == 0 && found.lines.isEmpty, "\(found)")
        }

        /// The line of `baton devices --json` that speaks of a device.
        private func device(_ name: String, on host: Int, _ lab: HandoffLab) async throws -> String? {
            try await lab.run(host, "devices", "--json").lines.first { $0.contains("\"name\":\"\(name)\"") }
        }

        /// - Parameter limit: an advertisement comes each minute, and who could not be told otherwise is told then.
        private func awaitKnowledge(
            of name: String, on host: Int, _ lab: HandoffLab, within limit: Duration = .seconds(40)
        ) async throws {
            let began = ContinuousClock.now
            try await eventually("host \(host) sees that \(name) knows", within: limit) {
                try await device(name, on: host, lab)?.contains("\"knows\":true") == true
            }
            print("host \(host) saw that \(name) knows after \(ContinuousClock.now - began)")
        }

        @Test("A listing meets devices that are only announced, shows their new names, and loses who is forgotten")
        func meeting() async throws {
            let lab = try await HandoffLab(["laptop", "desktop"])
            defer { lab.down() }
            let nodes = try await startNodes(lab, 2)
            for (host, other) in [(1, "desktop"), (2, "laptop")] {
                try await eventually("host \(host) has met \(other)", within: .seconds(60)) {
                    try await device(other, on: host, lab)?.contains("\"proved\":true") == true
                }
            }
            let renamed = try await lab.run(2, "devices", "rename", " tower ")
            #expect(renamed.status == 0 && renamed.errors == "This device is tower now.\n", "\(renamed)")
            try await eventually("the laptop shows the new name and the old one") {
                try await device("tower", on: 1, lab)?.contains("\"formerNames\":[\"desktop\"]") == true
            }
            #expect(try await lab.run(2, "account", "show", "--json").lines.first?.contains("\"tower\"") == true)

            let present = try await lab.run(1, "devices", "forget", "tower")
            #expect(present.status != 0 && present.errors.contains("it is on the network now"), "\(present)")
            func leave(_ node: HostCommand) async throws {
                #expect(try await node.end(by: SIGTERM).status == 0)
                try await eventually("the tower has gone") {
                    try await device("tower", on: 1, lab)?.contains("\"present\":false") == true
                }
            }
            try await leave(nodes[1])
            #expect(try await lab.run(1, "devices", "forget", "desktop").status == 0)
            #expect(try await device("tower", on: 1, lab) == nil)

            // It is listed again when the two meet again.
            let again = try await lab.startNode(2).command
            try await eventually("the laptop has met the tower again", within: .seconds(60)) {
                try await device("tower", on: 1, lab)?.contains("\"proved\":true") == true
            }
            try await leave(again)
            #expect(try await nodes[0].end(by: SIGTERM).status == 0)
            let alone = try await lab.run(1, "devices", "forget", "tower")
            #expect(alone.status == 0 && alone.errors.hasSuffix(" is forgotten here.\n"), "\(alone)")
            _ = try await lab.startNode(1)
            #expect(try await device("tower", on: 1, lab) == nil)
        }

        @Test("A revoked device is out at once and stays out; who slept or joins later learns of it")
        func revocation() async throws {
            let lab = try await HandoffLab(["laptop", "desktop", "phone", "tablet"], members: 3)
            defer { lab.down() }
            let nodes = try await startNodes(lab, 3)
            let shell = try await lab.offer(
                1, "--type", "org.example.shell", "--title", "Shell", "--serve", "cat")
            let own = try await lab.offer(3, "--url", "https://example.org/phone", "--title", "Phone")
            try await lab.watch(1).listed("Phone")
            try await lab.watch(3).listed("Shell")
            let holder = try lab.start(3, "accept", "--wait", "30", "--stream")
            holder.program.send("here")
            try await holder.program.line { $0 == "here" }
            try await nodes[1].end(by: SIGTERM)

            let unasked = try await lab.run(1, "devices", "revoke", "phone", "--key-file", lab.keyFile.path)
            #expect(unasked.status == 64 && unasked.errors.contains("--yes"), "\(unasked.errors)")
            let self1 = try await revoke(lab, on: 1, "laptop")
            #expect(self1.status == 77 && self1.errors.contains("account leave"), "\(self1.errors)")

            let revoking = try lab.start(
                1, "devices", "revoke", "phone", "--yes", "--key-file", lab.keyFile.path)
            try await eventually("the list has arrived") { nodes[0].errors.contains("1 device is revoked (list 1)") }
            // The live connection, in the middle of a stream.
            try await eventually("the connection is gone", within: .seconds(1)) { !holder.program.isRunning }
            #expect(try await holder.end().status == 68)
            // All that before anything is looked for.
            #expect(revoking.program.isRunning && !revoking.errors.contains("Not yet known"))
            let revoked = try await revoking.end()
            #expect(revoked.status == 0 && revoked.errors.contains("phone"), "\(revoked.errors)")
            #expect(revoked.errors.contains("Not yet known to: desktop"), "\(revoked.errors)")

            // It gets nothing, and says why where it can know.
            let refused = try await lab.run(3, "accept", shell.id)
            #expect([66, 77].contains(refused.status), "\(refused.errors)")
            #expect(refused.status == 66 || refused.errors.contains("was revoked"), "\(refused.errors)")
            try await eventually("the phone can list nothing") {
                try await lab.run(3, "activities", "--json").lines.isEmpty
            }
            #expect(try await lab.run(1, "activities", "--json").lines.isEmpty)
            #expect(try await device("phone", on: 1, lab) == nil)

            // The device that slept announces itself under the old keys, is dialled, and catches up.
            let desktop = try await lab.startNode(2).command
            try await awaitKnowledge(of: "desktop", on: 1, lab)
            try await lab.watch(2).listed("Shell")
            #expect(try await lab.run(2, "activities", "--json").events.map(\.title) == ["Shell"])
            #expect(try await device("phone", on: 2, lab) == nil)
            #expect(desktop.errors.contains("1 device is revoked (list 1)"))

            // The new keys crossed between the command, its node and the other one: nothing that they went through has
            // kept them as they are on the disk.
            for (host, node) in [(1, nodes[0]), (2, desktop)] {
                try await expectNoTravelledKeys(of: node, on: host, lab)
            }

            // A device that joins takes the state over before the key is gone.
            let joining = try await lab.run(
                4, "account", "join", "--name", "tablet", "--key-file", lab.keyFile.path)
            #expect(joining.status == 0, "\(joining.errors)")
            #expect(joining.errors.contains("They know that 1 device was revoked"), "\(joining.errors)")
            _ = try await lab.startNode(4)
            try await lab.awaitPeers(2, on: 4)
            try await awaitKnowledge(of: "tablet", on: 1, lab)
            #expect(try await lab.run(4, "activities", "--json").events.map(\.title) == ["Shell"])

            // A thief's copy of the folder, which has everything but the account key.
            try await nodes[2].end(by: SIGTERM)
            let stolen = try lab.destination("stolen")
            let copying = try lab.startProgram(
                3, ["sh", "-c", "cp -a \"$BATON_HOME/.\" \"$1\" && rm -rf \"$1/run\"", "sh", stolen.path])
            #expect(try await copying.end().status == 0, "\(copying.errors)")
            let thief = try lab.start(3, "node", "--json", "--verbose", home: stolen)
            try await thief.event("ready")
            let again = try await lab.run(3, "account", "join", home: stolen)
            #expect(again.status == 78, "\(again.errors)")
            let last = try await lab.offer(1, "--url", "https://example.org/last", "--title", "Last")
            try await lab.watch(4).listed("Last")
            #expect(try await lab.run(3, "activities", "--json", home: stolen).lines.isEmpty)
            let taken = try await lab.run(3, "accept", last.id, home: stolen)
            #expect(taken.status == 66, "\(taken.errors)")
            for command in [shell.command, own.command, last.command] { _ = try? await command.end(by: SIGTERM) }
        }

        /// It stopped before it had stored the list, or its disk went back to what it was before.
        @Test("A device that has lost a list it had is told again")
        func lostList() async throws {
            let lab = try await HandoffLab(["laptop", "desktop", "phone"])
            defer { lab.down() }
            let nodes = try await startNodes(lab, 3)
            let backup = try lab.destination("backup")
            func onDesktop(_ script: String) async throws {
                let shell = try lab.startProgram(2, ["sh", "-c", script, "sh", backup.path])
                #expect(try await shell.end().status == 0, "\(shell.errors)")
            }
            try await onDesktop("cp -a \"$BATON_HOME/.\" \"$1\"")
            // No connection need have shown it.
            let phone = try #require(try await device("phone", on: 1, lab).flatMap(LabEvent.init)?.deviceID)
            #expect(try await revoke(lab, on: 1, phone).status == 0)
            try await awaitKnowledge(of: "desktop", on: 1, lab)
            try await awaitKnowledge(of: "laptop", on: 2, lab)
            try await nodes[1].end(by: SIGKILL)
            try await onDesktop(
                "rm -rf \"$BATON_HOME/state/account\" && cp -a \"$1/state/account\" \"$BATON_HOME/state/account\"")
            let desktop = try await lab.startNode(2).command
            try await eventually("the desktop has the list again", within: .seconds(30)) {
                desktop.errors.contains("1 device is revoked (list 1)")
            }
            try await awaitKnowledge(of: "desktop", on: 1, lab)
            #expect(try await device("phone", on: 2, lab) == nil)
        }

        @Test("A document of a device that is revoked meanwhile is not waited for")
        func amidADocument() async throws {
            let lab = try await HandoffLab(["laptop", "phone"])
            defer { lab.down() }
            _ = try await startNodes(lab, 2)
            try lab.lab.command("rate", "2", "20")
            let offer = try await lab.offer(2, try lab.document("film", bytes: 40 << 20, seed: 61).path)
            try await lab.watch(1).listed("film")
            let folder = try lab.destination("inbox")
            let accepting = try lab.start(1, "accept", offer.id, "--json", "--to", folder.path)
            try await accepting.event("progress") { ($0.bytes ?? 0) > 1_000_000 }
            #expect(try await revoke(lab, on: 1, "phone").status == 0)
            let ended = try await accepting.end(within: .seconds(10))
            #expect(ended.status == 77 && ended.events.last?.code == "refused", "\(ended)")
            #expect(ended.events.last?.message?.contains("revoked") == true, "\(ended)")
            // A part is kept, as of every transfer that was interrupted.
            #expect(try lab.contents(of: folder).count == 1)
        }

        /// The user revokes on the laptop; the desktop only hears of it, in the middle of a stream with the lost
        /// device.
        @Test("Who hears of a revocation from another device ends its connection with the revoked one within a second")
        func spreading() async throws {
            let lab = try await HandoffLab(["laptop", "desktop", "phone"])
            defer { lab.down() }
            let nodes = try await startNodes(lab, 3)
            let shell = try await lab.offer(
                2, "--type", "org.example.shell", "--title", "Shell", "--serve", "cat")
            try await lab.watch(3).listed("Shell")
            let holder = try lab.start(3, "accept", "--wait", "30", "--stream")
            holder.program.send("here")
            try await holder.program.line { $0 == "here" }
            let phone = try #require(try await device("phone", on: 1, lab).flatMap(LabEvent.init)?.deviceID)

            let revoking = try lab.start(
                1, "devices", "revoke", phone, "--yes", "--key-file", lab.keyFile.path)
            let list = "1 device is revoked (list 1)"
            try await eventually("the list has come to the desktop", within: .seconds(40)) {
                nodes[1].errors.contains(list)
            }
            try await eventually("the connection is gone", within: .seconds(1)) { !holder.program.isRunning }
            #expect(try await holder.end().status == 68)
            try await eventually("the desktop has ended it") {
                nodes[1].errors.contains("connections with the revoked device \(phone.prefix(8)) were ended")
            }
            #expect(!nodes[2].errors.contains(list))
            #expect(try await revoking.end().status == 0)
            #expect(try await device("phone", on: 2, lab) == nil)
            _ = try? await shell.command.end(by: SIGTERM)
        }

        @Test("Devices that were revoked apart are all out, and who meets both sides joins the others again")
        func apart() async throws {
            let lab = try await HandoffLab(["laptop", "desktop", "phone", "tablet", "watch"])
            defer { lab.down() }
            let nodes = try await startNodes(lab, 5)
            // No connection need have shown them.
            let id = try #require(try await device("tablet", on: 1, lab).flatMap(LabEvent.init)?.deviceID)
            let phone = try #require(try await device("phone", on: 1, lab).flatMap(LabEvent.init)?.deviceID)
            for host in [3, 4, 5] { try await nodes[host - 1].end(by: SIGTERM) }
            try lab.lab.command("link", "2", "down")
            #expect(try await revoke(lab, on: 1, phone).status == 0)
            #expect(try await revoke(lab, on: 2, id).status == 0)
            try lab.lab.command("link", "2", "up")
            // Neither can open what the other announces now.
            // The device that slept is told by both, and tells each what it has of the other.
            _ = try await lab.startNode(5)
            for host in [1, 2, 5] {
                try await eventually("host \(host) says that both lists hold", within: .seconds(60)) {
                    try await lab.run(host, "devices", "--json").errors.contains("on devices that had not met")
                }
            }
            // Both know of each other what they have, by what they told, and not by the next advertisement.
            for (name, host) in [
                ("desktop", 1), ("watch", 1), ("laptop", 2), ("watch", 2), ("laptop", 5), ("desktop", 5),
            ] {
                try await awaitKnowledge(of: name, on: host, lab, within: .seconds(20))
            }
            #expect(nodes[0].errors.contains("revocation lists were signed apart"))
            #expect(nodes[1].errors.contains("revocation lists were signed apart"))
            #expect(try await revoke(lab, on: 1, id).status == 0)
            for (name, host) in [("watch", 1), ("desktop", 1), ("laptop", 2), ("watch", 2)] {
                try await awaitKnowledge(of: name, on: host, lab, within: .seconds(20))
            }
            for host in [1, 2] {
                let devices = try await lab.run(host, "devices", "--json")
                #expect(devices.events.count == 2 && !devices.errors.contains("had not met"), "\(devices)")
            }
            #expect(nodes[0].errors.contains("2 devices are revoked (list 2)"))
            #expect(nodes[1].errors.contains("2 devices are revoked (list 2)"))
        }
    }
}
