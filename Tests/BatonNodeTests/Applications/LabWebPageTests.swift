// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Foundation
import Testing

/// Web pages across hosts: the application that a page's host lists, after a real HTTPS server was asked, or the
/// browser.
@Suite(.serialized, .lab, .timeLimit(.minutes(3)))
struct LabWebPageTests {
    private static let server = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appending(path: "BatonWebTests/Support/server.py").path

    /// Two hosts with nodes, the second of which believes in an authority of the test and finds the web host on itself.
    private final class Scene: Sendable {
        let lab: HandoffLab
        let desktop: LabDesktop
        let node: HostCommand
        private let web: URL

        /// - Parameters:
        ///   - listed: the applications that the web host lists.
        ///   - signer: the host that has signed the list; by default nobody has.
        ///   - isSlow: whether it comes a byte at a time, for 100 s.
        ///   - choice: how many seconds the user has to choose an application; `nil` for as many as every node gives.
        init(
            listed: String..., signedBy signer: String? = nil, isSlow: Bool = false, choice: Int? = nil
        ) async throws {
            let authority = try await WebAuthority()
            let holder = try await authority.issue(to: "reader.example")
            lab = try await HandoffLab()
            desktop = try LabDesktop(lab)
            web = try lab.destination("web")
            let list = listed.map { "\"\($0)\"" }.joined(separator: ", ")
            var body = Array("{\"activitycontinuation\": {\"apps\": [\(list)]}}".utf8)
            if isSlow { body += [UInt8](repeating: 0x20, count: 2000) }
            if let signer { body = try await authority.sign(body, as: [authority.issue(to: signer)]) }
            let answers = """
                {"/.well-known/apple-app-site-association": {
                    "status": 200, "body": "\(Data(body).base64EncodedString())", "mode": "\(isSlow ? "drip" : "")"}}
                """
            try Data(answers.utf8).write(to: web.appendingPathComponent("answers.json"))
            // Copies: the authority's folder goes with it.
            for (from, to) in [(holder.certificate, "certificate.pem"), (holder.key, "key.pem")] {
                try FileManager.default.copyItem(atPath: from, toPath: web.appendingPathComponent(to).path)
            }
            try Data(authority.pem.utf8).write(to: web.appendingPathComponent("authority.pem"))
            try Data("127.0.0.1 localhost reader.example\n".utf8).write(to: web.appendingPathComponent("hosts"))
            let path = web.path
            _ = try lab.startProgram(
                2,
                [
                    "python3", LabWebPageTests.server, path + "/certificate.pem", path + "/key.pem", path, "127.0.0.1",
                    "443",
                ])
            try await eventually("the web host listens") { FileManager.default.fileExists(atPath: path + "/port") }
            _ = try await lab.startNode(1)
            let mounts = """
                mount --bind '\(path)/authority.pem' /etc/ssl/certs/ca-certificates.crt &&
                mount --bind '\(path)/hosts' /etc/hosts && exec "$@"
                """
            let wrapper = ["unshare", "-m", "sh", "-c", mounts, "sh"]
            if let choice {
                let probe = [Lab.product("node-probe"), "--allow", "private-sites", "--choice", "\(choice)"]
                node = try lab.startProgram(2, wrapper + probe)
                try await node.event("ready")
            } else {
                node = try await lab.startNode(2, "--private-sites", wrapper: wrapper).command
            }
            try await lab.awaitPeers(1, on: 2)
        }

        /// Registers an application as its developer has it for Apple's devices: it says nothing of web pages but its
        /// domains.
        func register(_ command: String, as identifier: String = "org.example.reader") async throws {
            let entitlements = lab.folder.appendingPathComponent("reader.entitlements")
            let text = """
                <plist version="1.0"><dict>
                    <key>com.apple.developer.associated-domains</key>
                    <array><string>activitycontinuation:reader.example</string></array>
                </dict></plist>
                """
            try Data(text.utf8).write(to: entitlements)
            let registered = try await lab.run(
                2, "applications", "register", LabManifest.write(lab, identifier).path, "--command", command,
                "--entitlements", entitlements.path)
            #expect(registered.status == 0, "\(registered.errors)")
        }

        /// Registers one that runs and takes what it is given.
        func registerReader(as identifier: String = "org.example.reader") async throws {
            let manifest = try LabManifest.write(lab, identifier).path
            let log = log(of: identifier).path
            try await register(
                "python3 \(LabApplication.client) continue \(Lab.product("baton")) \(manifest) \(log)", as: identifier)
        }

        func accept(
            _ page: String, _ arguments: String..., terminal: [String] = []
        ) async throws -> HostCommand.Finished {
            let offer = try await lab.offer(1, "--url", page)
            let accepted = try await lab.start(
                2, ["accept", "--wait", "30"] + arguments, wrapper: desktop.wrapper + terminal
            ).end()
            try await offer.command.end(by: SIGTERM)
            return accepted
        }

        private func log(of identifier: String) -> URL { lab.folder.appendingPathComponent("events-" + identifier) }

        var events: [BridgeLine] { events(of: "org.example.reader") }

        func events(of identifier: String) -> [BridgeLine] {
            ((try? String(contentsOf: log(of: identifier), encoding: .utf8)) ?? "").split(separator: "\n")
                .compactMap { BridgeLine(String($0)) }
        }

        /// The requests that the web host received.
        var requests: [String] {
            ((try? String(contentsOf: web.appendingPathComponent("requests"), encoding: .utf8)) ?? "")
                .split(separator: "\n").map(String.init)
        }
    }

    private static let page = "https://reader.example/a?b=c"

    @Test("A page opens in the application that claims its host and that the host lists, which is started")
    func listed() async throws {
        let scene = try await Scene(listed: "EXAMPLE.org.example.reader")
        defer { scene.lab.down() }
        try await scene.registerReader()
        let accepted = try await scene.accept(Self.page)
        #expect(accepted.status == 0, "\(accepted)")
        #expect(scene.requests == ["reader.example /.well-known/apple-app-site-association"])
        try await eventually("the application has it") { scene.events.contains { $0.event == "continue" } }
        let told = scene.events.filter { ["willContinue", "continue"].contains($0.event) }
        #expect(told.map(\.event) == ["willContinue", "continue"])
        #expect(told.allSatisfy { $0.type == "NSUserActivityTypeBrowsingWeb" })
        #expect(scene.desktop.opened == [])
    }

    @Test("An application gives a page, and no user info; the host's list is signed, by itself or by a stranger")
    func signed() async throws {
        for (signer, isTaken) in [("reader.example", true), ("other.example", false)] {
            let scene = try await Scene(listed: "EXAMPLE.org.example.reader", signedBy: signer)
            defer { scene.lab.down() }
            try await scene.registerReader()
            let origin = try await LabApplication(
                scene.lab, on: 1, LabManifest.write(scene.lab, "org.example.writer"))
            let type = "NSUserActivityTypeBrowsingWeb"
            origin.send(
                #""do":"becomeCurrent","activity":"page","type":"\#(type)","webpageURL":"\#(Self.page)","#
                    + #""userInfo":{"page":1}"#)
            let accepting = try scene.lab.start(2, "accept", "--wait", "30", wrapper: scene.desktop.wrapper)
            // The state that the application saves does not go either.
            try await origin.save(page: 2)
            let accepted = try await accepting.end()
            #expect(accepted.status == 0, "\(accepted)")
            #expect(scene.requests == ["reader.example /.well-known/apple-app-site-association"])
            // By its name, or by its id where the laptop has not heard of the desktop yet.
            try await origin.event("wasContinued")
            #expect(scene.desktop.opened == (isTaken ? [] : ["1:\(Self.page)"]))
            guard isTaken else {
                #expect(scene.events.isEmpty, "\(scene.events)")
                continue
            }
            try await eventually("the application has it") { scene.events.contains { $0.event == "continue" } }
            let activity = try #require(scene.events.first { $0.event == "continue" })
            #expect(activity.type == type && activity.webpageURL == Self.page)
            #expect(activity.userInfo?.isEmpty == true, "\(activity)")
        }
    }

    @Test("A host that does not come to an end with its list is given up after 5 s, and the page opens in the browser")
    func slow() async throws {
        let scene = try await Scene(listed: "EXAMPLE.org.example.reader", isSlow: true)
        defer { scene.lab.down() }
        try await scene.registerReader()
        let clock = ContinuousClock()
        let started = clock.now
        async let accepting = scene.accept(Self.page)
        try await eventually("the host is asked", within: .seconds(40)) { !scene.requests.isEmpty }
        let asked = clock.now
        let accepted = try await accepting
        // From before it was asked it is 5 s at the least; from when it had been asked, 5 s and what a browser takes.
        #expect(clock.now - started >= .seconds(5))
        #expect(clock.now - asked < .seconds(12), "\(clock.now - asked)")
        #expect(accepted.status == 0, "\(accepted)")
        #expect(scene.desktop.opened == ["1:\(Self.page)"] && scene.requests.count == 1)
        #expect(scene.events.isEmpty)
    }

    @Test("A page whose host does not list the application opens in the browser")
    func unlisted() async throws {
        let scene = try await Scene(listed: "EXAMPLE.org.example.else")
        defer { scene.lab.down() }
        try await scene.registerReader()
        let accepted = try await scene.accept(Self.page)
        #expect(accepted.status == 0, "\(accepted)")
        #expect(scene.desktop.opened == ["1:\(Self.page)"])
        #expect(scene.requests.count == 1)
        #expect(scene.events.isEmpty)
    }

    @Test("A page whose application cannot be started opens in the browser, which the log says and no error")
    func notStarted() async throws {
        let scene = try await Scene(listed: "EXAMPLE.org.example.reader")
        defer { scene.lab.down() }
        try await scene.register("/nonexistent/reader")
        let accepted = try await scene.accept(Self.page)
        #expect(accepted.status == 0, "\(accepted)")
        #expect(scene.desktop.opened == ["1:\(Self.page)"])
        #expect(scene.requests.count == 1)
        #expect(scene.node.errors.contains("left to the browser"), "\(scene.node.errors)")
    }

    @Test("Of several applications that a page's host lists the user is asked, or names the one; nobody else is")
    func several() async throws {
        let (first, second) = ("org.example.first", "org.example.second")
        let scene = try await Scene(listed: "EXAMPLE." + first, "EXAMPLE." + second)
        defer { scene.lab.down() }
        for identifier in [first, second] { try await scene.registerReader(as: identifier) }

        let unasked = try await scene.accept(Self.page)
        #expect(unasked.status == 64, "\(unasked)")
        #expect(unasked.errors.contains("--application") && unasked.errors.contains(second), "\(unasked.errors)")
        #expect(scene.desktop.opened == [] && scene.events(of: first).isEmpty && scene.events(of: second).isEmpty)

        let asked = try await scene.accept(Self.page, terminal: LabTerminalAnswers.wrapper("7", "2"))
        #expect(asked.status == 0, "\(asked)")
        let shown = asked.lines.joined(separator: "\n")
        #expect(shown.components(separatedBy: "Continue it in which? (1-2)").count == 3, "\(shown)")
        try await eventually("the second has it") { scene.events(of: second).contains { $0.event == "continue" } }
        #expect(scene.events(of: first).isEmpty)

        // The second was used last; the first, which only claims the host, is named.
        let named = try await scene.accept(Self.page, "--application", first)
        #expect(named.status == 0, "\(named)")
        try await eventually("the first has it") { scene.events(of: first).contains { $0.event == "continue" } }
        #expect(scene.desktop.opened == [])
        #expect(scene.requests.count == 1, "the host is asked once a day")
    }

    @Test("A question that nobody answers ends the handoff in time, says so, and opens nothing")
    func unanswered() async throws {
        let (first, second) = ("org.example.first", "org.example.second")
        let scene = try await Scene(listed: "EXAMPLE." + first, "EXAMPLE." + second, choice: 5)
        defer { scene.lab.down() }
        for identifier in [first, second] { try await scene.registerReader(as: identifier) }
        let origin = try await offerPage(scene)
        let accept = try scene.lab.start(
            2, ["accept", "--wait", "30"], wrapper: scene.desktop.wrapper + LabTerminalAnswers.wrapper())
        try await origin.answer("willSave", 1, #""do":"saved""#)
        let accepted = try await accept.end()
        #expect(accepted.status == 1, "\(accepted)")
        let shown = accepted.lines.joined(separator: " ")
        let question = try #require(shown.range(of: "Continue it in which? (1-2)", options: .backwards), "\(shown)")
        #expect(
            shown[question.upperBound...].contains("nobody chose an application for the web page within 5 s"),
            "\(shown)")
        #expect(scene.desktop.opened == [])
        #expect(scene.events(of: first).isEmpty && scene.events(of: second).isEmpty)
        // Nobody has it: its application keeps it, and hears why.
        let failed = try await origin.event("failed")
        #expect(failed.code == 4610 && failed.device == "desktop", "\(failed)")
        #expect(origin.count("wasContinued") == 0)
    }

    /// A manifest of an application that continues web pages.
    private func browserManifest(_ scene: Scene, _ identifier: String) throws -> URL {
        let file = try LabManifest.write(scene.lab, identifier)
        let text = try String(contentsOf: file, encoding: .utf8)
        try Data(text.replacingOccurrences(of: LabManifest.type, with: "NSUserActivityTypeBrowsingWeb").utf8)
            .write(to: file)
        return file
    }

    /// An application on the first host that is at the page.
    private func offerPage(_ scene: Scene) async throws -> LabApplication {
        let origin = try await LabApplication(scene.lab, on: 1, browserManifest(scene, "org.example.origin"))
        origin.send(
            #""do":"becomeCurrent","activity":"page","type":"NSUserActivityTypeBrowsingWeb","title":"Page","#
                + #""webpageURL":"\#(Self.page)""#)
        return origin
    }

    @Test("The application that a page's host lists has it, and not a browser of the page's team that is in front")
    func beforeBrowser() async throws {
        let scene = try await Scene(listed: "EXAMPLE.org.example.reader")
        defer { scene.lab.down() }
        try await scene.registerReader()
        let browser = try await LabApplication(scene.lab, on: 2, browserManifest(scene, "org.example.browser"))
        let origin = try await offerPage(scene)
        let accept = try scene.lab.start(2, ["accept", "--wait", "30"], wrapper: scene.desktop.wrapper)
        try await origin.answer("willSave", 1, #""do":"saved""#)
        #expect(try await accept.end().status == 0)
        try await eventually("the application has it") { scene.events.contains { $0.event == "continue" } }
        #expect(scene.requests.count == 1 && scene.desktop.opened.isEmpty)
        #expect(browser.count("willContinue") == 0)
    }

    @Test("Of several applications the user is asked, and again of several browsers where the application fails")
    func askedTwice() async throws {
        let applications = ["org.example.first", "org.example.second"]
        let scene = try await Scene(listed: "EXAMPLE." + applications[0], "EXAMPLE." + applications[1])
        defer { scene.lab.down() }
        // The one that is chosen cannot be started; the other would take the page.
        try await scene.register("/nonexistent/reader", as: applications[0])
        try await scene.registerReader(as: applications[1])
        var browsers: [LabApplication] = []
        for name in ["here", "there"] {
            browsers.append(
                try await LabApplication(scene.lab, on: 2, browserManifest(scene, "org.example.browser-" + name)))
        }
        let origin = try await offerPage(scene)
        let accept = try scene.lab.start(
            2, ["accept", "--wait", "30"], wrapper: scene.desktop.wrapper + LabTerminalAnswers.wrapper("1", "7", "2"))
        try await origin.answer("willSave", 1, #""do":"saved""#)
        try await browsers[1].agree()
        #expect(try await browsers[1].continue().webpageURL == Self.page)
        let accepted = try await accept.end()
        #expect(accepted.status == 0, "\(accepted)")
        let questions = accepted.lines.joined(separator: "\n").components(separatedBy: "Continue it in which? (1-2)")
        // The second answer of three is none.
        try #require(questions.count == 4, "\(questions)")
        #expect(applications.allSatisfy { questions[0].contains("(\($0))") }, "\(questions)")
        let named = ["here", "there"].map { "(org.example.browser-\($0))" }
        #expect(named.allSatisfy { questions[1].contains($0) && !questions[0].contains($0) }, "\(questions)")
        #expect(!applications.contains { questions[1].contains("(\($0))") }, "\(questions)")
        #expect(questions[3].contains("continuing it in"), "\(questions)")
        try await origin.event("wasContinued") { $0.device == "desktop" }
        #expect(browsers[0].count("willContinue") == 0 && scene.events(of: applications[1]).isEmpty)
        #expect(scene.desktop.opened.isEmpty && scene.requests.count == 1)
        #expect(scene.node.errors.contains("first cannot be launched"), "\(scene.node.errors)")
    }

    /// Why a page that an installed application claims goes on to a browser.
    enum Passing: CaseIterable {
        case unlisted, notStarted, browserDeclines
    }

    @Test(
        "A page that its host's application does not get goes to a browser of its team, then to the default browser",
        arguments: Passing.allCases)
    func browser(_ why: Passing) async throws {
        let scene = try await Scene(
            listed: why == .notStarted ? "EXAMPLE.org.example.reader" : "EXAMPLE.org.example.else")
        defer { scene.lab.down() }
        switch why {
        case .unlisted, .browserDeclines: try await scene.registerReader()
        case .notStarted: try await scene.register("/nonexistent/reader")
        }
        let browser = try await LabApplication(scene.lab, on: 2, browserManifest(scene, "org.example.browser"))
        let origin = try await offerPage(scene)
        let accept = try scene.lab.start(2, ["accept", "--wait", "30"], wrapper: scene.desktop.wrapper)
        try await origin.answer("willSave", 1, #""do":"saved""#)
        switch why {
        case .unlisted, .notStarted:
            try await browser.agree(#","showsProgress":\#(why == .unlisted)"#)
            try await browser.continue()
        case .browserDeclines: try await browser.agree(#","refused":"a dialog is open""#)
        }
        let accepted = try await accept.end()
        #expect(accepted.status == 0)
        // Which one it is says who shows nothing by itself.
        #expect(accepted.errors.contains("continuing it in") == (why == .notStarted), "\(accepted.errors)")
        #expect(scene.requests.count == 1 && scene.events.isEmpty)
        #expect(scene.desktop.opened == (why == .browserDeclines ? ["1:\(Self.page)"] : []))
    }

    /// How an application fails to continue a page.
    enum Failing: CaseIterable {
        case declines, dies, doesNotHandle, neverRegisters
    }

    @Test(
        "A page whose application declines, dies or never registers opens in the browser",
        arguments: Failing.allCases)
    func failing(_ how: Failing) async throws {
        let scene = try await Scene(listed: "EXAMPLE.org.example.reader")
        defer { scene.lab.down() }
        // It ends by itself a little after it is no longer waited for.
        try await scene.register("sleep 21")
        let accepting = Task { try await scene.accept(Self.page) }
        switch how {
        case .neverRegisters: break
        case .declines, .dies, .doesNotHandle:
            let application = try await LabApplication(
                scene.lab, on: 2, LabManifest.write(scene.lab, "org.example.reader"))
            switch how {
            case .neverRegisters: break
            case .declines: try await application.agree(#","refused":"a dialog is open""#)
            case .dies:
                _ = try await application.nth("willContinue", 1)
                try await application.kill()
            case .doesNotHandle:
                try await application.agree()
                try await application.answer("continue", 1, #""do":"continued","handled":false"#)
            }
        }
        let accepted = try await accepting.value
        #expect(accepted.status == 0, "\(accepted)")
        #expect(scene.desktop.opened == ["1:\(Self.page)"])
        #expect(accepted.errors.contains("opened in Fake Browser"), "\(accepted.errors)")
        #expect(scene.node.errors.contains("left to the browser"), "\(scene.node.errors)")
    }
}
