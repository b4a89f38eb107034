// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Foundation
import Testing

/// A device that was there when the user accepted, and then says nothing.
@Suite(.serialized, .lab, .timeLimit(.minutes(5)))
struct LabSilentOriginTests {
    @Test("It is named, in time, and the command ends as for a device that cannot be reached")
    func named() async throws {
        let lab = try await HandoffLab()
        defer { lab.down() }
        let nodes = try await lab.startNodes()
        let reader = try await LabApplication(lab, on: 2, LabManifest.write(lab, "org.example.reader"))
        let origin = try await LabApplication(lab, on: 1, LabManifest.write(lab, "org.example.writer"))
        origin.offer("Note")
        // Over the connection that this leaves, the other device is still thought to be there.
        let look = try lab.start(2, "accept", "--wait", "30", "--print")
        try await origin.save()
        #expect(try await look.end().status == 0)
        let accept = try lab.start(2, "accept", "--json")
        let question = try await reader.nth("willContinue", 1)
        // The user's yes is known, and nothing was asked of the other device yet.
        nodes[0].program.signal(SIGSTOP)
        defer { nodes[0].program.signal(SIGCONT) }
        reader.send(#""do":"willContinue","request":\#(question.request ?? 0)"#)
        let accepted = try await accept.end()
        #expect(accepted.status == 68, "\(accepted)")
        let failed = try #require(accepted.events.last)
        #expect(failed.code == "timedOut" && failed.message?.contains("laptop did not send") == true, "\(failed)")
        let told = try await reader.event("didFailToContinue")
        #expect(told.code == 4610 && told.device == "laptop", "\(told)")
    }

    @Test("A cut while the activity is on its way is no cancelling: neither side's application is told so")
    func cut() async throws {
        let lab = try await HandoffLab()
        defer { lab.down() }
        _ = try await lab.startNodes()
        let reader = try await LabApplication(lab, on: 2, LabManifest.write(lab, "org.example.reader"))
        let origin = try await LabApplication(lab, on: 1, LabManifest.write(lab, "org.example.writer"))
        origin.offer("Note")
        let accept = try lab.start(2, "accept", "--wait", "30", "--json")
        try await reader.agree()
        let question = try await origin.nth("willSave", 1)
        _ = try lab.lab.command("link", "2", "down")
        origin.send(#""do":"saved","request":\#(question.request ?? 0),"userInfo":{"page":2}"#)
        #expect(try await accept.end().status != 0)
        // Late, or found to be cut before that.
        let told = try await reader.event("didFailToContinue")
        #expect([4609, 4610].contains(told.code ?? 0), "\(told)")
        _ = try lab.lab.command("link", "2", "up")
        // The other device gives its error when it is back, or it was not back in time.
        let failed = try await origin.event("failed", within: .seconds(80))
        #expect([4609, 4610].contains(failed.code ?? 0) && failed.device == "desktop", "\(failed)")
        #expect(origin.count("wasContinued") == 0)
    }

    @Test("A stopped application fails each handoff; when it goes on, old questions only delay the next save")
    func stopped() async throws {
        let lab = try await HandoffLab()
        defer { lab.down() }
        _ = try await lab.startNodes()
        let reader = try await LabApplication(lab, on: 2, LabManifest.write(lab, "org.example.reader"))
        let origin = try await LabApplication(lab, on: 1, LabManifest.write(lab, "org.example.writer"))
        origin.offer("Note")
        try await lab.watch(2).listed("Note")
        origin.command.program.signal(SIGSTOP)
        for nth in 1...2 {
            let accept = try lab.start(2, "accept", "--json")
            try await reader.agree(nth: nth)
            #expect(try await accept.end().events.last?.code == "timedOut")
            #expect(try await reader.nth("didFailToContinue", nth).code == 4610)
        }
        origin.command.program.signal(SIGCONT)
        let accept = try lab.start(2, "accept", "--json")
        try await reader.agree(nth: 3)
        // It is asked for the two that have given up first: once, or once for each.
        let answering = Task {
            for nth in 1... {
                _ = try await origin.nth("willSave", nth)
                try await Task.sleep(for: .milliseconds(1500))
                try await origin.save(nth: nth, page: 7)
            }
        }
        defer { answering.cancel() }
        #expect(try await reader.continue().userInfo?.page == 7)
        #expect(try await accept.end().status == 0)
        try await origin.event("wasContinued")
        #expect(origin.events.filter { $0.event == "failed" }.map(\.code) == [4610, 4610])
        #expect(origin.count("wasContinued") == 1)
    }

    @Test("A stream to a device that says nothing fails in time, and names it")
    func stream() async throws {
        let lab = try await HandoffLab()
        defer { lab.down() }
        let silent = try await lab.startNode(1).command
        // As every node, save that it waits 2 s in place of 10.
        let node = try lab.startProgram(2, [Lab.product("node-probe"), "--answer", "2"])
        try await node.event("ready")
        for host in 1...2 { try await lab.awaitPeers(1, on: host) }
        let reader = try await LabApplication(lab, on: 2, LabManifest.write(lab, "org.example.reader"))
        let origin = try await LabApplication(lab, on: 1, LabManifest.write(lab, "org.example.writer"))
        origin.offer("Note", #","supportsContinuationStreams":true"#)
        let accept = try lab.start(2, "accept", "--wait", "30", "--json")
        try await reader.agree()
        try await origin.save()
        let activity = try #require(try await reader.continue().activity)
        #expect(try await accept.end().status == 0)
        silent.program.signal(SIGSTOP)
        defer { silent.program.signal(SIGCONT) }
        reader.send(#""do":"openStream","activity":"\#(activity)","stream":"s""#)
        let failed = try await reader.event("streamFailed") { $0.stream == "s" }
        let (code, message) = (failed.code, failed.message)
        #expect(code == 4610)
        #expect(message?.contains("laptop did not answer within 2 s") == true)
        #expect(failed.device == "laptop")
    }
}
