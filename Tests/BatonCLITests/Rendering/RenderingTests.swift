// SPDX-License-Identifier: Apache-2.0

import Baton
import BatonAccount
import BatonMessages
import BatonProtocol
import BatonTestSupport
import FoundationEssentials
import Logging
import SwiftProtobuf
import Synchronization
import Testing

@testable import BatonCLI
@testable import BatonNode

@Suite("Rendering")
struct RenderingTests {
    private static func listing(
        _ id: UInt8, title: String, type: String = "org.example.note", size: UInt64? = nil, device: String = "laptop"
    ) -> WireActivityListing {
        var listing = WireActivityListing()
        listing.activity.id = Data(repeating: id, count: 16)
        listing.activity.kind = size == nil ? .application : .document
        listing.activity.type = type
        listing.activity.title = title
        listing.activity.documentSize = size ?? 0
        listing.activity.since = 1_795_253_400
        listing.device = device
        listing.deviceID = "uq74ho7aqaqhd6odgujvmgqyut4whxz2"
        return listing
    }

    private static let now = 1_795_253_400.0 + 125

    @Test(
        "How it went: what was here before, what came, and a rate where the link had all of the rest to carry",
        arguments: [
            (0, 150 << 20, "150 MiB in 15.0 s, 10 MiB/s"),
            (90 << 20, 60 << 20, "150 MiB (90 MiB were here) in 15.0 s, 4.0 MiB/s"),
            (0, 1 << 20, "150 MiB in 15.0 s, of which 1.0 MiB had to come"),
            (90 << 20, 0, "150 MiB (90 MiB were here) in 15.0 s, of which 0 bytes had to come"),
            (0, nil, "150 MiB in 15.0 s, 10 MiB/s"),
        ] as [(UInt64, UInt64?, String)])
    func summary(before: UInt64, received: UInt64?, text: String) {
        let event = WireAcceptEvent.Continued.with {
            $0.bytes = 150 << 20
            if let received { $0.receivedBytes = received }
        }
        #expect(AcceptReporter.summary(event, before: before, in: .seconds(15)) == text)
    }

    @Test("a listing in columns")
    func columns() {
        let activities = [
            Self.listing(0x3F, title: "report.pdf", type: "org.baton.document", size: 1 << 30),
            Self.listing(0x0A, title: "Shopping"),
        ].map { ListedActivity($0) }
        #expect(
            ActivityRendering.lines(activities, width: 80, now: Self.now) == [
                "ID        TITLE       TYPE                   SIZE  FROM    SINCE",
                "3f3f3f3f  report.pdf  org.baton.document  1.0 GiB  laptop  2 min",
                "0a0a0a0a  Shopping    org.example.note          -  laptop  2 min",
            ])
    }

    @Test("a listing fits the terminal", arguments: [80, 60, 40, 20])
    func fits(_ width: Int) {
        let long = String(repeating: "漢字 and more ", count: 20)
        let activities = [
            ListedActivity(
                Self.listing(1, title: long, type: String(repeating: "org.example.", count: 8), size: 1, device: long))
        ]
        for line in ActivityRendering.lines(activities, width: width, now: Self.now) {
            #expect(DisplayWidth.of(line) <= width, "\(line)")
        }
    }

    @Test("the fields of JSON are those that scripts know")
    func json() {
        var listing = Self.listing(0x3F, title: "a\u{202E}b", size: 5)
        listing.change = .added
        let id = String(repeating: "3f", count: 16)
        #expect(
            ActivityRendering.json(listing, time: "T")
                == "{\"event\":\"added\",\"time\":\"T\",\"id\":\"\(id)\",\"kind\":\"document\","
                + "\"type\":\"org.example.note\",\"title\":\"a\\u202eb\",\"device\":\"laptop\",\"deviceID\":\"uq74ho7aqaqhd6odgujvmgqyut4whxz2\","
                + "\"size\":5,\"since\":\"2026-11-21T09:30:00Z\"}")
        var device = WireDevice()
        device.name = "laptop"
        device.deviceID = "x"
        device.addresses = ["192.0.2.1:7", "[2001:db8::1]:7"]
        device.seen = 0
        #expect(
            DeviceRendering.json(device)
                == #"{"name":"laptop","deviceID":"x","addresses":["192.0.2.1:7","[2001:db8::1]:7"],"#
                + #""seen":"1970-01-01T00:00:00Z","present":false,"knows":false,"proved":false}"#)
        #expect(DeviceRendering.unproved([device])?.contains("no connection has proved yet") == true)
        #expect(
            DeviceRendering.lines([device], width: 80, now: 1).map { $0.split(separator: /[ ]{2,}/).map(String.init) }
                == [
                    ["NAME", "ID", "HERE", "ADDRESSES", "KNOWS", "SEEN"],
                    ["laptop", "x ?", "no", "192.0.2.1:7 [2001:db8::1]:7", "no", "now"],
                ])
        var tv = device
        (tv.name, tv.proved, tv.present, tv.formerNames) = ("tv", true, true, ["host2", "a\u{202E}b"])
        #expect(DeviceRendering.unproved([tv]) == nil)
        #expect(DeviceRendering.json(tv).hasSuffix(#","proved":true,"formerNames":["host2","a\u202eb"]}"#))
        #expect(
            DeviceRendering.lines([tv], width: 100, now: 1).map { $0.split(separator: /[ ]{2,}/).map(String.init) }
                == [
                    ["NAME", "BEFORE", "ID", "HERE", "ADDRESSES", "KNOWS", "SEEN"],
                    ["tv", #"host2, a\u{202e}b"#, "x", "yes", "192.0.2.1:7 [2001:db8::1]:7", "no", "now"],
                ])
        var status = WireStatusResponse()
        status.device = "laptop"
        status.port = 7
        status.responder = "running"
        status.peers = 2
        status.offers = 3
        status.connections = 4
        status.processID = 9
        #expect(
            StatusRendering.json(status)
                == #"{"device":"laptop","deviceID":"","port":7,"responder":"running","peers":2,"offers":3,"#
                + #""connections":4,"applications":0,"process":9,"handoff":"on"}"#
        )
    }

    @Test("a status names each file that is damaged, and what that means; what is off for another reason is only off")
    func damage() {
        var status = WireStatusResponse()
        let plain = StatusRendering.lines(status)
        status.handoffIsOff = true
        #expect(
            StatusRendering.lines(status)
                == plain + ["handoff      off: nothing is offered or listed; `baton handoff on`"])
        status.handoffProblem = "line 1 of /h is odd"
        status.sharedRootsProblem = "/s: it is not UTF-8"
        status.policyProblem = "/p: line 2"
        #expect(
            StatusRendering.lines(status).dropFirst(plain.count).joined(separator: "\n") == """
                handoff      off, because line 1 of /h is odd
                             until it is fixed, or `baton handoff on`, nothing is offered or listed
                policy       /p: line 2
                             until it is fixed, its rules accept nothing and only refuse
                shared       /s: it is not UTF-8
                             until it is fixed, no folder is shared
                """)
        #expect(
            StatusRendering.json(status).hasSuffix(
                #""handoff":"off","policyProblem":"/p: line 2","handoffProblem":"line 1 of /h is odd","#
                    + #""sharedRootsProblem":"/s: it is not UTF-8"}"#))
    }

    @Test("a search that met lists which cannot be taken over says so, and what to do, and not that nobody was revoked")
    func untakenLists() throws {
        let account = try TestAccount(devices: 1).devices[0].account
        let phone = KnownDevices.Entry(deviceID: "a", name: "ph\u{1B}one", seen: 0, revision: 0)
        var outcome = AccountLookup.Outcome(account: account, met: [phone])
        #expect(AccountJoinCommand.lines(of: outcome) == ["Asked ph\\u{1b}one: no device was revoked."])
        outcome.untaken = (phone, .wrongKeys)
        #expect(
            AccountJoinCommand.lines(of: outcome) == [
                "Asked ph\\u{1b}one.",
                "The revocations that ph\\u{1b}one sent could not be used (the keys that came with the revocation "
                    + "list are not its own), so this device may still serve a revoked one: install the newest Baton on "
                    + "both, then run `baton account leave` here and join again.",
            ])
    }

    @Test("a title that was escaped where it came from is not escaped again")
    func titles() {
        var summary = WireActivitySummary()
        summary.title = "a\\u{1b}b \u{1B}c"
        #expect(ListedActivity(summary, device: "d", deviceID: "i").shownTitle == "a\\u{1b}b \\u{1b}c")
        // A path is escaped here, and nowhere before.
        #expect(SafeText.escaped(path: Array("a\\b".utf8)) == "a\\\\b")
    }

    @Test("a time is ISO 8601 with milliseconds, in UTC")
    func time() {
        #expect(Moment.now.wholeMatch(of: /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/) != nil)
    }

    @Test(
        "ages",
        arguments: [
            (0.0, "now"), (4.9, "now"), (5.0, "5 s"), (59.9, "59 s"), (60.0, "1 min"), (3599.0, "59 min"),
            (3600.0, "1 h"),
            (47.9 * 3600, "47 h"), (48.0 * 3600, "2 d"), (-300.0, "now"),
        ] as [(Double, String)])
    func ages(_ age: Double, _ text: String) {
        #expect(Moment.age(of: 1_000_000, now: 1_000_000 + age) == text)
    }

    @Test(
        "controls of terminals and of right-to-left writing are escaped",
        arguments: [
            0...0x1F, 0x7F...0x9F, 0x61C...0x61C, 0x200E...0x200F, 0x2028...0x202E, 0x2060...0x2069, 0xFEFF...0xFEFF,
            0xFFF9...0xFFFB, 0xE0001...0xE007F,
        ] as [ClosedRange<UInt32>])
    func dangerousScalars(_ range: ClosedRange<UInt32>) throws {
        for value in range {
            let scalar = try #require(Unicode.Scalar(value))
            let text = "a" + String(scalar) + "b"
            #expect(SafeText.escaped(text) == "a\\u{\(String(value, radix: 16))}b")
            #expect(SafeText.escaped(path: Array(text.utf8)) == SafeText.escaped(text))
        }
        // Some terminals act on a C1 control (CSI is 0x9B) although the byte is not UTF-8.
        for byte in UInt8(0x80)...0x9F { #expect(SafeText.escaped(path: [byte]) == "\\x\(String(byte, radix: 16))") }
    }

    @Test("what a terminal would act on is escaped")
    func escapes() {
        #expect(SafeText.sentence("'\\u{1b}' was escaped\u{7}") == "'\\u{1b}' was escaped\\u{7}")
        let shown = SafeText.escaped("a\u{1B}]0;x\u{7}\u{202E}b\n")
        #expect(shown == #"a\u{1b}]0;x\u{7}\u{202e}b\u{a}"#)
        let line = ActivityRendering.line(Self.listing(1, title: "x\u{1B}[2J", device: "\u{9B}m"))
        #expect(line?.unicodeScalars.contains { $0.isUnsafeToShow } == false)
    }

    @Test("width and clipping")
    func widths() {
        #expect(DisplayWidth.of("abc") == 3)
        #expect(DisplayWidth.of("漢字") == 4)
        #expect(DisplayWidth.of("é") == 1)
        #expect(DisplayWidth.of("e\u{301}") == 1)
        #expect(DisplayWidth.of("👩‍👩‍👧") == 2)
        #expect(DisplayWidth.clip("abcdef", to: 6) == "abcdef")
        #expect(DisplayWidth.clip("abcdef", to: 5) == "abcd…")
        #expect(DisplayWidth.clip("漢字漢字", to: 6) == "漢字…")
        #expect(DisplayWidth.clip("abc", to: 0) == "")
    }

    @Test("of a web page the URL alone is printed, of an activity each field")
    func payloads() throws {
        var payload = WireActivityPayload()
        payload.summary = Self.listing(1, title: "Swift").activity
        payload.summary.kind = .web
        payload.webPageURL = "https://swift.org/"
        #expect(try PayloadRendering(payload, device: "d", deviceID: "i").lines() == ["https://swift.org/"])
        payload.summary.kind = .application
        payload.userInfo = (["page": 3] as UserInfo).message
        #expect(
            try PayloadRendering(payload, device: "d", deviceID: "i").lines() == [
                "type       org.example.note", "title      Swift", "web page   https://swift.org/",
                #"user info  {"page":3}"#,
            ])
    }
}

@Suite("Progress line")
struct ProgressLineTests {
    /// A terminal that records its output, and a manual clock.
    private final class Screen: Sendable {
        private let state = Mutex((text: "", now: UInt64(1_000_000_000)))

        func write(_ text: String) { state.withLock { $0.text += text } }
        func advance(milliseconds: UInt64) { state.withLock { $0.now += milliseconds * 1_000_000 } }
        var now: Instant { state.withLock { Instant(nanoseconds: $0.now) } }
        func take() -> String {
            state.withLock { state in
                defer { state.text = "" }
                return state.text
            }
        }
    }

    private static func line(
        _ screen: Screen, isTerminal: Bool, width: Int = 80, isJSON: Bool = false
    ) -> EventOutput {
        EventOutput(
            isJSON: isJSON, isOutputTaken: isJSON, isTerminal: isTerminal, width: { width }, now: { screen.now },
            write: { text in screen.write(text) })
    }

    @Test("progress that the application shows is not drawn here as well")
    func shownElsewhere() async throws {
        let activity = ListedActivity(.with { $0.title = "report.pdf" }, device: "laptop", deviceID: "l")
        for isShown in [false, true] {
            let screen = Screen()
            let reporter = AcceptReporter(Self.line(screen, isTerminal: true))
            try await reporter.willContinue(
                .with {
                    $0.device = "laptop"
                    $0.shown = isShown
                }, activity, in: .with { $0.name = "Reader" })
            try await reporter.progressed(
                .with {
                    $0.bytes = 1
                    $0.total = 4
                }, activity)
            let text = screen.take()
            #expect(text.contains("from laptop in Reader") == !isShown && text.isEmpty == isShown, "\(text)")
            #expect(text.contains("25") == !isShown, "\(text)")
        }
    }

    @Test("how much is kept of a document that stopped coming is said, also that nothing is", arguments: [0, 3])
    func kept(_ megabytes: UInt64) async throws {
        let activity = ListedActivity(.with { $0.title = "report.pdf" }, device: "laptop", deviceID: "l")
        let screen = Screen()
        let reporter = AcceptReporter(Self.line(screen, isTerminal: false))
        let interruption = WireAcceptEvent.Interrupted.with {
            $0.cause = HandoffError(.connectionLost, "the link broke").failure
            $0.keptBytes = megabytes << 20
            $0.waitsSeconds = 600
        }
        // Before any byte has arrived, none can be kept.
        try await reporter.interrupted(.with { $0.waitsSeconds = 600 }, activity)
        #expect(!screen.take().contains("kept"))
        try await reporter.progressed(.with { ($0.bytes, $0.total) = (4 << 20, 8 << 20) }, activity)
        _ = screen.take()
        try await reporter.interrupted(interruption, activity)
        let text = screen.take()
        #expect(text.contains("; \(megabytes == 0 ? "nothing of it is" : "3.0 MiB of it are") kept: waiting"))
        // The transfer goes on, and the user ends it.
        try await reporter.progressed(
            .with { ($0.bytes, $0.total, $0.keptBytes) = (4 << 20, 8 << 20, megabytes << 20) }, activity)
        _ = screen.take()
        try await reporter.failed(.interrupted)
        #expect(
            screen.take()
                == (megabytes == 0
                    ? "nothing of it is kept\n" : "3.0 MiB of it are kept: `baton accept` again goes on from there\n"))
    }

    @Test("a terminal's line is drawn over itself, at most ten times a second, and goes")
    func terminal() async {
        let screen = Screen()
        let line = Self.line(screen, isTerminal: true)
        await line.update("report.pdf", bytes: 0, total: 1000)
        #expect(screen.take().hasPrefix("\rreport.pdf"))
        screen.advance(milliseconds: 99)
        await line.update("report.pdf", bytes: 10, total: 1000)
        #expect(screen.take() == "")
        screen.advance(milliseconds: 1)
        await line.update("report.pdf", bytes: 500, total: 1000)
        let drawn = screen.take()
        #expect(drawn.contains("50%"))
        #expect(!drawn.contains("\n"))
        await line.remove("report.pdf")
        #expect(screen.take() == "\r\u{1B}[K")
    }

    @Test("of another version of the document the line begins anew, and does not say that it is stalled")
    func changed() async {
        let screen = Screen()
        let line = Self.line(screen, isTerminal: true)
        await line.update("film", bytes: 0, total: 30 << 20)
        screen.advance(milliseconds: 4000)
        await line.update("film", bytes: 22 << 20, total: 30 << 20)
        #expect(screen.take().contains("73%"))
        screen.advance(milliseconds: 200)
        await line.update("film", bytes: 0, total: 30 << 20)
        #expect(screen.take().contains(" 0%  0 bytes of 30 MiB\u{1B}"))
        for megabyte in 1...8 as ClosedRange<UInt64> {
            screen.advance(milliseconds: 500)
            await line.update("film", bytes: megabyte << 20, total: 30 << 20)
        }
        let text = screen.take()
        #expect(text.contains("26%  8.0 MiB of 30 MiB, 2.0 MiB/s"), "\(text)")
        #expect(!text.contains("stalled"), "\(text)")
    }

    /// Emulates a terminal, and returns the lines up to the cursor. It knows the control sequences of the progress
    /// line, and fails for any other.
    private static func shown(_ text: String) throws -> [String] {
        var (lines, row, column) = ([[Character]()], 0, 0)
        var rest = text[...]
        while let character = rest.popFirst() {
            switch character {
            case "\r": column = 0
            case "\n":
                (row, column) = (row + 1, 0)
                if row == lines.count { lines.append([]) }
            case "\u{1B}":
                let sequence = try #require(rest.prefixMatch(of: /\[(\d*)([AJK])/))
                rest = rest[sequence.range.upperBound...]
                switch sequence.2 {
                case "A": row -= Int(sequence.1) ?? 1
                case "J":
                    lines[row].removeLast(lines[row].count - column)
                    lines.removeLast(lines.count - row - 1)
                default: lines[row].removeLast(lines[row].count - column)
                }
                try #require(row >= 0)
            default:
                if column < lines[row].count { lines[row][column] = character } else { lines[row].append(character) }
                column += 1
            }
        }
        return lines.map { String($0) }
    }

    @Test("several transfers have a line each, with all that is known of them, and each goes with its transfer")
    func several() async throws {
        let screen = Screen()
        let line = Self.line(screen, isTerminal: true, width: 100)
        var text = ""
        func draw(_ names: [String], bytes: UInt64, _ bottleneck: WireTransferBottleneck) async throws -> [String] {
            for name in names {
                screen.advance(milliseconds: 100)
                await line.update(name, bytes: bytes, total: 100 << 20, bottleneck: bottleneck)
            }
            text += screen.take()
            return try Self.shown(text)
        }
        _ = try await draw(["film", "report"], bytes: 0, .unknown)
        for second in 1...20 as ClosedRange<UInt64> {
            screen.advance(milliseconds: 800)
            let lines = try await draw(["film", "report"], bytes: second << 20, second > 10 ? .diskThere : .link)
            #expect(lines.count == 2 && lines[0].hasPrefix("film    ") && lines[1].hasPrefix("report  "), "\(lines)")
            guard second > 3 else { continue }
            for shown in lines {
                #expect(shown.contains(/\d+%  [\d.]+ MiB of 100 MiB, [\d.]+ [KM]iB\/s,/), "\(lines)")
            }
            #expect(
                lines[1].hasSuffix(second > 10 ? " left, limited by the other disk" : " left, limited by the network"),
                "\(lines)")
        }
        // A message is printed above the lines.
        await line.say("report is taken")
        let said = try await draw(["film"], bytes: 21 << 20, .link)
        #expect(said.count == 3 && said[0] == "report is taken" && said[1].contains("21%"), "\(said)")

        let others = ["a", "b", "c"]
        let many = try await draw(others, bytes: 1 << 20, .link)
        #expect(many.count == 5 && many[4] == "and 2 more" && many[3].hasPrefix("a  "), "\(many)")
        for other in others { await line.remove(other) }
        let few = try await draw(["film"], bytes: 22 << 20, .link)
        #expect(few.count == 3 && few[2].hasPrefix("report  "), "\(few)")
        await line.remove("film")
        let one = try await draw(["report"], bytes: 22 << 20, .link)
        #expect(one.count == 2 && one[1].hasPrefix("report  "), "\(one)")
        await line.remove("report")
        text += screen.take()
        #expect(try Self.shown(text) == ["report is taken", ""])
    }

    @Test("two transfers of one name have a line each, with a rate, and the end of one leaves the other's")
    func sameName() async throws {
        let screen = Screen()
        let reporter = OfferReporter(output: Self.line(screen, isTerminal: true, width: 100))
        var text = ""
        func report(_ claim: UInt64, _ megabytes: UInt64) async throws -> [String] {
            screen.advance(milliseconds: 500)
            try await reporter.progressed(
                .with {
                    $0.device = "ubuntu"
                    $0.bytes = megabytes << 20
                    $0.total = 100 << 20
                }, claim: claim)
            text += screen.take()
            return try Self.shown(text)
        }
        for second in 0...9 as ClosedRange<UInt64> {
            _ = try await report(7, 80 + second)
            let lines = try await report(9, 10 + 2 * second)
            guard second > 3 else { continue }
            try #require(lines.count == 2, "\(lines)")
            #expect(lines[0].hasPrefix("ubuntu      ") && lines[1].hasPrefix("ubuntu (2)  "), "\(lines)")
            for line in lines { #expect(line.contains(/MiB of 100 MiB, [\d.]+ [KM]iB\/s, .* left/), "\(lines)") }
        }
        try await reporter.continued(.with { $0.device = "ubuntu" }, claim: 7)
        let left = try await report(9, 30)
        #expect(left.count == 2 && left[0] == "continued by ubuntu" && left[1].hasPrefix("ubuntu (2)  "), "\(left)")
    }

    @Test("a transfer that failed and went on leaves neither its line nor its name taken when it fails again")
    func failedTwice() async throws {
        let screen = Screen()
        let reporter = OfferReporter(output: Self.line(screen, isTerminal: true, width: 100))
        func report(_ claim: UInt64) async throws {
            screen.advance(milliseconds: 500)
            try await reporter.progressed(
                .with {
                    $0.device = "ubuntu"
                    $0.bytes = 43 << 20
                    $0.total = 100 << 20
                }, claim: claim)
        }
        for _ in 1...2 {
            try await report(7)
            try await reporter.failed(
                .with {
                    $0.device = "ubuntu"
                    $0.message = "it was cut"
                }, claim: 7)
        }
        try await report(9)
        let lines = try Self.shown(screen.take())
        #expect(lines.count == 3 && lines[2].hasPrefix("ubuntu  "), "\(lines)")
        #expect(lines.prefix(2).allSatisfy { $0 == "ubuntu did not get it: it was cut" }, "\(lines)")
    }

    @Test("a transfer that was cut waits without a line, keeps its name, and says how it ends")
    func interrupted() async throws {
        let screen = Screen()
        let reporter = OfferReporter(output: Self.line(screen, isTerminal: true, width: 100))
        func report(_ claim: UInt64) async throws {
            screen.advance(milliseconds: 500)
            try await reporter.progressed(
                .with {
                    $0.device = "ubuntu"
                    $0.bytes = 43 << 20
                    $0.total = 100 << 20
                }, claim: claim)
        }
        try await report(7)
        try await reporter.interrupted(
            .with {
                $0.device = "ubuntu"
                $0.message = "the connection was lost"
            }, claim: 7)
        try await report(9)
        try await report(7)
        try await reporter.continued(.with { $0.device = "ubuntu" }, claim: 7)
        let lines = try Self.shown(screen.take())
        #expect(lines[0] == "ubuntu stopped receiving: the connection was lost; waiting for it to go on", "\(lines)")
        #expect(lines.count == 3 && lines[1] == "continued by ubuntu" && lines[2].hasPrefix("ubuntu (2)  "), "\(lines)")
    }

    @Test("a free name is used again, and so many transfers are known")
    func names() async throws {
        let output = Self.line(Screen(), isTerminal: true)
        for claim in [7, 9] as [UInt64] {
            #expect(await output.name(of: claim, by: "ubuntu") == (claim == 7 ? "ubuntu" : "ubuntu (2)"))
        }
        // A name that a device really has is used for that device only.
        #expect(await output.name(of: 10, by: "ubuntu (2)") == "ubuntu (2) (2)")
        await output.end(7)
        #expect(await output.name(of: 11, by: "ubuntu") == "ubuntu")
        #expect(await output.name(of: 9, by: "renamed") == "ubuntu (2)")
        for number in 0..<EventOutput.bound { _ = await output.name(of: 100 + UInt64(number), by: "tablet") }
        #expect(await output.name(of: 9, by: "ubuntu") == "ubuntu")
    }

    @Test("elsewhere there is a plain line every five seconds")
    func plain() async {
        let screen = Screen()
        let line = Self.line(screen, isTerminal: false)
        for step in 0..<60 as Range<UInt64> {
            await line.update("report.pdf", bytes: step * 10, total: 1000)
            screen.advance(milliseconds: 200)
        }
        let text = screen.take()
        #expect(text.split(separator: "\n").count == 2)
        #expect(!text.contains("\r") && !text.contains("\u{1B}"))
    }

    /// Each name is escaped on its way to the line, and only the line adds control sequences.
    @Test("what other devices are called does nothing in the log, in a message or beside it")
    func log() {
        var log = ErrorOutputLog(level: .info, name: "baton node")
        log[metadataKey: "device"] = "\u{202E}dog\u{7}"
        let line = log.line(
            of: LogEvent(
                level: .warning, message: "“\u{1B}[2Jone\ntwo” is taken", metadata: ["title": "\u{9B}1m"], source: nil,
                file: "", function: "", line: 1))
        #expect(line.hasPrefix("baton node: warning: “"))
        #expect(line.contains("dog") && line.contains("[2Jone"), "\(line.debugDescription)")
        for scalar in line.unicodeScalars {
            #expect(![.control, .format].contains(scalar.properties.generalCategory), "\(line.debugDescription)")
        }
    }

    @Test("a peer's names draw nothing of their own", arguments: [true, false])
    func hostile(isTerminal: Bool) async {
        let names = ["\u{1B}[2Jred", "\u{202E}gpj.exe", "two\nlines", "\u{9B}31m", "back\u{8}\u{8}", "bell\u{7}\r"]
        for name in names {
            let activity = ListedActivity(.with { $0.title = name }, device: name, deviceID: "l")
            let screen = Screen()
            let reporter = AcceptReporter(Self.line(screen, isTerminal: isTerminal))
            for bytes in 0...3 as ClosedRange<UInt64> {
                try? await reporter.progressed(
                    .with {
                        ($0.bytes, $0.total) = (bytes, 4)
                    }, activity)
                screen.advance(milliseconds: 6000)
            }
            let text = screen.take()
            #expect(text.contains("%"), "\(text.debugDescription)")
            let own = text.replacing("\u{1B}[K", with: "").filter { $0 != "\r" && $0 != "\n" && $0 != "\r\n" }
            #expect(own.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control })
            #expect(own.unicodeScalars.allSatisfy { $0.properties.generalCategory != .format })
            #expect(text.filter(\.isNewline).count == (isTerminal ? 4 : 3), "\(text.debugDescription)")
        }
    }

    @Test("the line fits any width", arguments: [1, 2, 10, 20, 39, 40, 60, 80, 200])
    func widths(_ width: Int) async throws {
        for names in [["漢字 long name of a document that goes on and on.pdf"], ["desktop", "phone", "tablet"]] {
            let screen = Screen()
            let line = Self.line(screen, isTerminal: true, width: width)
            var text = ""
            for bytes in stride(from: UInt64(0), through: 1 << 30, by: 1 << 27) {
                for name in names { await line.update(name, bytes: bytes, total: 1 << 30) }
                screen.advance(milliseconds: 150)
                text += screen.take()
                for shown in try Self.shown(text) {
                    #expect(DisplayWidth.of(shown) <= max(width - 1, 1), "\(shown)")
                }
            }
            #expect(!text.isEmpty)
        }
    }

    @Test("100% is never said: what has come is not in place yet, and then the line goes", arguments: [true, false])
    func notInPlace(isTerminal: Bool) async {
        for names in [["report.pdf"], ["desktop", "phone"]] {
            let screen = Screen()
            let line = Self.line(screen, isTerminal: isTerminal)
            for bytes in [0, 1000, 1000, 1000] as [UInt64] {
                for name in names { await line.update(name, bytes: bytes, total: 1000) }
                screen.advance(milliseconds: 6000)
            }
            let text = screen.take()
            for name in names { #expect(text.contains(name), "\(text)") }
            #expect(text.contains("99%") && !text.contains("100%"), "\(text)")
            #expect(text.contains("writing to the disk"), "\(text)")
        }
    }

    @Test(
        "what goes on at once is said in full by its cause, whatever that was",
        arguments: [
            "report has changed since a part of it came",
            "an older copy that report was built upon changed, and none is used any more",
        ])
    func goesOn(_ cause: String) async throws {
        let screen = Screen()
        let reporter = AcceptReporter(Self.line(screen, isTerminal: false))
        try await reporter.interrupted(
            .with { $0.cause = HandoffError(.documentChanged, cause).failure },
            ListedActivity(.with { $0.title = "report" }, device: "laptop", deviceID: "l"))
        #expect(screen.take() == "\(cause): going on with what is not here yet\n")
    }

    @Test("what ends the command is the last that stands on a terminal, and no progress is drawn below it")
    func lastWord() async throws {
        let screen = Screen()
        let reporter = AcceptReporter(Self.line(screen, isTerminal: true))
        try await reporter.progressed(
            .with { ($0.bytes, $0.total) = (1 << 20, 2 << 20) },
            ListedActivity(.with { $0.title = "report" }, device: "laptop", deviceID: "l"))
        _ = screen.take()
        try await reporter.failed(.interrupted)
        #expect(screen.take() == "\r\u{1B}[K1.0 MiB of it are kept: `baton accept` again goes on from there\n")
    }

    @Test("of what is in place nothing is said to be kept, whatever ends the command then", arguments: [false, true])
    func keptNoMore(_ isInPlace: Bool) async throws {
        let screen = Screen()
        let reporter = AcceptReporter(Self.line(screen, isTerminal: false))
        try await reporter.progressed(
            .with { ($0.bytes, $0.total) = (1000, 1000) },
            ListedActivity(.with { $0.title = "report" }, device: "laptop", deviceID: "l"))
        if isInPlace { try await reporter.continued(.init()) }
        try await reporter.failed(.interrupted)
        #expect(screen.take().contains("are kept") == !isInPlace)
    }

    @Test("what is said stands above the line")
    func saying() async {
        let screen = Screen()
        let line = Self.line(screen, isTerminal: true)
        await line.update("a", bytes: 1, total: 10)
        _ = screen.take()
        await line.say("hello")
        let text = screen.take()
        #expect(text.hasPrefix("\r\u{1B}[Khello\n\ra"))
    }

    @Test("JSON has the same facts as the line: rate, time left, and less than all")
    func progressMembers() async throws {
        let screen = Screen()
        let output = Self.line(screen, isTerminal: true, isJSON: true)
        func text(_ bytes: UInt64, after milliseconds: UInt64) async throws -> String {
            screen.advance(milliseconds: milliseconds)
            let event = WireProgressReport.with {
                ($0.bytes, $0.total, $0.bottleneck) = (bytes, 10_000_000, .diskThere)
            }
            try await output.progressed(event, of: "report.pdf")
            return "{" + screen.take().split(separator: ",", maxSplits: 2)[2]
        }
        func expected(_ bytes: Int, rate: String, left: String) -> String {
            "{\"bytes\":\(bytes),\"total\":10000000,\"rate\":\(rate),\"secondsLeft\":\(left),\"bottleneck\":\"disk there\"}\n"
        }
        #expect(try await text(0, after: 0) == expected(0, rate: "null", left: "null"))
        #expect(try await text(1_000_000, after: 1000) == expected(1_000_000, rate: "1000000", left: "9"))
        #expect(try await text(10_000_000, after: 1000) == expected(9_999_999, rate: "5000000", left: "null"))
        // The next version of the document starts from zero.
        #expect(try await text(2_000_000, after: 1000) == expected(2_000_000, rate: "null", left: "null"))
    }
}

extension EventOutput {
    fileprivate func update(
        _ name: String, bytes: UInt64, total: UInt64, bottleneck: WireTransferBottleneck = .unknown
    ) {
        let report = WireProgressReport.with { ($0.bytes, $0.total, $0.bottleneck) = (bytes, total, bottleneck) }
        #expect(throws: Never.self) { try progressed(report, of: name, claim: Self.claim(name)) }
    }

    fileprivate func remove(_ name: String) { end(Self.claim(name)) }

    private static func claim(_ name: String) -> UInt64 { UInt64(bitPattern: Int64(name.hashValue)) }
}
