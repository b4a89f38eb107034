// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Foundation
import Testing

/// Handoffs between applications of two and three hosts, through nodes, sockets, TLS and Avahi. The applications speak
/// with `baton application`, as any program does.
@Suite(.serialized, .lab, .timeLimit(.minutes(5)))
struct LabContinuationTests {

    @Test("Accept starts a stopped application, which is told first, then given the activity; streams go both ways")
    func launched() async throws {
        let lab = try await HandoffLab()
        defer { lab.down() }
        _ = try await lab.startNodes()
        let logs = (1...2).map { lab.folder.appendingPathComponent("client-\($0)").path }
        let reader = try LabManifest.write(lab, "org.example.reader", versions: "1-2")
        let registered = try await lab.run(
            2, "applications", "register", reader.path, "--command",
            "python3 \(LabApplication.client) continue \(Lab.product("baton")) org.example.reader \(logs[1])")
        #expect(registered.status == 0, "\(registered.errors)")
        let writer = try LabManifest.write(lab, "org.example.writer")
        let origin = try lab.startProgram(
            1, ["python3", LabApplication.client, "offer", Lab.product("baton"), writer.path, logs[0]])

        let accepted = try await lab.run(2, "accept", "--wait", "30", "--json")
        #expect(accepted.status == 0, "\(accepted.errors)\(origin.errors)")
        #expect(accepted.lines.last?.contains(#""application":"org.example.reader""#) == true)
        func log(_ host: Int) throws -> [BridgeLine] {
            try String(contentsOfFile: logs[host - 1], encoding: .utf8).split(separator: "\n")
                .compactMap { BridgeLine(String($0)) }
        }
        try await eventually("all bytes have come back", within: .seconds(40)) {
            try log(2).contains { $0.event == "echoed" || $0.event == "corrupted" || $0.event == "streamFailed" }
        }
        let told = try log(2).filter { $0.event != "node" }
        #expect(
            told.map(\.event) == ["ready", "willContinue", "continue", "streamOpened", "end", "echoed"], "\(told)")
        #expect(told[1].type == LabManifest.type)
        // This is the state that the origin saved when it was asked, and not the one that it offered.
        #expect(told[2].userInfo?.page == 2)
        #expect(told[2].title == "Python's note" && told[2].version == 1)
        let asked = try log(1).map(\.event)
        #expect(asked.firstIndex(of: "willSave").map { $0 < asked.firstIndex(of: "wasContinued") ?? 0 } == true)
        #expect(try log(1).first { $0.event == "wasContinued" }?.device == "desktop")
        try await eventually("the origin has read to the end") { try log(1).contains { $0.event == "end" } }
    }

    @Test("A stopped origin application fails with 4608, and its activity is off the other device's list in 2 s")
    func stoppedOrigin() async throws {
        let lab = try await HandoffLab()
        defer { lab.down() }
        _ = try await lab.startNodes()
        let writer = try LabManifest.write(lab, "org.example.writer")
        let reader = try await LabApplication(lab, on: 2, LabManifest.write(lab, "org.example.reader"))
        let origin = try await LabApplication(lab, on: 1, writer)
        let watch = try lab.watch(2)
        origin.offer("First")
        try await watch.listed("First")
        let accept = try lab.start(2, "accept", "--json")
        try await reader.event("willContinue")

        let killed = Date()
        try await origin.kill()
        let removed = try await watch.event("removed") { $0.title == "First" }
        #expect(try #require(removed.moment).timeIntervalSince(killed) < 2)

        try await reader.agree()
        let failed = try await accept.end()
        #expect(failed.status == 66, "\(failed.errors)")
        #expect(failed.events.last?.code == "noSuchActivity")
        #expect(try await reader.event("didFailToContinue").code == 4608)
        #expect(reader.count("continue") == 0)

        // It ends while it is asked for its state.
        let second = try await LabApplication(lab, on: 1, writer)
        second.offer("Second")
        try await watch.listed("Second")
        let again = try lab.start(2, "accept", "--json")
        try await reader.agree(nth: 2)
        try await second.event("willSave")
        try await second.kill()
        let failedAgain = try await again.end()
        #expect(failedAgain.events.last?.code == "applicationGone", "\(failedAgain.errors)")
        try await eventually("the application is told") { reader.count("didFailToContinue") == 2 }
        #expect(reader.events.last { $0.event == "didFailToContinue" }?.code == 4608)
    }

    @Test("Two devices accept at once: both continue, and the origin is told which did, and with which state")
    func two() async throws {
        let lab = try await HandoffLab(["laptop", "desktop", "tablet"])
        defer { lab.down() }
        _ = try await lab.startNodes()
        var readers: [LabApplication] = []
        for host in 2...3 {
            readers.append(try await LabApplication(lab, on: host, LabManifest.write(lab, "org.example.reader")))
        }
        let origin = try await LabApplication(lab, on: 1, LabManifest.write(lab, "org.example.writer"))
        origin.offer("Shared")
        let accepts = try [2, 3].map { try lab.start($0, "accept", "--wait", "30", "--json") }
        for reader in readers { try await reader.agree() }
        // Calls of one activity's delegate come one after the other.
        try await origin.save(nth: 1, page: 10)
        try await origin.save(nth: 2, page: 11)
        var pages: Set<Int> = []
        for reader in readers { pages.insert(try await reader.continue().userInfo?.page ?? 0) }
        #expect(pages == [10, 11])
        for accept in accepts {
            let end = try await accept.end()
            #expect(end.status == 0, "\(end.errors)")
        }
        try await eventually("both have continued") { origin.count("wasContinued") == 2 }
        for (reader, device) in zip(readers, ["desktop", "tablet"]) {
            let continued = try await origin.event("wasContinued") { $0.device == device }
            #expect(try await continued.userInfo?.page == reader.continue().userInfo?.page)
        }
    }

    @Test("A save that hangs fails the device that it is for, and none that has accepted at the same moment")
    func hangingSave() async throws {
        let names = ["desktop", "tablet", "phone"]
        let lab = try await HandoffLab(["laptop"] + names)
        defer { lab.down() }
        _ = try await lab.startNodes()
        var readers: [LabApplication] = []
        for host in 2...4 {
            readers.append(try await LabApplication(lab, on: host, LabManifest.write(lab, "org.example.reader")))
        }
        let origin = try await LabApplication(lab, on: 1, LabManifest.write(lab, "org.example.writer"))
        origin.offer("Shared")
        let accepts = try (2...4).map { try lab.start($0, "accept", "--wait", "30", "--json") }
        for reader in readers { _ = try await reader.nth("willContinue", 1) }
        for reader in readers { try await reader.agree() }
        // The first question is never answered, and the second one comes when its time is over, for both others.
        try await origin.save(nth: 2, page: 7)
        let failed = try await origin.event("failed") { $0.code == 4610 }
        let late = try #require(names.firstIndex(of: failed.device ?? ""))
        #expect(try await accepts[late].end().events.last?.code == "timedOut")
        #expect(try await readers[late].event("didFailToContinue").code == 4610)
        for served in 0..<3 where served != late {
            #expect(try await readers[served].continue().userInfo?.page == 7)
            #expect(try await accepts[served].end().status == 0)
            try await origin.event("wasContinued") { $0.device == names[served] }
        }
        #expect(origin.count("failed") == 1 && origin.count("willSave") == 2)
    }

    @Test("Handoffs that are cancelled while the application saves are told as that, and it is not asked for them")
    func cancelledSaves() async throws {
        let pair = try await LabPair()
        defer { pair.lab.down() }
        let (origin, reader) = (pair.origin, pair.reader)
        origin.offer("Note")
        // The first question stands for all of them.
        for nth in 1...4 {
            let accept = try pair.accept()
            try await reader.agree(nth: nth)
            try await origin.event("willSave")
            #expect(try await accept.end(by: SIGINT).status == 130)
            #expect(try await reader.nth("didFailToContinue", nth).code == 3072)
        }
        // One, unless the machine was so busy that its 5 s went by before the four were over.
        let asked = origin.count("willSave")
        #expect(asked < 4)
        let accept = try pair.accept()
        try await reader.agree(nth: 5)
        try await origin.save(nth: asked + 1, page: 5)
        #expect(try await reader.continue().userInfo?.page == 5)
        let accepted = try await accept.end()
        #expect(accepted.status == 0, "\(accepted)")
        try await origin.event("wasContinued")
        // If a takeover was gone before it asked, nobody is told of it.
        let failures = origin.events.filter { $0.event == "failed" }
        #expect((1...4).contains(failures.count) && failures.allSatisfy { $0.code == 3072 }, "\(failures)")
        #expect(origin.count("willSave") == asked + 1)
    }

    @Test("An application that shows the waiting is obeyed: the command says nothing of it")
    func shown() async throws {
        let lab = try await HandoffLab()
        defer { lab.down() }
        _ = try await lab.startNodes()
        let reader = try await LabApplication(lab, on: 2, LabManifest.write(lab, "org.example.reader"))
        let origin = try await LabApplication(lab, on: 1, LabManifest.write(lab, "org.example.writer"))
        origin.offer("Note")
        var nth = 0
        for (isShown, isJSON) in [(false, false), (true, false), (false, true), (true, true)] {
            nth += 1
            let accept = try lab.start(2, ["accept", "--wait", "30"] + (isJSON ? ["--json"] : []))
            try await reader.agree(nth: nth, #","showsProgress":\#(isShown)"#)
            try await origin.save(nth: nth)
            try await reader.continue(nth: nth)
            let accepted = try await accept.end()
            #expect(accepted.status == 0, "\(accepted)")
            if isJSON {
                let told = accepted.lines.filter { $0.contains(#""event":"willContinue""#) }
                #expect(told.count == 1 && told[0].contains(#""shown":\#(isShown)"#), "\(accepted.lines)")
            } else {
                #expect(accepted.errors.contains("continuing Note from laptop in") == !isShown, "\(accepted.errors)")
                #expect(accepted.errors.contains("has it"), "\(accepted.errors)")
            }
        }
    }

    @Test("A continuing device that is lost: its application hears at once, and the origin's when the claim has lapsed")
    func lostNode() async throws {
        let lab = try await HandoffLab()
        defer { lab.down() }
        let nodes = try await lab.startNodes()
        let reader = try await LabApplication(lab, on: 2, LabManifest.write(lab, "org.example.reader"))
        let origin = try await LabApplication(lab, on: 1, LabManifest.write(lab, "org.example.writer"))
        origin.offer("Note")
        // Agreed, and nothing there yet.
        var accept = try lab.start(2, "accept", "--wait", "30")
        try await reader.agree()
        try await origin.event("willSave")
        try await nodes[1].end(by: SIGKILL)
        #expect(try await accept.end().status != 0)
        #expect(try await reader.event("didFailToContinue").code == 4609)
        try await origin.save(nth: 1)
        let unsent = try await origin.nth("failed", 1)
        #expect(unsent.code == 4609 && unsent.device == "desktop", "\(unsent)")

        // There, and not continued.
        let node = try await lab.startNode(2).command
        try await lab.awaitPeers(1, on: 2)
        try await eventually("the application has its node again") {
            reader.events.last { $0.event == "node" }?.state == "connected"
        }
        accept = try lab.start(2, "accept", "--wait", "30")
        try await reader.agree(nth: 2)
        try await origin.save(nth: 2)
        try await reader.event("continue")
        try await node.end(by: SIGKILL)
        #expect(try await accept.end().status != 0)
        // It has the activity, which is all that follows.
        try await reader.continue(nth: 1)
        var count = 0
        let lost = try await origin.event("failed", within: .seconds(80)) { _ in
            count += 1
            return count == 2
        }
        #expect(lost.code == 4609 && lost.device == "desktop", "\(lost)")
        #expect(lost.message?.contains("was lost before") == true, "\(lost)")
        #expect(origin.count("wasContinued") == 0)
        #expect(reader.count("didFailToContinue") == 1)
    }

    @Test("An application that crashes: before it takes the activity, while it does, after, and at the origin's end")
    func crashes() async throws {
        let lab = try await HandoffLab()
        defer { lab.down() }
        _ = try await lab.startNodes()
        let manifest = try LabManifest.write(lab, "org.example.reader")
        let origin = try await LabApplication(lab, on: 1, LabManifest.write(lab, "org.example.writer"))
        origin.offer("Note", #","supportsContinuationStreams":true"#)
        try await lab.watch(2).listed("Note")

        var reader = try await LabApplication(lab, on: 2, manifest)
        var accept = try lab.start(2, "accept", "--json")
        try await reader.event("willContinue")
        try await reader.kill()
        #expect(try await accept.end().events.last?.code == "applicationGone")
        #expect(origin.count("willSave") == 0)

        reader = try await LabApplication(lab, on: 2, manifest)
        accept = try lab.start(2, "accept", "--json")
        try await reader.agree()
        try await origin.save(nth: 1)
        try await reader.event("continue")
        try await reader.kill()
        #expect(try await accept.end().events.last?.code == "applicationGone")
        let told = try await origin.event("failed")
        // It failed: nobody cancelled.
        #expect(told.device == "desktop" && told.code == 4608, "\(told)")
        #expect(origin.count("wasContinued") == 0)

        reader = try await LabApplication(lab, on: 2, manifest)
        accept = try lab.start(2, "accept", "--json")
        try await reader.agree()
        try await origin.save(nth: 2)
        try await reader.continue()
        #expect(try await accept.end().status == 0)
        try await origin.event("wasContinued")
        try await reader.kill()

        // The activity is still there, and the next one has it whole.
        reader = try await LabApplication(lab, on: 2, manifest)
        accept = try lab.start(2, "accept", "--json")
        try await reader.agree()
        try await origin.save(nth: 3, page: 33)
        let activity = try await reader.continue()
        #expect(activity.userInfo?.page == 33)
        #expect(try await accept.end().status == 0)
        reader.send(#""do":"openStream","activity":"\#(activity.activity ?? "")","stream":"s""#)
        let incoming = try await origin.event("streamOpened").stream ?? ""
        origin.send(#""do":"write","stream":"\#(incoming)","text":"half""#)
        #expect(try await reader.event("data").data == Data("half".utf8).base64EncodedString())
        try await origin.kill()
        let failed = try await reader.event("streamFailed")
        // Nobody cancelled.
        #expect(failed.stream == "s" && failed.code == 4609, "\(failed)")
        // The application itself goes on.
        reader.send(#""do":"invalidate","activity":"\#(activity.activity ?? "")""#)
        reader.send(#""do":"openStream","activity":"\#(activity.activity ?? "")","stream":"t""#)
        #expect(try await reader.event("error").message?.contains("there is no activity") == true)
    }

    @Test("Who cancels is obeyed; an origin that does not save in time, who declines and who does not handle fail it")
    func failures() async throws {
        let lab = try await HandoffLab()
        defer { lab.down() }
        _ = try await lab.startNodes()
        let reader = try await LabApplication(lab, on: 2, LabManifest.write(lab, "org.example.reader"))
        let origin = try await LabApplication(lab, on: 1, LabManifest.write(lab, "org.example.writer"))
        origin.offer("Note")
        let accept = try lab.start(2, "accept", "--wait", "30")
        try await reader.agree()
        try await origin.event("willSave")
        let cancelled = try await accept.end(by: SIGINT)
        #expect(cancelled.status == 130, "\(cancelled.errors)")
        #expect(try await reader.nth("didFailToContinue", 1).code == 3072)

        // Before the application has answered: it hears when it has.
        let early = try lab.start(2, "accept")
        let question = try await reader.nth("willContinue", 2)
        #expect(try await early.end(by: SIGINT).status == 130)
        reader.send(#""do":"willContinue","request":\#(question.request ?? 0)"#)
        #expect(try await reader.nth("didFailToContinue", 2).code == 3072)

        let slow = try lab.start(2, "accept", "--json")
        try await reader.agree(nth: 3)
        let failed = try await slow.end()
        #expect(failed.events.last?.code == "timedOut", "\(failed.lines)")
        #expect(try await reader.nth("didFailToContinue", 3).code == 4610)
        #expect(try await origin.event("failed") { $0.code == 4610 }.device == "desktop")
        // Too late, and nothing else is harmed by it.
        try await origin.save(nth: 2)
        #expect(try await origin.event("error").message?.contains("waits") == true)

        let declined = try lab.start(2, "accept")
        try await reader.agree(nth: 4, #","refused":"a dialog is open""#)
        let end = try await declined.end()
        #expect(end.status == 77 && end.errors.contains("a dialog is open"), "\(end.errors)")
        #expect(origin.count("willSave") == 2 && reader.count("didFailToContinue") == 3)

        let unhandled = try lab.start(2, "accept", "--json")
        try await reader.agree(nth: 5)
        try await origin.save(nth: 3)
        let activity = try await reader.nth("continue", 1)
        reader.send(#""do":"continued","request":\#(activity.request ?? 0),"handled":false"#)
        let unhandledEnd = try await unhandled.end()
        #expect(unhandledEnd.events.last?.code == "notHandled", "\(unhandledEnd)")
        #expect(try await reader.nth("didFailToContinue", 4).code == 46007)
        try await origin.event("failed") { $0.code == 46007 && $0.device == "desktop" }
        #expect(origin.count("wasContinued") == 0 && reader.count("error") == 0)
        #expect(try await lab.run(2, "activities", "--json").events.map(\.title) == ["Note"])
    }

    @Test("Streams of the bridge wait for who reads slowly, in both directions, and are as many as the bound allows")
    func backPressure() async throws {
        let lab = try await HandoffLab()
        defer { lab.down() }
        _ = try await lab.startNodes()
        let reader = try await LabApplication(lab, on: 2, LabManifest.write(lab, "org.example.reader"))
        let origin = try await LabApplication(lab, on: 1, LabManifest.write(lab, "org.example.writer"))
        origin.offer("Note", #","supportsContinuationStreams":true"#)
        let accept = try lab.start(2, "accept", "--wait", "30")
        try await reader.agree()
        try await origin.save()
        let activity = try await reader.continue().activity ?? ""
        #expect(try await accept.end().status == 0)

        reader.send(#""do":"openStream","activity":"\#(activity)","stream":"s""#)
        let incoming = try await origin.event("streamOpened").stream ?? ""
        let text = String(repeating: "x", count: 48 << 10)
        for number in 1...8 {
            origin.send(#""do":"write","stream":"\#(incoming)","text":"\#(text)""#)
            _ = try await origin.nth("written", number)
        }
        _ = try await reader.nth("data", 4)
        // Anything else that could come has come before the answer to this.
        reader.send("nonsense")
        try await reader.event("error") { $0.message?.contains("not JSON") == true }
        #expect(reader.count("data") == 4)
        reader.send(#""do":"ack","stream":"s""#)
        _ = try await reader.nth("data", 5)

        // The origin does not read: what is written beyond the window aborts the stream.
        var sent = 0
        while reader.count("streamFailed") == 0, sent < 200 {
            reader.send(#""do":"write","stream":"s","text":"\#(text)""#)
            sent += 1
        }
        #expect(try await reader.event("streamFailed").code == 46001)
        #expect(sent > 4)
        // A side that does not read hears of the abort when it reads on.
        try await eventually("the origin hears of it") {
            origin.send(#""do":"ack","stream":"\#(incoming)""#)
            return origin.count("streamFailed") == 1
        }

        for number in 0..<32 {
            reader.send(#""do":"openStream","activity":"\#(activity)","stream":"\#(number)""#)
            try await reader.event("streamOpened") { $0.stream == "\(number)" }
        }
        reader.send(#""do":"openStream","activity":"\#(activity)","stream":"more""#)
        try await reader.event("error") { $0.message?.contains("32 streams") == true }
        reader.send(#""do":"reset","stream":"0""#)
        reader.send(#""do":"ack","stream":"0""#)
        reader.send(#""do":"openStream","activity":"\#(activity)","stream":"more""#)
        try await eventually("the origin has let the aborted one go, and takes another") {
            if reader.events.contains(where: { $0.event == "streamOpened" && $0.stream == "more" }) { return true }
            if reader.events.last?.event == "streamFailed" {
                reader.send(#""do":"openStream","activity":"\#(activity)","stream":"more""#)
            }
            return false
        }
    }
}
