// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Foundation
import Testing

/// The whole road between hosts with real Avahi: nodes, commands, TLS, disks.
@Suite(.serialized, .lab, .timeLimit(.minutes(3)))
struct LabHandoffTests {
    @Test("A host that does not see others says at the deadline what the nodes know and have said")
    func unseen() async throws {
        let lab = try await HandoffLab()
        defer { lab.down() }
        _ = try await lab.startNode(1)
        let failure = await #expect(throws: Lab.Failure.self) {
            try await lab.awaitPeers(1, on: 1, within: .seconds(1))
        }
        let text = failure?.description ?? ""
        #expect(text.contains("it never was that host 1 sees 1 devices"), "\(text)")
        #expect(text.contains("--- host 1 (laptop)\n{") && text.contains(#""peers":0"#), "\(text)")
        #expect(text.contains("\n| ") && !text.contains("no answer"), "\(text)")
        #expect(text.contains("--- host 2 (desktop)") && text.contains("\n| no node was started"), "\(text)")
    }

    @Test("A document is offered, listed, accepted, continued and withdrawn")
    func document() async throws {
        let seed: UInt64 = 20
        let lab = try await HandoffLab()
        defer { lab.down() }
        let nodes = try await lab.startNodes()
        let document = try lab.document("report.pdf", bytes: 20_000_000, seed: seed)
        let before = UInt64(Date().timeIntervalSince1970)
        let offer = try await lab.offer(1, document.path)
        let watch = try lab.watch(2)
        try await watch.listed("report.pdf")

        let listing = try await lab.run(2, "activities", "--json").events
        let activity = try #require(listing.first)
        #expect(listing.count == 1)
        #expect(activity.id == offer.id)
        #expect(activity.kind == "document")
        #expect(activity.type == "public.data")
        #expect(activity.device == "laptop")
        #expect(try await lab.status(1)?.deviceID == activity.deviceID)
        #expect(activity.size == 20_000_000)
        let since = try #require(activity.since.flatMap { ISO8601DateFormatter().date(from: $0) })
        #expect(abs(since.timeIntervalSince1970 - Double(before)) < 30)

        let folder = try lab.destination("inbox")
        let accepted = try await lab.run(2, "accept", "--json", "--to", folder.path)
        #expect(accepted.status == 0, "\(accepted.errors)")
        let names = accepted.events.compactMap(\.event)
        #expect(names.first == "willContinue")
        #expect(names.dropFirst().first == "payload")
        #expect(names.dropFirst(2).dropLast().allSatisfy { $0 == "progress" })
        #expect(names.contains("progress"))
        #expect(names.last == "continued")
        let progress = accepted.events.filter { $0.event == "progress" }.compactMap(\.bytes)
        // All of it is there when it is in its place, and not before.
        #expect(progress == progress.sorted() && progress.allSatisfy { $0 < 20_000_000 })
        let path = try #require(accepted.events.last?.path)
        #expect(path == folder.appendingPathComponent("report.pdf").path)
        #expect(FileManager.default.contentsEqual(atPath: path, andPath: document.path), "seed \(seed)")
        #expect(try lab.contents(of: folder) == ["report.pdf"])

        // Never over an existing file.
        let again = try await lab.run(2, "accept", "--json", "--to", folder.path)
        #expect(again.status == 73)
        #expect(again.events.last?.code == "destinationExists")
        #expect(again.events.last?.message?.contains("not overwritten; choose another name with --name") == true)
        #expect(try lab.contents(of: folder) == ["report.pdf"])
        // Beside it, under a name that the user chooses, or lets the node choose.
        for (options, name) in [
            (["--name", "copy.pdf"], "copy.pdf"), (["--on-conflict", "rename"], "report (2).pdf"),
            (["--name", "copy.pdf", "--on-conflict", "rename"], "copy (2).pdf"),
        ] {
            let beside = try await lab.start(2, ["accept", "--to", folder.path] + options).end()
            #expect(beside.lines == [folder.appendingPathComponent(name).path], "\(beside)")
        }
        #expect(
            try lab.contents(of: folder) == ["copy (2).pdf", "copy.pdf", "report (2).pdf", "report.pdf"])

        let ended = try await offer.command.end(by: SIGTERM)
        #expect(ended.status == 0)
        // The failure that the other device hears names no place of this one.
        let failed = try #require(ended.events.first { $0.event == "failed" })
        #expect(failed.code == "destinationExists" && failed.message?.contains("is there already") == true)
        #expect(!ended.lines.contains { $0.contains(folder.path) })
        let told = ended.events.compactMap(\.event)
        #expect(told.first == "offered" && told.last == "withdrawn")
        // The document is the node's to read: the command is not asked for anything.
        #expect(!told.contains("willSave"))
        let continued = try #require(told.firstIndex(of: "continued"))
        #expect(ended.events[continued].device == "desktop")
        try await watch.event("removed") { $0.id == offer.id }

        // Stopped politely, a node's activity is gone on the other side at once.
        let last = try await lab.offer(1, "--url", "https://example.org/last", "--title", "Last")
        try await watch.listed("Last")
        #expect(try await nodes[0].end(by: SIGTERM).status == 0)
        try await watch.event("removed") { $0.title == "Last" }
        // The command waits for the next node until somebody stops it as well.
        try await last.command.event("nodeLost")
        #expect(try await last.command.end(by: SIGTERM).status == 0)
    }

    @Test("An exclusive activity goes to nobody else if its new node is killed before the application has it")
    func killedAfterCommit() async throws {
        let lab = try await HandoffLab(["laptop", "desktop", "tablet"])
        defer { lab.down() }
        let nodes = try await lab.startNodes()
        let reader = try await LabApplication(lab, on: 2, LabManifest.write(lab, "org.example.reader"))
        let origin = try await LabApplication(lab, on: 1, LabManifest.write(lab, "org.example.writer"))
        origin.offer("Note", #","isExclusive":true"#)
        let watch = try lab.watch(3)
        try await watch.listed("Note")
        let accept = try lab.start(2, "accept", "--json", "--wait", "30")
        try await reader.agree()
        try await origin.save(nth: 1, page: 1)
        // The application is given the activity, and does not answer.
        try await reader.event("continue")
        try await origin.event("wasContinued")
        nodes[1].program.signal(SIGKILL)
        let accepted = try await accept.end()
        #expect(accepted.status != 0 && !accepted.events.contains { $0.event == "continued" })
        try await watch.event("removed") { $0.title == "Note" }
        #expect(try await lab.run(3, "accept", "--json").status != 0)
        #expect(origin.count("wasContinued") == 1)
    }

    @Test("A folder goes beside folders of its name, under the next number")
    func foldersOfOneName() async throws {
        let lab = try await HandoffLab()
        defer { lab.down() }
        _ = try await lab.startNodes()
        let (folder, inbox) = (try lab.destination("trip.2026"), try lab.destination("inbox"))
        try Data("a beach".utf8).write(to: folder.appending(path: "photo"))
        let offer = try await lab.offer(1, folder.path)
        try await lab.watch(2).listed("trip.2026")
        for name in ["trip.2026", "trip.2026 (2)", "trip.2026 (3)"] {
            let accepted = try await lab.run(2, "accept", "--to", inbox.path, "--on-conflict", "rename")
            #expect(accepted.lines == [inbox.appending(path: name).path], "\(accepted)")
            #expect(try String(contentsOf: inbox.appending(path: name + "/photo"), encoding: .utf8) == "a beach")
        }
        #expect(try lab.contents(of: inbox) == ["trip.2026", "trip.2026 (2)", "trip.2026 (3)"])
        #expect(try await offer.command.end(by: SIGTERM).status == 0)
    }

    @Test("Several paths arrive together as they are then, and nothing that is beside them")
    func severalPaths() async throws {
        let lab = try await HandoffLab()
        defer { lab.down() }
        _ = try await lab.startNodes()
        let work = try lab.destination("work")
        let files = FileManager.default
        func write(_ text: String, _ name: String, in folder: URL) throws {
            try Data(text.utf8).write(to: folder.appendingPathComponent(name))
        }
        let photos = work.appendingPathComponent("photos")
        try files.createDirectory(at: photos, withIntermediateDirectories: false)
        for name in ["notes.md", "drawing.svg", "other.txt"] { try write("first", name, in: work) }
        try write("photo", "1.jpg", in: photos)
        let offer = try await lab.offer(1, "\(work.path)/notes.md", "\(work.path)/drawing.svg", photos.path)
        let title = "notes.md and 2 more"
        try await lab.watch(2).listed(title)
        let listed = try #require(try await lab.run(2, "activities", "--json").events.first)
        #expect(listed.kind == "document" && listed.type == "public.folder" && listed.size == 15)

        // Since the offer, a file that is not selected came, and selected ones changed.
        try write("beside", "late.txt", in: work)
        try write("second edition", "notes.md", in: work)
        try write("photo", "2.jpg", in: photos)
        let inbox = try lab.destination("inbox")
        let accepted = try await lab.run(2, "accept", "--json", "--to", inbox.path)
        #expect(accepted.status == 0, "\(accepted.errors)")
        let arrived = inbox.appendingPathComponent("work")
        #expect(accepted.events.last?.path == arrived.path)
        #expect(try lab.contents(of: arrived) == ["drawing.svg", "notes.md", "photos"])
        #expect(try lab.contents(of: arrived.appendingPathComponent("photos")) == ["1.jpg", "2.jpg"])
        for name in ["drawing.svg", "notes.md", "photos/1.jpg"] {
            #expect(files.contentsEqual(atPath: arrived.path + "/" + name, andPath: work.path + "/" + name), "\(name)")
        }
        let named = try await lab.run(2, "accept", "--to", inbox.path, "--name", "Trip")
        #expect(named.lines == [inbox.path + "/Trip"], "\(named.errors)")
        #expect(try lab.contents(of: inbox) == ["Trip", "work"])

        // A path that is gone ends the handoff in one sentence, and not the offer.
        try files.moveItem(atPath: work.path + "/notes.md", toPath: work.path + "/moved.md")
        let late = try await lab.run(2, "accept", "--json", "--to", inbox.path, "--name", "late")
        #expect(late.events.last?.code == "documentUnreadable", "\(late.lines)")
        try files.moveItem(atPath: work.path + "/moved.md", toPath: work.path + "/notes.md")
        let again = try await lab.run(2, "accept", "--to", inbox.path, "--name", "late")
        #expect(again.status == 0, "\(again.errors)")
        #expect(try await offer.command.end(by: SIGTERM).status == 0)
        let mixed = try await lab.run(1, "offer", "\(work.path)/notes.md", "\(photos.path)/1.jpg")
        #expect(mixed.status == 64 && mixed.errors.contains("different folders"))
    }

    @Test("Nothing of an activity's content crosses the link, and no connection is made, before a user accepts")
    func nothingBeforeAccept() async throws {
        let lab = try await HandoffLab()
        defer { lab.down() }
        let secrets = ["Zq7TitleSecret", "Zq7InfoSecret", "zq7-url-secret"]
        let sniffer = try lab.startProgram(2, ["python3", "-u", "-c", Self.sniffer] + secrets)
        try await sniffer.program.line { $0 == "ready" }
        _ = try await lab.startNodes()
        let offer = try await lab.offer(
            1, "--type", "org.example.note", "--title", secrets[0], "--user-info", "{\"text\": \"\(secrets[1])\"}",
            "--web-page-url", "https://example.org/\(secrets[2])")
        let watch = try lab.watch(2)
        try await watch.listed(secrets[0])
        #expect(try await lab.run(2, "activities", "--json").events.count == 1)
        for host in 1...2 {
            let status = try await lab.run(host, "status").lines
            #expect(status.contains { $0.hasPrefix("connections") && $0.hasSuffix(" 0") }, "host \(host): \(status)")
        }
        #expect(sniffer.program.lines.contains("mdns"))
        #expect(!sniffer.program.lines.contains("tcp"))

        let accepted = try await lab.run(2, "accept", "--json")
        #expect(accepted.status == 0, "\(accepted.errors)")
        #expect(accepted.lines.contains { $0.contains(secrets[1]) && $0.contains(secrets[2]) })
        // The sniffer does see what there is to see.
        try await sniffer.program.line { $0 == "tcp" }
        try await offer.command.event("continued")
        try await offer.command.end(by: SIGTERM)
        try await watch.event("removed")
        #expect(!sniffer.program.lines.contains { $0.hasPrefix("leak") }, "\(sniffer.program.lines)")
    }

    /// Tells of each kind of frame once, and of every secret that is in one as it is.
    private static let sniffer = """
        import socket, sys
        s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        s.bind(("eth0", 0))
        print("ready")
        told = set()
        def tell(what):
            if what not in told:
                told.add(what)
                print(what)
        while True:
            f = s.recv(65535)
            kind = f[12:14]
            protocol = f[23] if kind == b"\\x08\\x00" else f[20] if kind == b"\\x86\\xdd" else 0
            if protocol == 6: tell("tcp")
            if protocol == 17 and b"_baton" in f: tell("mdns")
            for secret in sys.argv[1:]:
                if secret.encode() in f: tell("leak " + secret)
        """

    @Test("Web pages, application activities, and streams of bytes in both directions with half-close")
    func kinds() async throws {
        let seed: UInt64 = 21
        let lab = try await HandoffLab()
        defer { lab.down() }
        _ = try await lab.startNodes()

        let page = try await lab.offer(1, "--url", "https://example.org/a?b=c#d", "--title", "A page")
        let web = try await lab.run(2, "accept", "--wait", "30", "--json")
        #expect(web.status == 0, "\(web.errors)")
        let payload = try #require(web.events.first { $0.event == "payload" })
        #expect(payload.kind == "web" && payload.title == "A page")
        #expect(payload.webPageURL == "https://example.org/a?b=c#d")
        #expect(try await lab.run(2, "accept").lines == ["https://example.org/a?b=c#d"])

        // They stay offered: each change of the advertisement costs a credit, of which there are few.
        let note = try await lab.offer(
            1, "--type", "org.example.note", "--title", "Note", "--user-info",
            #"{"page":3,"when":{"$date":"2026-11-21T09:30:00Z"}}"#)
        let application = try await lab.run(2, "accept", note.id, "--wait", "30", "--json")
        #expect(application.status == 0, "\(application.errors)")
        let line = try #require(application.lines.first { $0.contains(#""payload""#) })
        #expect(LabEvent(line)?.kind == "application" && LabEvent(line)?.type == "org.example.note")
        let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
        let info = try #require(object?["userInfo"] as? [String: Any])
        #expect(info["page"] as? Int == 3)
        #expect((info["when"] as? [String: String])?["$date"]?.hasPrefix("2026-11-21T09:30:00") == true)
        #expect(try await lab.run(2, "accept", note.id, "--stream").status == 1)

        // Both directions at once.
        let bytes = try lab.document("bytes", bytes: 3_000_001, seed: seed)
        let echo = try await lab.offer(1, "--type", "org.example.echo", "--serve", "cat")
        let output = lab.folder.appendingPathComponent("echoed")
        let stream = try await lab.start(
            2, "accept", echo.id, "--wait", "30", "--stream", input: bytes, output: output
        ).end()
        #expect(stream.status == 0, "\(stream.errors)")
        #expect(FileManager.default.contentsEqual(atPath: output.path, andPath: bytes.path), "seed \(seed)")

        // The answer begins only after the end of what was asked.
        let sum = try await lab.offer(1, "--type", "org.example.sum", "--serve", "sha256sum")
        let asked = try lab.start(2, "accept", sum.id, "--wait", "30", "--stream", input: bytes)
        let answer = try await asked.end()
        #expect(answer.status == 0, "\(answer.errors)")
        let local = try lab.startProgram(1, ["sha256sum"], input: bytes)
        #expect(try await local.end().lines == answer.lines)
        for offer in [page, note, echo, sum] { #expect(try await offer.command.end(by: SIGTERM).status == 0) }
    }

    @Test("One of several activities of a device, and what is said where none is meant")
    func several() async throws {
        let lab = try await HandoffLab()
        defer { lab.down() }
        _ = try await lab.startNodes()
        let watch = try lab.watch(2)
        // Until two ids begin alike; 17 of them surely do.
        var offers: [(command: HostCommand, id: String)] = []
        var ambiguous: Character?
        while ambiguous == nil {
            let offer = try await lab.offer(1, "--url", "https://example.org/\(offers.count)")
            if offers.contains(where: { $0.id.first == offer.id.first }) { ambiguous = offer.id.first }
            offers.append(offer)
        }
        // Only the newest is advertised.
        try await watch.event("added") { $0.id == offers.last?.id }
        try await eventually("all are listed") {
            try await lab.run(2, "activities", "--json").events.count == offers.count
        }
        #expect(try await lab.run(2, "accept", offers[0].id).lines == ["https://example.org/0"])

        let open = try await lab.run(2, "accept")
        #expect(open.status == 64 && open.errors.contains("activities match"))
        let unclear = try await lab.run(2, "accept", String(try #require(ambiguous)), "--json")
        #expect(unclear.status == 64)
        #expect(unclear.events.last?.code == "ambiguousActivity")
        let unknown = try await lab.run(2, "accept", Self.flipped(offers[0].id), "--json")
        #expect(unknown.status == 66)
        #expect(unknown.events.last?.code == "noSuchActivity")
        let stranger = try await lab.run(2, "accept", "--latest", "--from", "nobody")
        #expect(stranger.status == 66 && stranger.errors.contains("nobody"))
        let withdrawn = try await lab.run(1, "withdraw", offers[0].id, "--json")
        #expect(withdrawn.status == 0 && withdrawn.events.first?.event == "withdrawn")
        #expect(try await offers[0].command.end().status == 0)
        // Listed a moment ago.
        let late = try await lab.run(2, "accept", offers[0].id)
        #expect(late.status == 66 && late.errors.contains("baton activities"), "\(late.errors)")
        for offer in offers.dropFirst() { offer.command.program.signal(SIGTERM) }
        for offer in offers.dropFirst() { #expect(try await offer.command.end().status == 0) }
        try await eventually("nothing is listed") { try await lab.run(2, "activities", "--json").lines.isEmpty }
        let nothing = try await lab.run(2, "accept")
        #expect(nothing.status == 66 && nothing.errors.contains("no other device offers anything"))
    }

    @Test("The newest of several is the one that --latest takes")
    func latest() async throws {
        let lab = try await HandoffLab()
        defer { lab.down() }
        _ = try await lab.startNodes()
        // In the same second, as it may well happen: what orders them is not the clock.
        let old = try await lab.offer(1, "--url", "https://example.org/old", "--title", "Old")
        let new = try await lab.offer(1, "--url", "https://example.org/new", "--title", "New")
        try await lab.watch(2).listed("New")
        try await eventually("both are listed") { try await lab.run(2, "activities", "--json").lines.count == 2 }
        let taken = try await lab.run(2, "accept", "--latest", "--from", "laptop")
        #expect(taken.lines == ["https://example.org/new"], "\(taken.errors)")
        try await new.command.end(by: SIGTERM)
        try await eventually("the older is the current one") {
            try await lab.run(2, "activities", "--json").events.map(\.title) == ["Old"]
        }
        #expect(try await lab.run(2, "accept", "--latest").lines == ["https://example.org/old"])
        try await old.command.end(by: SIGTERM)
    }

    /// An id that differs in its first and last digit.
    private static func flipped(_ id: String) -> String {
        String(id.dropLast()) + (id.last == "0" ? "1" : "0")
    }
}
