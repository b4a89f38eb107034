// SPDX-License-Identifier: Apache-2.0

import BatonMessages
import BatonTestSupport
import BatonTransport
import Foundation
import SwiftProtobuf
import SystemPackage
import Testing

@testable import Baton
@testable import BatonCLI

/// Each message of `ApplicationMessages.md`, as it is written there, and its meaning.
@Suite("The messages of baton application")
struct BridgeMessageTests {
    /// The examples of the specification that contain a member.
    private static func documented(_ member: String) throws -> Set<String> {
        let file = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../../Sources/BatonCLI/BatonCLI.docc/ApplicationMessages.md")
        let lines = try String(contentsOf: file, encoding: .utf8).split(separator: "\n").map(String.init)
        return Set(lines.filter { $0.hasPrefix("{\"\(member)\"") })
    }

    @Test("messages to the bridge are read as the specification writes them, and all are in it")
    func requests() throws {
        var kinds: Set<String> = []
        for text in try Self.documented("do") {
            #expect(throws: Never.self, "\(text)") { try BridgeRequest(line: Array(text.utf8)) }
            if case .string(let kind)? = try JSONParser.parse(text)["do"] { kinds.insert(kind) }
        }
        #expect(
            kinds == [
                "becomeCurrent", "update", "resignCurrent", "invalidate", "deleteSavedUserActivities", "setInFront",
                "saved", "willContinue", "continued", "openStream", "write", "finish", "reset", "ack",
                "startAccessing",
            ])
    }

    @Test("messages about activities and questions do what the specification says")
    func meaning() async throws {
        let application = try Application(
            .init(identifier: "org.example.editor"), home: Home(environment: ["BATON_HOME": "/nonexistent"]))
        let null = try FileDescriptor.open("/dev/null", .writeOnly)
        let bridge = Bridge(application: application, printer: BridgePrinter(to: try ByteChannel(null)) { _ in })
        func send(_ members: String) async { await bridge.handle(.text(Array("{\(members)}".utf8)), number: 1) }
        await send(
            #""do":"becomeCurrent","activity":"note","type":"org.example.note","title":"Milk","userInfo":{"page":3}"#)
        let activity = try await bridge.activity("note")
        #expect(activity.activityType == "org.example.note" && activity.title == "Milk" && activity.isCurrent)
        await send(#""do":"update","activity":"note","addUserInfoEntries":{"line":4},"needsSave":true"#)
        #expect(activity.userInfo == ["page": 3, "line": 4] && activity.needsSave)
        await send(#""do":"resignCurrent","activity":"note""#)
        #expect(!activity.isCurrent)
        await send(#""do":"setInFront","inFront":true"#)
        #expect(application.isInFront)
        let answers: [(String, WillContinue)] = [
            ("", .systemShowsProgress), (#","showsProgress":true"#, .applicationShowsProgress),
            (#","refused":"a dialog is open""#, .refused("a dialog is open")),
        ]
        for (members, meaning) in answers {
            let asking = Task { await bridge.application(application, willContinueUserActivityWithType: "a") }
            #expect(await eventually { await bridge.questions.count == 1 })
            let number = try #require(await bridge.questions.keys.first)
            await send(#""do":"willContinue","request":\#(number)"# + members)
            #expect(await asking.value == meaning)
        }
        let saving = Task { await bridge.userActivityWillSave(activity) }
        #expect(await eventually { await bridge.questions.count == 1 })
        let number = try #require(await bridge.questions.keys.first)
        await send(#""do":"saved","request":\#(number),"userInfo":{"page":5}"#)
        await saving.value
        #expect(activity.userInfo == ["page": 5])
        await send(#""do":"deleteSavedUserActivities""#)
        #expect(!activity.isInvalidated)
        await send(#""do":"update","activity":"note","persistentIdentifier":"milk""#)
        await send(#""do":"deleteSavedUserActivities","persistentIdentifiers":["milk"]"#)
        #expect(activity.isInvalidated)
        await bridge.close()
        try null.close()
    }

    @Test("messages from the bridge look as the specification says, and all are in it")
    func events() throws {
        let description = try Application.Description(
            identifier: "org.example.editor", name: "Editor", team: "EXAMPLE",
            continues: [ContinuedActivityType("org.example.note")])
        let application = try Application(description, home: Home(environment: ["BATON_HOME": "/nonexistent"]))
        let activity = try UserActivity(activityType: "org.example.note", application: application)
        activity.title = "Milk"
        activity.userInfo = ["page": 4]
        activity.version = 2
        activity.supportsContinuationStreams = true
        try activity.setWebpageURL(URL(string: "https://example.org/"))
        func file(_ path: String) throws -> URL { try #require(URL(string: "file://" + path)) }
        let events: [BridgeEvent] = [
            .ready(description), .node(.connected), .node(.missing(reason: "no node is running here")),
            .willSave(request: 1, activity: "note"),
            .wasContinued(
                activity: "note", ContinuingDevice(name: "desktop", identifier: "MFRGG", userInfo: ["page": 4])),
            .failed(
                activity: "note",
                UserActivityError(.handoffUserInfoTooLarge, "user info: it is too large", device: "desktop")),
            .error(line: 3, BridgeProblem("there is no activity “not”")),
            .willContinue(request: 2, type: "org.example.note"),
            .continue(request: 3, activity: "baton-3", activity),
            .didFailToContinue(
                type: "org.example.note", UserActivityError(.userCancelled, "the handoff was cancelled")),
            .streamOpened(activity: "baton-3", stream: "page", isIncoming: false),
            .data(stream: "page", Data("hello".utf8)), .written(stream: "page", bytes: 5), .end(stream: "page"),
            .streamFailed(
                stream: "page", UserActivityError(.streamsUnsupported, "the activity has no continuation streams")),
            .access(try file("/home/ann/shared/a.txt"), nil),
            .access(
                try file("/etc/a.txt"), UserActivityError(.accessRefused, "the policy does not allow it")),
        ]
        #expect(Set(events.map(\.text)) == (try Self.documented("event")))
    }

    @Test("of a document whose name is not UTF-8 the program hears the bytes as well")
    func documentBytes() async throws {
        let (node, home) = try await ApplicationNode.start()
        let type = "org.example.note"
        let application = try Application(
            .init(identifier: "org.example.editor", continues: [ContinuedActivityType(type)]), home: home)
        let folder = try ScratchFolder("bridge")
        defer { folder.remove() }
        let output = folder.url.appending(path: "output")
        let printed = try FileDescriptor.open(
            FilePath(output.path), .writeOnly, options: [.create, .exclusiveCreate], permissions: .ownerReadWrite)
        let bridge = Bridge(application: application, printer: BridgePrinter(to: try ByteChannel(printed)) { _ in })
        await bridge.start()
        #expect(await eventually { await node.registrations.count == 1 })
        let path = Data("/tmp/caf".utf8) + [0xE9]
        let asking = Task {
            try await node.ask(
                .continueActivity(
                    .with {
                        $0.handoffID = Data([1])
                        $0.device = "laptop"
                        $0.payload.summary.type = type
                        $0.payload.summary.kind = .document
                        $0.document.path = path
                        $0.document.isLocal = true
                    }))
        }
        @Sendable func told() throws -> UserInfoValue? {
            try Data(contentsOf: output).split(separator: UInt8(ascii: "\n"))
                .map { try JSONParser.parse(String(decoding: $0, as: UTF8.self)) }
                .first { $0["event"] == "continue" }
        }
        #expect(try await eventually { try told() != nil })
        let event = try #require(try told())
        #expect(event["document"] == .string(String(decoding: path, as: UTF8.self)))
        #expect(event["documentBase64"] == .string(path.base64EncodedString()))
        let answer = #"{"do":"continued","request":\#(try #require(event["request"]).jsonText)}"#
        await bridge.handle(.text(Array(answer.utf8)), number: 1)
        _ = try await asking.value
        await bridge.close()
        try printed.close()
    }

    @Test("every field of an activity is read, and null takes away what there need not be")
    func fields() throws {
        let text = """
            {"do":"update","activity":"a","title":null,"requiredUserInfoKeys":["b","a"],"webpageURL":"https://a.org/",\
            "referrerURL":null,"expirationDate":"1970-01-01T00:01:00Z","targetContentIdentifier":"t",\
            "persistentIdentifier":"p","document":"/tmp/a b","version":4294967295,"isEligibleForHandoff":false,\
            "supportsContinuationStreams":true,"isExclusive":true,"userInfo":{"a":1,"b":1.0,"c":true}}
            """
        guard case .dictionary(let values) = try JSONParser.parse(text) else { return }
        var members = BridgeMembers(values.filter { !["do", "activity"].contains($0.key) }, of: "update")
        let fields = try members.fields()
        try members.requireEmpty()
        #expect(fields.needsSave == nil)
        var content = ActivityContent()
        content.title = "old"
        content.referrerURL = URL(string: "https://b.org/")
        for change in fields.changes { change(&content) }
        var expected = ActivityContent()
        expected.userInfo = ["a": 1, "b": 1.0, "c": true]
        expected.requiredUserInfoKeys = ["a", "b"]
        expected.webpageURL = URL(string: "https://a.org/")
        expected.expirationDate = Date(timeIntervalSince1970: 60)
        expected.targetContentIdentifier = "t"
        expected.persistentIdentifier = "p"
        expected.document = URL(filePath: "/tmp/a b")
        expected.version = .max
        expected.isEligibleForHandoff = false
        expected.supportsContinuationStreams = true
        expected.isExclusive = true
        #expect(content == expected)
    }

    @Test(
        "what is wrong with a line is said in a sentence",
        arguments: [
            ("{", "this is not JSON"), ("[]", "a message is an object"), (#"{"do":3}"#, "a message is an object"),
            (#"{"do":"fly"}"#, "there is no message “fly”"), (#"{"do":"update"}"#, "needs a member “activity”"),
            (#"{"do":"update","activity":""}"#, "1 to 64 bytes"),
            (#"{"do":"update","activity":"a","titel":"b"}"#, "takes no member “titel”"),
            (#"{"do":"update","activity":"a","title":3}"#, "takes a string, and not 3"),
            (#"{"do":"update","activity":"a","version":-1}"#, "0 to 4294967295, and not -1"),
            (#"{"do":"update","activity":"a","version":"1"}"#, "0 to 4294967295, and not \"1\""),
            (#"{"do":"update","activity":"a","webpageURL":"a b"}"#, "https://example.org/, and not \"a b\""),
            (#"{"do":"update","activity":"a","version":1.0}"#, "0 to 4294967295"),
            (#"{"do":"update","activity":"a","expirationDate":"soon"}"#, "ISO 8601"),
            (#"{"do":"update","activity":"a","document":"b"}"#, "an absolute path"),
            (#"{"do":"update","activity":"a","userInfo":{"b":{"$x":1}}}"#, "user info at b.$x: there is no type $x"),
            (#"{"do":"update","activity":"a","userInfo":[]}"#, "it has to be an object"),
            (#"{"do":"saved","request":-1}"#, "“request” of “saved” takes a whole number, 0 to"),
            (#"{"do":"setInFront","inFront":"yes"}"#, "true or false"),
            (#"{"do":"write","stream":"s"}"#, "needs a member “data”"),
            (#"{"do":"write","stream":"s","data":"?"}"#, "takes Base64"),
            (#"{"do":"write","stream":"s","data":"","text":""}"#, "takes no member “data” here"),
            (#"{"do":"startAccessing","url":"https://a.org/"}"#, "the URL of a file"),
            (#"{"do":"reset","stream":"s","status":0}"#, "a whole number, 1 to 255"),
            (#"{"do":"reset","stream":"s","status":256}"#, "a whole number, 1 to 255"),
        ])
    func problems(_ text: String, _ sentence: String) {
        let problem = #expect(throws: BridgeProblem.self) { try BridgeRequest(line: Array(text.utf8)) }
        #expect(problem?.description.contains(sentence) == true, "\(problem?.description ?? "")")
        #expect(problem?.description.hasSuffix(".") == false)
    }
}

@Suite("The lines of baton application")
struct BridgeLinesTests {
    @Test("lines are the same however their bytes come")
    func pieces() {
        let bytes = Array("a\n\nbcd\ne".utf8)
        for size in 1...bytes.count {
            var lines = BridgeLines()
            var taken: [String] = []
            func note(_ line: BridgeLines.Line, _ number: Int) {
                guard case .text(let text) = line else { return }
                taken.append("\(number):" + String(decoding: text, as: UTF8.self))
            }
            for start in stride(from: 0, to: bytes.count, by: size) {
                for (number, line) in lines.add(bytes[start..<min(start + size, bytes.count)]) { note(line, number) }
            }
            if let (number, line) = lines.last() { note(line, number) }
            #expect(taken == ["1:a", "2:", "3:bcd", "4:e"])
        }
    }

    @Test("a line at the bound is taken, one over it is passed over with its number, and the next counts")
    func bound() {
        var lines = BridgeLines()
        let whole = [UInt8](repeating: 0x20, count: BridgeLines.bound)
        #expect(lines.add(whole + [0x0A]).map(\.line) == [.text(whole)])
        #expect(lines.add(whole).isEmpty)
        #expect(lines.add(whole).isEmpty)
        let rest = lines.add(Array("x\ny\n".utf8))
        #expect(rest.map(\.number) == [2, 3])
        #expect(rest.map(\.line) == [.tooLong, .text([0x79])])
        #expect(lines.last() == nil)
    }
}
