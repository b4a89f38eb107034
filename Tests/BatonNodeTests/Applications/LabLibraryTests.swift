// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Foundation
import Testing

/// The rules of the library between two real nodes. An application says something of its activity on one host. The
/// tests look at the other host's list, its application and the first one's delegate.
@Suite(.serialized, .lab, .timeLimit(.minutes(3)))
struct LabLibraryTests {
    @Test("Required keys, too much user info at takeover, the warning above 3 KB: each side hears of it by its code")
    func userInfo() async throws {
        let pair = try await LabPair()
        defer { pair.lab.down() }
        let (origin, reader) = (pair.origin, pair.reader)
        origin.offer("Note", #","requiredUserInfoKeys":["page"],"userInfo":{"page":1}"#)

        // What is required is missing from what was saved.
        var accept = try pair.accept()
        try await reader.agree(nth: 1)
        try await origin.answer("willSave", 1, #""do":"saved","userInfo":{"other":1}"#)
        #expect(try await accept.end().status != 0)
        let missing = try await reader.nth("didFailToContinue", 1)
        #expect(missing.code == 4608 && missing.message?.hasSuffix(": page") == true, "\(missing)")
        let told = try await origin.nth("failed", 1)
        #expect(told.code == 46001 && told.device == "desktop", "\(told)")
        #expect(told.message?.hasSuffix(": page") == true, "\(told)")
        #expect(origin.command.errors.contains("without what it requires: page"), "\(origin.command.errors)")
        #expect(reader.count("continue") == 0)

        // Above 48 KiB at the takeover both sides fail, and above 3 KiB the origin is warned.
        accept = try pair.accept()
        try await reader.agree(nth: 2)
        let large = String(repeating: "x", count: 49 << 10)
        try await origin.answer("willSave", 2, #""do":"saved","userInfo":{"page":2,"text":"\#(large)"}"#)
        #expect(try await accept.end().events.last?.code == "userInfoTooLarge")
        #expect(try await reader.nth("didFailToContinue", 2).code == 4611)
        try await origin.event("failed") { $0.code == 4611 && $0.device == "desktop" }
        // As it is it is offered no more, which is a failure of the activity and of no device.
        try await origin.event("failed") { $0.code == 4611 && $0.device == nil }
        try await pair.list([], "what is too large is not offered")
        #expect(!origin.command.errors.contains("bytes of user info, over 3072"))

        let some = String(repeating: "x", count: 4 << 10)
        origin.send(#""do":"update","activity":"Note","userInfo":{"page":3,"text":"\#(some)"}"#)
        try await pair.list(["Note"], "it is offered again")
        try await eventually("the size is warned of") {
            origin.command.errors.contains("bytes of user info, over 3072")
        }
        accept = try pair.accept()
        try await reader.agree(nth: 3)
        try await origin.answer("willSave", 3, #""do":"saved""#)
        let activity = try await reader.continue()
        #expect(activity.userInfo?.page == 3)
        #expect(try await accept.end().status == 0)
        _ = try await origin.nth("wasContinued", 1)
        #expect(origin.count("wasContinued") == 1 && reader.count("didFailToContinue") == 2)
    }

    @Test("What the node refuses of an update is told, and the activity is offered again when it has changed")
    func refusedUpdate() async throws {
        let pair = try await LabPair()
        defer { pair.lab.down() }
        let origin = pair.origin
        origin.offer("Note")
        try await pair.list(["Note"], "it is listed")
        for number in 1...2 {
            let missing = pair.lab.folder.appendingPathComponent("missing").path
            origin.send(#""do":"update","activity":"Note","title":"Bad","document":"\#(missing)""#)
            let failed = try await origin.nth("failed", number)
            #expect(failed.code == 4608 && failed.device == nil, "\(failed)")
            try await pair.list([], "what was refused is not offered")
            // It does not become current anew.
            origin.send(#""do":"update","activity":"Note","title":"Good \#(number)","document":null"#)
            try await pair.list(["Good \(number)"], "it is offered again")
        }
        _ = try await pair.continue(1)
        try await origin.event("wasContinued") { $0.activity == "Note" }
        #expect(origin.count("failed") == 2, "each refusal is told once")
    }

    @Test("An activity that has expired is listed again when it is given more time, without becoming current anew")
    func prolonged() async throws {
        let pair = try await LabPair()
        defer { pair.lab.down() }
        let origin = try pair.lab.startProgram(1, [Lab.product("library-probe"), "expire"])
        try await pair.list(["Brief"], "it is listed")
        for _ in 1...2 {
            origin.program.send("brief")
            try await pair.list([], "it has expired")
            origin.program.send("more")
            try await pair.list(["Brief"], "it has more time")
        }
        origin.program.closeInput()
        #expect(try await origin.end().status == 0)
        #expect(origin.program.lines.isEmpty, "\(origin.program.lines)")
    }

    @Test("needsSave is asked for when the activity becomes current, and again at takeover; once each")
    func needsSave() async throws {
        let pair = try await LabPair()
        defer { pair.lab.down() }
        let (origin, reader) = (pair.origin, pair.reader)
        origin.offer("Note", #","needsSave":true"#)
        try await origin.save(nth: 1, page: 10)
        try await pair.list(["Note"], "it is listed")
        #expect(origin.count("willSave") == 1)

        let accept = try pair.accept()
        try await reader.agree()
        try await origin.save(nth: 2, page: 20)
        #expect(try await reader.continue().userInfo?.page == 20)
        #expect(try await accept.end().status == 0)

        // It was cleared: the state is not asked for again, only because the activity becomes current again.
        origin.send(#""do":"becomeCurrent","activity":"Note","title":"Again""#)
        try await pair.list(["Again"], "it is current again")
        #expect(origin.count("willSave") == 2)
    }

    @Test("One activity of an application is listed; eligibility is switched; saved ones are deleted by their names")
    func current() async throws {
        let pair = try await LabPair()
        defer { pair.lab.down() }
        let origin = pair.origin
        origin.offer("First", #","persistentIdentifier":"milk""#)
        try await pair.list(["First"], "the first is listed")
        origin.offer("Second", #","persistentIdentifier":"bread""#)
        try await pair.list(["Second"], "the second takes the first one's place")

        let id = try #require(try await pair.lab.run(2, "activities", "--json").events.first?.id)
        origin.send(#""do":"update","activity":"Second","isEligibleForHandoff":false"#)
        try await pair.list([], "who is not eligible is not listed")
        #expect(try await pair.lab.run(2, "accept", id, "--json").events.last?.code == "noSuchActivity")
        origin.send(#""do":"update","activity":"Second","isEligibleForHandoff":true"#)
        try await pair.list(["Second"], "it is eligible again")

        origin.send(#""do":"deleteSavedUserActivities","persistentIdentifiers":["milk","butter"]"#)
        origin.send(#""do":"update","activity":"Second","title":"Spared""#)
        try await pair.list(["Spared"], "one of another name is spared")
        origin.send(#""do":"deleteSavedUserActivities","persistentIdentifiers":["bread"]"#)
        try await pair.list([], "the one that is meant is withdrawn")
        // It is gone for good.
        origin.send(#""do":"update","activity":"Second","title":"Gone""#)
        try await origin.event("error") { $0.message?.contains("there is no activity") == true }
    }

    @Test("Streams are refused, taken and refused again as supportsContinuationStreams is switched while current")
    func streamsSwitched() async throws {
        let pair = try await LabPair()
        defer { pair.lab.down() }
        let (origin, reader) = (pair.origin, pair.reader)
        origin.offer("Without")
        try await pair.list(["Without"], "it is listed")
        let without = try await pair.continue(1)
        reader.send(#""do":"openStream","activity":"\#(without)","stream":"a""#)
        #expect(try await reader.event("streamFailed") { $0.stream == "a" }.code == 46003)

        origin.send(#""do":"update","activity":"Without","title":"With","supportsContinuationStreams":true"#)
        try await pair.list(["With"], "it has streams")
        let with = try await pair.continue(2)
        reader.send(#""do":"openStream","activity":"\#(with)","stream":"b""#)
        try await reader.event("streamOpened") { $0.stream == "b" }
        let incoming = try await origin.event("streamOpened").stream ?? ""
        origin.send(#""do":"write","stream":"\#(incoming)","text":"hello""#)
        #expect(try await reader.event("data").data == Data("hello".utf8).base64EncodedString())
        // A device that continued it before has them as well: the origin decides when it is asked.
        reader.send(#""do":"openStream","activity":"\#(without)","stream":"d""#)
        try await reader.event("streamOpened") { $0.stream == "d" }
        _ = try await origin.nth("streamOpened", 2)

        origin.send(#""do":"update","activity":"Without","title":"No more","supportsContinuationStreams":false"#)
        try await pair.list(["No more"], "it has none any more")
        reader.send(#""do":"openStream","activity":"\#(with)","stream":"c""#)
        #expect(try await reader.event("streamFailed") { $0.stream == "c" }.code == 46003)
        #expect(origin.count("streamOpened") == 2)
        // The one that was open goes on.
        origin.send(#""do":"write","stream":"\#(incoming)","text":"still""#)
        #expect(try await reader.nth("data", 2).data == Data("still".utf8).base64EncodedString())

        // Switched on after the takeover, and not current any more: its application says whether there are streams.
        origin.send(#""do":"update","activity":"Without","title":"At last","supportsContinuationStreams":true"#)
        try await pair.list(["At last"], "it has streams again")
        origin.offer("Other")
        try await pair.list(["Other"], "another one is current")
        reader.send(#""do":"openStream","activity":"\#(without)","stream":"e""#)
        try await reader.event("streamOpened") { $0.stream == "e" }
        _ = try await origin.nth("streamOpened", 3)
        origin.send(#""do":"update","activity":"Without","supportsContinuationStreams":false"#)
        // When this is answered, everything sent before has been done.
        origin.send("nonsense")
        try await origin.event("error") { $0.message?.contains("not JSON") == true }
        reader.send(#""do":"openStream","activity":"\#(without)","stream":"f""#)
        #expect(try await reader.event("streamFailed") { $0.stream == "f" }.code == 46003)
    }

    @Test("A stopped origin application fails a stream in time, with 4610")
    func silentStream() async throws {
        let pair = try await LabPair()
        defer { pair.lab.down() }
        let (origin, reader) = (pair.origin, pair.reader)
        origin.offer("Note", #","supportsContinuationStreams":true"#)
        try await pair.list(["Note"], "it is listed")
        let activity = try await pair.continue(1)
        origin.command.program.signal(SIGSTOP)
        defer { origin.command.program.signal(SIGCONT) }
        reader.send(#""do":"openStream","activity":"\#(activity)","stream":"s""#)
        let failed = try await reader.event("streamFailed", within: .seconds(20)) { $0.stream == "s" }
        #expect(failed.code == 4610, "\(failed)")
        // The application did not answer, its device did.
        #expect(failed.message?.contains("the application that offers it did not answer") == true, "\(failed)")
    }

    @Test("The outcome of a takeover is told although another activity has become current meanwhile")
    func overtaken() async throws {
        let pair = try await LabPair()
        defer { pair.lab.down() }
        let (origin, reader) = (pair.origin, pair.reader)
        origin.offer("First")
        try await pair.list(["First"], "the first is listed")
        let good = try pair.accept()
        try await reader.agree(nth: 1)
        try await origin.save(nth: 1)
        _ = try await reader.nth("continue", 1)
        origin.offer("Second")
        try await pair.list(["Second"], "the second takes its place")
        try await reader.continue(nth: 1)
        #expect(try await good.end().status == 0)
        let continued = try await origin.event("wasContinued")
        #expect(continued.activity == "First" && continued.device == "desktop", "\(continued)")

        let bad = try pair.accept()
        try await reader.agree(nth: 2)
        try await origin.save(nth: 2)
        _ = try await reader.nth("continue", 2)
        origin.offer("Third")
        try await pair.list(["Third"], "the third takes its place")
        try await reader.answer("continue", 2, #""do":"continued","handled":false"#)
        #expect(try await bad.end().status != 0)
        let failed = try await origin.event("failed")
        #expect(failed.activity == "Second" && failed.code == 46007 && failed.device == "desktop", "\(failed)")
        #expect(origin.count("wasContinued") == 1)
    }

    @Test("An activity that an application did not handle is notHandled on both sides")
    func notHandled() async throws {
        let pair = try await LabPair()
        defer { pair.lab.down() }
        pair.origin.offer("Note")
        let accept = try pair.accept()
        try await pair.reader.agree()
        try await pair.origin.save()
        try await pair.reader.answer("continue", 1, #""do":"continued","handled":false"#)
        #expect(try await accept.end().status != 0)
        #expect(try await pair.reader.event("didFailToContinue").code == 46007)
        let failed = try await pair.origin.event("failed")
        #expect(failed.code == 46007 && failed.device == "desktop", "\(failed)")
        #expect(pair.origin.count("wasContinued") == 0)
    }
}

/// An application on each of two hosts, with nodes between them.
struct LabPair {
    let lab: HandoffLab
    /// On the first host, the laptop.
    let origin: LabApplication
    /// On the second host, the desktop.
    let reader: LabApplication

    init() async throws {
        lab = try await HandoffLab()
        _ = try await lab.startNodes()
        reader = try await LabApplication(lab, on: 2, LabManifest.write(lab, "org.example.reader"))
        origin = try await LabApplication(lab, on: 1, LabManifest.write(lab, "org.example.writer"))
    }

    /// Accepts what is offered.
    func accept() throws -> HostCommand { try lab.start(2, "accept", "--wait", "30", "--json") }

    /// A handoff that goes well.
    ///
    /// - Parameter nth: which it is.
    /// - Returns: the continued activity's name.
    func `continue`(_ nth: Int) async throws -> String {
        let accept = try accept()
        try await reader.agree(nth: nth)
        try await origin.save(nth: nth)
        let activity = try await reader.continue(nth: nth)
        #expect(try await accept.end().status == 0)
        return try #require(activity.activity)
    }

    /// Waits until the second host lists activities of these titles, and no others.
    func list(_ titles: [String], _ what: String) async throws {
        try await eventually(what, within: .seconds(40)) {
            try await lab.run(2, "activities", "--json").events.map(\.title) == titles
        }
    }
}
