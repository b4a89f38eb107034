// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Foundation
import Testing

extension LabHandoffTests {
    /// Trouble between hosts: each has one typed answer, and leaves nothing half-written.
    ///
    /// In the other suite, so that only one lab of theirs is there at a time.
    @Suite(.timeLimit(.minutes(3)))
    struct LabTroubleTests {
        private static let size = 40_000_000

        @Test("Destinations that are missing, read-only or full are said, and nothing is left in them")
        func destinations() async throws {
            let lab = try await HandoffLab()
            defer { lab.down() }
            _ = try await lab.startNode(1)
            let readOnly = try lab.destination("read-only")
            let full = try lab.destination("full")
            // Root writes wherever permissions forbid it, so that these are file systems, which only the node sees.
            let mounts = """
                mount -t tmpfs -o ro none "$1" && mount -t tmpfs -o size=1m none "$2" && shift 2 && exec "$@"
                """
            let node = try await lab.startNode(
                2, wrapper: ["unshare", "--mount", "sh", "-c", mounts, "sh", readOnly.path, full.path]
            ).command
            let document = try lab.document("big", bytes: 5_000_000, seed: 30)
            let offer = try await lab.offer(1, document.path)
            try await lab.watch(2).listed("big")
            let cases = [
                (readOnly.path, "destinationUnwritable"), (full.path, "destinationFull"),
                (lab.folder.appendingPathComponent("missing").path, "destinationUnwritable"),
            ]
            for (path, code) in cases {
                let accepted = try await lab.run(2, "accept", "--json", "--to", path)
                #expect(accepted.status == 73, "\(path): \(accepted.errors)")
                #expect(accepted.events.last?.event == "failed" && accepted.events.last?.code == code, "\(path)")
            }
            let left = "/proc/\(node.program.processIdentifier)/root\(full.path)"
            #expect(try FileManager.default.contentsOfDirectory(atPath: left).isEmpty)
            // And it still goes where there is room.
            let folder = try lab.destination("room")
            #expect(try await lab.run(2, "accept", "--to", folder.path).status == 0)
            #expect(try lab.contents(of: folder) == ["big"])
            try await offer.command.end(by: SIGTERM)
        }

        @Test("A transfer is cancelled by ^C, outlives its terminal, and ends typed when document or origin go")
        func interruptedTransfers() async throws {
            let lab = try await HandoffLab()
            defer { lab.down() }
            let nodes = try await lab.startNodes()
            // Slow enough that what happens in the middle happens in the middle.
            try lab.lab.command("rate", "1", "100")
            let document = try lab.document("film", bytes: Self.size, seed: 31)
            let offer = try await lab.offer(1, document.path)
            let watch = try lab.watch(2)
            try await watch.listed("film")

            // ^C
            let folder = try lab.destination("cancelled")
            let cancelled = try await halfWay(lab, folder).end(by: SIGINT)
            #expect(cancelled.status == 130, "\(cancelled.errors)")
            try await eventually("a part is kept, and nothing else") {
                try lab.contents(of: folder).map { $0.hasSuffix(".baton-part") } == [true]
            }
            try await offer.command.event("failed") { $0.code == "cancelled" && $0.device == "desktop" }

            #expect(offer.command.events.filter { $0.event == "failed" }.count == 1)

            // And again: what came is not sent a second time.
            let again = try await lab.run(2, "accept", "--json", "--to", folder.path)
            #expect(again.status == 0, "\(again.errors)")
            #expect((again.events.first { $0.event == "progress" }?.resumed ?? 0) > 0)
            #expect(try lab.contents(of: folder) == ["film"])

            // A terminal that dies.
            let kept = try lab.destination("kept")
            try await halfWay(lab, kept).end(by: SIGHUP)
            try await eventually("the document has arrived") { try lab.contents(of: kept) == ["film"] }
            #expect(
                FileManager.default.contentsEqual(
                    atPath: kept.appendingPathComponent("film").path, andPath: document.path))

            // Written to between two attempts, and while the device is away.
            let between = try lab.destination("between")
            for isAway in [false, true] {
                let before = try await lab.sentBytes(1)
                var accepting = try await halfWay(lab, between, beyond: Self.size / 2)
                if isAway {
                    try lab.lab.command("link", "1", "down")
                } else {
                    #expect(try await accepting.end(by: SIGINT).status == 130)
                }
                let file = try FileHandle(forWritingTo: document)
                try file.seek(toOffset: isAway ? 2000 : 3000)
                try file.write(contentsOf: Data("other".utf8))
                try file.close()
                if isAway {
                    try await accepting.event("interrupted") { $0.code != "documentChanged" }
                    try await accepting.event("progress") { $0.rate == 0 }
                    try lab.lab.command("link", "1", "up")
                } else {
                    accepting = try lab.start(2, "accept", "--wait", "30", "--json", "--to", between.path)
                }
                let ended = try await accepting.end()
                #expect(ended.status == 0, "\(ended.errors)")
                #expect(ended.events.filter { $0.event == "interrupted" && $0.code == "documentChanged" }.count == 1)
                #expect(try await lab.sentBytes(1) - before < Self.size * 5 / 4)
                let arrived = between.appendingPathComponent("film")
                #expect(FileManager.default.contentsEqual(atPath: arrived.path, andPath: document.path))
                try FileManager.default.removeItem(at: arrived)
            }

            // Written to while it is sent, and cut short.
            let changed = try lab.destination("changed")
            for change in ["grows", "is edited", "is missing for a moment", "shrinks"] {
                let before = try await lab.sentBytes(1)
                let accepting = try await halfWay(lab, changed, beyond: Self.size / 2)
                if change == "is missing for a moment" {
                    // As a program saves that puts the old one aside first.
                    let old = document.appendingPathExtension("old")
                    try FileManager.default.moveItem(at: document, to: old)
                    try await accepting.event("interrupted") { $0.code == "documentChanged" }
                    try FileManager.default.copyItem(at: old, to: document)
                }
                let file = try FileHandle(forWritingTo: document)
                switch change {
                case "grows":
                    try file.seekToEnd()
                    try file.write(contentsOf: Data("more".utf8))
                case "is edited", "is missing for a moment":
                    try file.seek(toOffset: 1000)
                    try file.write(contentsOf: Data("other".utf8))
                default:
                    try file.truncate(atOffset: 1000)
                }
                try file.close()
                // It is noticed, told, and what it is now arrives.
                let ended = try await accepting.end()
                #expect(ended.status == 0, "\(change): \(ended.errors)")
                #expect(
                    ended.events.contains { $0.event == "interrupted" && $0.code == "documentChanged" }, "\(change)")
                // Chunks of the other version that came are not sent again, unless they differ or were on their way.
                let sent = try await lab.sentBytes(1) - before
                print("a film of \(Self.size) bytes that \(change): \(sent) were sent")
                #expect(sent < Self.size * 5 / 4, "\(change)")
                #expect(try lab.contents(of: changed) == ["film"], "\(change)")
                let arrived = changed.appendingPathComponent("film")
                #expect(FileManager.default.contentsEqual(atPath: arrived.path, andPath: document.path), "\(change)")
                try FileManager.default.removeItem(at: arrived)
            }
            try await offer.command.end(by: SIGTERM)

            // The origin dies.
            let second = try lab.document("second", bytes: Self.size, seed: 32)
            let lost = try await lab.offer(1, second.path)
            try await watch.listed("second")
            let broken = try lab.destination("broken")
            let accepting = try await halfWay(lab, broken)
            nodes[0].program.signal(SIGKILL)
            let interrupted = try await accepting.event("interrupted") { _ in true }
            #expect(["connectionLost", "peerUnreachable", "timedOut"].contains(interrupted.code))
            // It would be offered again by itself.
            try await lost.command.event("nodeLost")
            try await lost.command.end(by: SIGTERM)

            // And comes back, and offers another document of that name first, which is not what was accepted.
            _ = try await lab.startNode(1)
            _ = try lab.destination("elsewhere")
            let other = try lab.document("elsewhere/second", bytes: 1_000_000, seed: 34)
            let stranger = try await lab.offer(1, other.path)
            try await eventually("it is listed", within: .seconds(30)) {
                try await lab.run(2, "activities", "--json").lines.contains { $0.contains(stranger.id) }
            }
            // The device is tried again twice a second.
            let listed = ContinuousClock.now
            try await eventually("it is not taken for the other") { ContinuousClock.now - listed > .seconds(3) }
            #expect(!stranger.command.events.contains { $0.event == "taken" })
            #expect(accepting.program.isRunning)

            // And the document is offered again, which was saved meanwhile as editors do, by another file in its place:
            // it goes on by itself.
            let saved = second.appendingPathExtension("saved")
            try FileManager.default.copyItem(at: second, to: saved)
            let file = try FileHandle(forWritingTo: saved)
            try file.write(contentsOf: Data("saved".utf8))
            try file.close()
            try #require(rename(saved.path, second.path) == 0)
            let found = try await lab.offer(1, second.path)
            let whole = try await accepting.end()
            #expect(whole.status == 0, "\(whole.errors)")
            #expect(whole.events.contains { $0.event == "interrupted" && $0.code == "documentChanged" })
            #expect(
                FileManager.default.contentsEqual(
                    atPath: broken.appendingPathComponent("second").path, andPath: second.path))
            #expect(!stranger.command.events.contains { $0.event == "taken" })
            for offer in [stranger, found] { try await offer.command.end(by: SIGTERM) }
            let third = try await lab.offer(1, "--url", "https://example.org/back", "--title", "Back")
            try await watch.listed("Back")
            #expect(try await lab.run(2, "accept", third.id).lines == ["https://example.org/back"])
            try await third.command.end(by: SIGTERM)
        }

        @Test("A command that is killed and run again at once goes on with what has come, and there is one document")
        func killedCommand() async throws {
            let lab = try await HandoffLab()
            defer { lab.down() }
            _ = try await lab.startNodes()
            // The rest takes longer than asking again does.
            try lab.lab.command("rate", "1", "20")
            let document = try lab.document("film", bytes: Self.size, seed: 33)
            let offer = try await lab.offer(1, document.path)
            try await lab.watch(2).listed("film")
            let folder = try lab.destination("inbox")
            let killed = try lab.start(2, "accept", "--json", "--to", folder.path)
            try await killed.event("progress") { ($0.bytes ?? 0) > 3_000_000 }
            try await killed.end(by: SIGKILL)
            // The node goes on meanwhile, and does not so beside who asks again.
            let again = try lab.start(2, "accept", "--json", "--to", folder.path)
            let progress = try await again.event("progress")
            #expect((progress.resumed ?? 0) >= 3_000_000)
            try lab.lab.command("rate", "1", "off")
            let ended = try await again.end()
            #expect(ended.status == 0, "\(ended.errors)")
            #expect(try lab.contents(of: folder) == ["film"])
            let arrived = folder.appendingPathComponent("film")
            #expect(FileManager.default.contentsEqual(atPath: arrived.path, andPath: document.path))

            // What is in place is in nobody's way: it is not fetched again.
            let third = try await lab.run(2, "accept", "--json", "--to", folder.path)
            #expect(third.status == 73 && third.events.last?.code == "destinationExists", "\(third.errors)")
            #expect(try lab.contents(of: folder) == ["film"])
            try await offer.command.end(by: SIGTERM)
        }

        @Test("A node says so when another machine runs with a copy of its account folder")
        func copiedFolder() async throws {
            let lab = try await HandoffLab(["laptop", "clone"], members: 1)
            defer { lab.down() }
            let copy = try lab.destination("copy")
            let copying = try lab.startProgram(1, ["sh", "-c", "cp -a \"$BATON_HOME/.\" \"$1\"", "sh", copy.path])
            #expect(try await copying.end().status == 0, "\(copying.errors)")
            let node = try await lab.startNode(1).command
            let before = try await lab.run(1, "status")
            #expect(!before.lines.contains { $0.hasPrefix("account ") }, "\(before.lines)")
            // Epochs are seconds: its second run is in a later one than the other node's.
            try await lab.startNode(2, home: copy).command.end(by: SIGTERM)
            _ = try await lab.startNode(2, home: copy)
            try await eventually("the first one says so", within: .seconds(30)) {
                try await lab.run(1, "status").lines.contains {
                    $0 == "account      another machine runs with a copy of this one's account folder"
                }
            }
            #expect(node.errors.contains("with a copy of this one's account folder"))
            // The others hear this one.
            #expect(try await !lab.run(2, "status", home: copy).lines.contains { $0.hasPrefix("account ") })
        }

        @Test("A command and the origin's node are killed, and what is offered again is accepted again: it comes once")
        func killedOnBothSides() async throws {
            let lab = try await HandoffLab()
            defer { lab.down() }
            let nodes = try await lab.startNodes()
            try lab.lab.command("rate", "1", "20")
            let document = try lab.document("film", bytes: Self.size, seed: 35)
            let offer = try await lab.offer(1, document.path)
            let watch = try lab.watch(2)
            try await watch.listed("film")
            let folder = try lab.destination("inbox")
            let killed = try lab.start(2, "accept", "--json", "--to", folder.path)
            try await killed.event("progress") { ($0.bytes ?? 0) > 3_000_000 }
            try await killed.end(by: SIGKILL)
            nodes[0].program.signal(SIGKILL)
            try await offer.command.event("nodeLost")

            // The command offers it anew, the other node goes on by itself with that, and under its id it is accepted.
            _ = try await lab.startNode(1)
            let anew = try await offer.command.event("offered") { $0.id != offer.id }
            try await eventually("it is taken again", within: .seconds(30)) {
                offer.command.events.count { $0.event == "taken" } == 2
            }
            // The device that takes it again was told by a connection. The list may be a little behind.
            try await eventually("it is listed again", within: .seconds(30)) {
                watch.events.contains { $0.id == anew.id }
            }
            let again = try lab.start(2, "accept", anew.id ?? "", "--json", "--to", folder.path)
            let progress = try await again.event("progress")
            #expect((progress.resumed ?? 0) >= 3_000_000)
            let parts = try lab.contents(of: folder)
            #expect(parts.count == 1 && parts[0].hasSuffix(".baton-part"), "\(parts)")
            try lab.lab.command("rate", "1", "off")
            let ended = try await again.end()
            #expect(ended.status == 0, "\(ended.errors)")
            #expect(try lab.contents(of: folder) == ["film"])
            let arrived = folder.appendingPathComponent("film")
            #expect(FileManager.default.contentsEqual(atPath: arrived.path, andPath: document.path))
            try await offer.command.end(by: SIGTERM)
        }

        /// An `accept` that has some of the document and not yet all.
        private func halfWay(_ lab: HandoffLab, _ folder: URL, beyond bytes: Int = 0) async throws -> HostCommand {
            let accepting = try lab.start(2, "accept", "--wait", "30", "--json", "--to", folder.path)
            let progress = try await accepting.event("progress") { ($0.bytes ?? 0) > UInt64(bytes) }
            #expect(progress.bytes ?? 0 < UInt64(Self.size))
            return accepting
        }

        @Test("An exclusive activity moves to one device, and no other device is offered it from then on")
        func exclusive() async throws {
            let lab = try await HandoffLab(["laptop", "desktop", "tablet"])
            defer { lab.down() }
            _ = try await lab.startNodes()
            let offer = try await lab.offer(
                1, "--type", "org.example.shell", "--title", "Shell", "--exclusive", "--serve", "cat")
            try await lab.watch(3).listed("Shell")
            let holder = try lab.start(2, "accept", "--wait", "30", "--stream")
            holder.program.send("here")
            try await holder.program.line { $0 == "here" }
            try await eventually("it is offered no more") {
                try await lab.run(3, "activities", "--json").events.isEmpty
            }
            let second = try await lab.run(3, "accept", "--json")
            #expect(second.status != 0)
            // Its application goes on serving the holder, and hears of the end after that.
            holder.program.send("there")
            try await holder.program.line { $0 == "there" }
            holder.program.closeInput()
            #expect(try await holder.end().status == 0)
            let moved = try await offer.command.end()
            #expect(moved.status == 0)
            let told = moved.events.compactMap(\.event)
            #expect(told.contains("continued") && told.last == "withdrawn")
            #expect(try await lab.run(3, "accept", "--json").status != 0)
        }

        @Test("A device that gave up holds no exclusive activity, though the answer comes after all")
        func hastyExclusive() async throws {
            let lab = try await HandoffLab(["laptop", "desktop", "tablet"])
            defer { lab.down() }
            _ = try await lab.startNodes()
            let offer = try await lab.offer(
                1, "--type", "org.example.shell", "--title", "Shell", "--exclusive", "--serve", "cat")
            for host in 2...3 { try await lab.watch(host).listed("Shell") }
            // A device that gave up before the application answered holds nothing, though the answer comes after all.
            offer.command.program.signal(SIGSTOP)
            let hasty = try lab.start(2, "accept", "--json")
            try await hasty.event("willContinue")
            hasty.program.signal(SIGINT)
            #expect(try await hasty.end().status == 130)
            offer.command.program.signal(SIGCONT)
            try await eventually("it is free again") { try await lab.run(3, "accept", "--json").status == 0 }
            try await offer.command.end(by: SIGTERM)
        }

        @Test("A device that does not answer holds no listing up, and what may be missing is said")
        func silent() async throws {
            let lab = try await HandoffLab()
            defer { lab.down() }
            let laptop = try await lab.startNode(1).command
            let offers = try await [
                lab.offer(1, "--url", "https://example.org/1", "--title", "First"),
                lab.offer(1, "--url", "https://example.org/2", "--title", "Second"),
            ]
            // A fresh node, which has no connection with it.
            let fresh = try await lab.startNode(2).command
            try await lab.watch(2).listed("Second")
            try await fresh.end(by: SIGTERM)
            // Avahi goes on telling what the node said last.
            laptop.program.signal(SIGSTOP)
            defer { laptop.program.signal(SIGCONT) }
            _ = try await lab.startNode(2)
            try await lab.awaitPeers(1, on: 2)
            let part = try await lab.run(2, "activities", "--json")
            #expect(part.events.map(\.title) == ["Second"])
            #expect(part.errors.contains("laptop did not answer in time: it may offer more"), "\(part.errors)")

            laptop.program.signal(SIGCONT)
            try await eventually("all is listed") {
                let whole = try await lab.run(2, "activities", "--json")
                return whole.errors.isEmpty && whole.events.map(\.title) == ["Second", "First"]
            }
            for offer in offers { try await offer.command.end(by: SIGTERM) }
        }

        @Test("Another account sees nothing and cannot connect, and garbage leaves the node as it was")
        func strangers() async throws {
            let lab = try await HandoffLab(["laptop", "desktop", "stranger"], members: 2)
            defer { lab.down() }
            #expect(try await lab.run(3, "account", "create", "--name", "stranger").status == 0)
            let (node, port) = try await lab.startNode(1)
            _ = try await lab.startNode(2)
            _ = try await lab.startNode(3)
            let offer = try await lab.offer(1, "--url", "https://example.org/mine", "--title", "Mine")
            let own = try await lab.offer(3, "--url", "https://example.org/theirs", "--title", "Theirs")
            // Those who may see it do, so that there was time for the one who may not.
            let watch = try lab.watch(2)
            try await watch.listed("Mine")
            try await lab.awaitPeers(1, on: 1)
            try await lab.awaitPeers(1, on: 2)
            #expect(try await lab.status(3)?.peers == 0)
            #expect(try await lab.run(3, "activities", "--json").lines.isEmpty)
            #expect(try await lab.run(3, "devices", "--json").lines.isEmpty)
            #expect(try await lab.run(3, "accept", offer.id).status == 66)
            #expect(!watch.program.lines.contains { $0.contains("Theirs") })

            let garbage = try lab.startProgram(
                3,
                [
                    "python3", "-c",
                    """
                    import os, socket, sys
                    for size in (1, 5, 300, 100000):
                        s = socket.create_connection(("10.77.0.1", int(sys.argv[1])), 10)
                        s.settimeout(30)
                        answer = b""
                        try:
                            s.sendall(bytes((i * 7 + size) % 256 for i in range(size)))
                            s.shutdown(socket.SHUT_WR)
                            while piece := s.recv(4096): answer += piece
                        except OSError: pass
                        s.close()
                        if answer: print("answered", size, answer[:40])
                    print("refused")
                    """, "\(port)",
                ])
            #expect(try await garbage.end().lines == ["refused"], "\(garbage.errors)")
            // Its own certificate, made by nobody of the account.
            let key = lab.folder.appendingPathComponent("stranger.pem").path
            let made = try lab.startProgram(
                3,
                [
                    "openssl", "req", "-x509", "-newkey", "ed25519", "-nodes", "-keyout", key, "-out", key + ".crt",
                    "-subj", "/CN=stranger", "-days", "1",
                ])
            #expect(try await made.end().status == 0, "\(made.errors)")
            for arguments in [
                ["-alpn", "x"], ["-alpn", "baton/1"], ["-alpn", "baton/1", "-cert", key + ".crt", "-key", key], [],
            ] {
                // Without a token nobody gets a byte, not even an alert.
                let client = try lab.startProgram(
                    3, ["openssl", "s_client", "-connect", "10.77.0.1:\(port)", "-tls1_3", "-ign_eof"] + arguments)
                let ended = try await client.end()
                #expect(ended.lines.contains { $0.contains("read 0 bytes") }, "\(arguments): \(ended.lines)")
                #expect(!ended.errors.contains("alert"), "\(arguments): \(ended.errors)")
            }
            #expect(node.program.isRunning)
            let status = try await lab.run(1, "status").lines
            #expect(status.contains { $0.hasPrefix("connections") && $0.hasSuffix(" 0") }, "\(status)")
            #expect(try await lab.run(2, "accept").lines == ["https://example.org/mine"])
            for command in [offer.command, own.command] { try await command.end(by: SIGTERM) }
        }

        @Test("Nodes outlive Avahi and D-Bus, and say what they miss")
        func responder() async throws {
            let lab = try await HandoffLab()
            defer { lab.down() }
            try lab.lab.command("bus", "2", "kill")
            let (laptop, port) = try await lab.startNode(1)
            let desktop = try await lab.startNode(2).command
            try await eventually("it is said that there is no bus") {
                try await lab.status(2)?.responder?.hasPrefix("unavailable: The D-Bus system bus") == true
            }

            // Where a node cannot be.
            let another = try await lab.run(1, "node")
            #expect(
                another.status == 75 && another.errors.contains("a node is running here already"), "\(another.errors)")
            let home = try lab.destination("home")
            let homeless = try await lab.run(1, "node", home: home)
            #expect(homeless.status == 78 && homeless.errors.contains("run `baton`"), "\(homeless.errors)")
            #expect(try await lab.run(1, "status", home: home).status == 69)
            #expect(try await lab.run(1, "account", "create", home: home).status == 0)
            let taken = try await lab.run(1, "node", "--port", "\(port)", home: home)
            #expect(taken.status == 1 && taken.errors.contains("port \(port) is in use"), "\(taken.errors)")

            try lab.lab.command("bus", "2", "start")
            try lab.lab.command("avahi", "2", "start")
            try await lab.awaitPeers(1, on: 2)
            try await lab.awaitPeers(1, on: 1)

            try lab.lab.command("avahi", "1", "kill")
            try await eventually("it is said that there is no Avahi") {
                try await lab.status(1)?.responder?.hasPrefix("unavailable: Avahi is not running") == true
            }
            // Offered while nobody could hear it.
            let offer = try await lab.offer(1, "--url", "https://example.org/", "--title", "Unheard")
            try lab.lab.command("avahi", "1", "start")
            try await lab.watch(2).listed("Unheard")
            try await eventually("it runs again") { try await lab.status(1)?.responder == "running" }
            try await lab.awaitPeers(1, on: 1)
            #expect(laptop.program.isRunning && desktop.program.isRunning)
            try await offer.command.end(by: SIGTERM)
        }
    }
}
