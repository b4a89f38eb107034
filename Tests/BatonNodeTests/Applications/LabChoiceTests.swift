// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Foundation
import Testing

/// Which application continues an activity, and what none of them can.
@Suite(.serialized, .lab, .timeLimit(.minutes(3)))
struct LabChoiceTests {
    /// A note that one host offers, and two applications on the other one that both could continue it.
    private func noteForTwo(
        _ lab: HandoffLab
    ) async throws -> (origin: LabApplication, first: LabApplication, second: LabApplication) {
        _ = try await lab.startNodes()
        let first = try await LabApplication(lab, on: 2, LabManifest.write(lab, "org.example.first"))
        let second = try await LabApplication(lab, on: 2, LabManifest.write(lab, "org.example.second"))
        let origin = try await LabApplication(lab, on: 1, LabManifest.write(lab, "org.example.writer"))
        origin.offer("Note")
        try await lab.watch(2).listed("Note")
        return (origin, first, second)
    }

    @Test("The application in front, the one used last, or the user's choice; none of another team")
    func choice() async throws {
        let lab = try await HandoffLab()
        defer { lab.down() }
        _ = try await lab.startNodes()
        let stranger = try await LabApplication(
            lab, on: 2, LabManifest.write(lab, "org.example.stranger", team: "OTHERS"))
        let origin = try await LabApplication(lab, on: 1, LabManifest.write(lab, "org.example.writer"))
        origin.offer("Note")

        // An application of another team is not told: the command has the activity for its user.
        let printing = try lab.start(2, "accept", "--wait", "30")
        try await origin.save(nth: 1)
        let printed = try await printing.end()
        #expect(printed.status == 0, "\(printed.errors)")
        #expect(printed.lines.contains { $0.contains("page") })
        #expect(printed.errors.contains("no application here continues \(LabManifest.type)"), "\(printed.errors)")

        let first = try await LabApplication(lab, on: 2, LabManifest.write(lab, "org.example.first"))
        let second = try await LabApplication(lab, on: 2, LabManifest.write(lab, "org.example.second"))
        let open = try await lab.run(2, "accept", "--json")
        #expect(open.status == 64)
        #expect(open.events.last?.code == "ambiguousApplication")
        let wrong = try await lab.run(2, "accept", "--application", "org.example.stranger", "--json")
        #expect(wrong.events.last?.code == "invalidRequest")

        let chosen = try lab.start(2, "accept", "--application", "org.example.second")
        try await second.agree()
        try await origin.save(nth: 2)
        try await second.continue()
        #expect(try await chosen.end().status == 0)

        let recent = try lab.start(2, "accept")
        try await second.agree(nth: 2)
        try await origin.save(nth: 3)
        try await second.continue(nth: 2)
        #expect(try await recent.end().status == 0)

        first.send(#""do":"setInFront","inFront":true"#)
        try await eventually("the one in front is asked") {
            // The node hears of it a moment later; until then the one used last is asked, and declines.
            let asked = second.count("willContinue")
            let front = try lab.start(2, "accept")
            try await eventually("one of them is asked") {
                first.count("willContinue") > 0 || second.count("willContinue") > asked
            }
            guard first.count("willContinue") == 0 else {
                try await first.agree()
                try await origin.save(nth: 4)
                try await first.continue()
                #expect(try await front.end().status == 0)
                return true
            }
            let question = second.events.last { $0.event == "willContinue" }?.request ?? 0
            second.send(#""do":"willContinue","request":\#(question),"refused":"not now""#)
            #expect(try await front.end().errors.contains("not now"))
            return false
        }
        #expect(stranger.events.allSatisfy { ["ready", "node"].contains($0.event) }, "\(stranger.events)")
    }

    @Test("The application used last is the one that was in front, or made an activity current, since the last handoff")
    func used() async throws {
        let lab = try await HandoffLab()
        defer { lab.down() }
        let (origin, first, second) = try await noteForTwo(lab)
        /// One handoff, to the application that is to have it without being named.
        func accept(_ application: LabApplication, _ nth: Int, saves: Int, _ arguments: String...) async throws {
            let accept = try lab.start(2, ["accept"] + arguments)
            try await application.agree(nth: nth)
            try await origin.save(nth: saves)
            try await application.continue(nth: nth)
            #expect(try await accept.end().status == 0)
        }
        try await accept(second, 1, saves: 1, "--application", "org.example.second")
        try await accept(second, 2, saves: 2)

        /// Waits until the node has kept that an application was used last.
        func used(_ identifier: String) async throws {
            try await eventually("\(identifier) is known to be used last", within: .seconds(40)) {
                let file = #"head -n 1 "$BATON_HOME/state/applications-used""#
                return try await lab.startProgram(2, ["sh", "-c", file]).end().lines == [identifier]
            }
        }
        try await used("org.example.second")
        // In front for a while, and not any more when the activity is accepted.
        first.send(#""do":"setInFront","inFront":true"#)
        try await used("org.example.first")
        first.send(#""do":"setInFront","inFront":false"#)
        try await accept(first, 1, saves: 3)

        second.offer("Own")
        try await used("org.example.second")
        try await accept(second, 3, saves: 4)
    }

    @Test("At a terminal the user is asked which of several, until the answer is one of them")
    func asked() async throws {
        let lab = try await HandoffLab()
        defer { lab.down() }
        let (origin, first, second) = try await noteForTwo(lab)
        // With no number of a line first.
        let accept = try lab.start(2, "accept", wrapper: LabTerminalAnswers.wrapper("7", "2"))
        try await second.agree()
        try await origin.save()
        try await second.continue()
        let accepted = try await accept.end()
        #expect(accepted.status == 0, "\(accepted)")
        let shown = accepted.lines.joined(separator: "\n")
        #expect(shown.components(separatedBy: "Continue it in which? (1-2)").count == 3, "\(shown)")
        #expect(shown.contains("(org.example.first)") && shown.contains("(org.example.second)"), "\(shown)")
        #expect(first.count("willContinue") == 0)
    }

    @Test("A version that cannot be read is declined before anything is fetched; an expired activity is not offered")
    func versionsAndExpiry() async throws {
        let lab = try await HandoffLab()
        defer { lab.down() }
        _ = try await lab.startNodes()
        let reader = try await LabApplication(
            lab, on: 2, LabManifest.write(lab, "org.example.reader", versions: "1"))
        let origin = try await LabApplication(lab, on: 1, LabManifest.write(lab, "org.example.writer"))
        let watch = try lab.watch(2)
        origin.offer("Past", #","expirationDate":"2001-01-01T00:00:00Z""#)
        origin.offer("Newer", #","version":3"#)
        try await watch.listed("Newer")
        let declined = try await lab.run(2, "accept", "--json")
        #expect(declined.status == 1)
        #expect(declined.events.last?.code == "versionUnreadable")
        let message = declined.events.last?.message ?? ""
        #expect(message.contains("version 1 ") && message.contains("version 3"), "\(message)")
        #expect(message.contains("laptop"))
        // Nothing was asked for.
        #expect(origin.count("willSave") == 0 && reader.count("willContinue") == 0)

        let soon = ISO8601DateFormatter().string(from: Date(timeIntervalSinceNow: 5))
        origin.offer("Brief", #","expirationDate":"\#(soon)""#)
        try await watch.listed("Brief")
        try await watch.event("removed") { $0.title == "Brief" }
        #expect(!watch.events.contains { $0.title == "Past" })
    }

    @Test("Damaged files of the switch and of shared folders are told by status; an offer says what it waits for")
    func damagedFiles() async throws {
        let lab = try await HandoffLab()
        defer { lab.down() }
        let home = try lab.destination("home")
        let account = try await lab.run(1, "account", "create", "--name", "damaged", home: home)
        #expect(account.status == 0, "\(account.errors)")
        let config = home.appendingPathComponent("config")
        try FileManager.default.createDirectory(at: config, withIntermediateDirectories: true)
        for (name, content) in [("handoff", "OFF\n"), ("shared-roots", "no folder\n")] {
            try Data(content.utf8).write(to: config.appendingPathComponent(name))
        }
        _ = try await lab.startNode(1, home: home)
        let status = try await lab.run(1, "status", home: home).lines.joined(separator: "\n")
        #expect(status.contains("handoff      off, because \(config.path)/handoff: line 1: "), "\(status)")
        #expect(status.contains("shared       \(config.path)/shared-roots: "), "\(status)")

        let offer = try lab.start(1, "offer", "--type", "org.example.note", "--title", "Note", home: home)
        try await eventually("it says that nobody sees it") {
            offer.errors.contains("no device sees it, because Handoff is off: switch it on with `baton handoff on`")
        }
        let scripted = try lab.start(1, "offer", "--json", "--type", "org.example.note", home: home)
        try await scripted.program.line { $0.contains(#""event":"offered""#) && $0.contains(#""handoff":"off""#) }
        for command in [offer, scripted] { try await command.end(by: SIGTERM) }

        // On again by the command, which writes the file anew; the folders are the user's to mend.
        #expect(try await lab.run(1, "handoff", "on", home: home).status == 0)
        try Data("Docs=\(home.path)\n".utf8).write(to: config.appendingPathComponent("shared-roots"))
        let mended = try await lab.run(1, "status", home: home).lines.joined(separator: "\n")
        #expect(!mended.contains("handoff ") && !mended.contains("shared "), "\(mended)")
    }

    @Test("A web page without an application is printed and opens in the browser, which is named")
    func webPage() async throws {
        let lab = try await HandoffLab()
        defer { lab.down() }
        _ = try await lab.startNodes()
        let desktop = try LabDesktop(lab)
        let page = "https://example.org/a?b=c#d"
        let offer = try await lab.offer(1, "--url", page, "--title", "A page")
        let accepted = try await lab.start(
            2, "accept", "--wait", "30", wrapper: desktop.wrapper
        ).end()
        #expect(accepted.status == 0, "\(accepted.errors)")
        #expect(accepted.lines == [page])
        #expect(desktop.opened == ["1:\(page)"])
        #expect(accepted.errors.contains("opened in Fake Browser"), "\(accepted.errors)")
        try await offer.command.end(by: SIGTERM)
    }

    @Test("An application that is launched and never registers fails the handoff after 20 s, before it is fetched")
    func launchTimeOut() async throws {
        let lab = try await HandoffLab()
        defer { lab.down() }
        _ = try await lab.startNodes()
        let reader = try LabManifest.write(lab, "org.example.reader")
        let registered = try await lab.run(
            2, "applications", "register", reader.path, "--command", "sleep 120")
        #expect(registered.status == 0, "\(registered.errors)")
        let origin = try await LabApplication(lab, on: 1, LabManifest.write(lab, "org.example.writer"))
        origin.offer("Note")
        try await lab.watch(2).listed("Note")
        let start = ContinuousClock.now
        let accepted = try await lab.run(2, "accept", "--json")
        let time = ContinuousClock.now - start
        #expect(accepted.status == 1)
        #expect(accepted.events.last?.code == "applicationNotStarted")
        #expect(accepted.events.last?.message?.contains("did not register") == true, "\(accepted.lines)")
        #expect(time > .seconds(20) && time < .seconds(35), "\(time)")
        #expect(origin.count("willSave") == 0)
    }
}
