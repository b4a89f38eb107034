// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Foundation
import Testing

/// How an activity lives, as another host sees it: whose it is no more, it is off the list and cannot be taken.
@Suite(.serialized, .lab, .timeLimit(.minutes(3)))
struct LabLifeTests {
    @Test("An activity that resigns can come back; the last responder's end and a document's closing are for good")
    func leaving() async throws {
        let lab = try await HandoffLab()
        defer { lab.down() }
        _ = try await lab.startNodes()
        func list(_ titles: [String], _ what: String) async throws {
            try await eventually(what, within: .seconds(40)) {
                try await lab.run(2, "activities", "--json").events.compactMap(\.title).sorted() == titles
            }
        }
        let file = lab.folder.appendingPathComponent("Letter.txt")
        try Data("Dear all".utf8).write(to: file)
        let document = try lab.startProgram(1, [Lab.product("document-probe"), "offer", file.path])
        let shared = try lab.startProgram(1, [Lab.product("library-probe"), "share"])
        try await list(["Letter.txt", "Shared"], "both are listed")
        let ids = try await lab.run(2, "activities", "--json").events.compactMap(\.id)
        #expect(ids.count == 2)

        /// Tells a program something, and waits until it has done it.
        func tell(_ program: HostCommand, _ command: String, becomes state: String) async throws {
            let start = program.program.lines.count
            program.program.send(command)
            try await program.program.line(from: start) { $0 == "\(command): \(state)" }
        }
        try await tell(shared, "resign", becomes: "resigned")
        try await list(["Letter.txt"], "the one that resigned is gone")
        try await tell(document, "resign", becomes: "behind")
        try await list([], "the document that is not at the front is gone")
        for id in ids {
            #expect(try await lab.run(2, "accept", id, "--json").events.last?.code == "noSuchActivity")
        }
        try await tell(shared, "current", becomes: "current")
        try await tell(document, "front", becomes: "in front")
        try await list(["Letter.txt", "Shared"], "both are back")

        try await tell(shared, "leave", becomes: "current")
        try await tell(document, "close", becomes: "closed")
        try await list(["Shared"], "the document is closed; one of two responders has gone")
        try await tell(shared, "leave", becomes: "invalidated")
        try await list([], "the last responder has gone")
        // Neither comes back.
        try await tell(shared, "current", becomes: "invalidated")
        try await tell(document, "front", becomes: "closed")
        let origin = try await LabApplication(lab, on: 1, LabManifest.write(lab, "org.example.writer"))
        origin.offer("Later")
        try await list(["Later"], "only what is offered after that is listed")
        for program in [shared, document] {
            program.program.closeInput()
            #expect(try await program.end().status == 0)
        }
    }

    @Test("What the user cancels on the other device both applications hear of as cancelled; nothing else is harmed")
    func cancelling() async throws {
        let pair = try await LabPair()
        defer { pair.lab.down() }
        let (origin, reader) = (pair.origin, pair.reader)
        origin.offer("Note", #","supportsContinuationStreams":true"#)
        // Nobody continues it: there are no streams to anybody.
        origin.send(#""do":"openStream","activity":"Note","stream":"own""#)
        #expect(try await origin.event("streamFailed") { $0.stream == "own" }.code == 46002)

        // Before the origin has saved, and while the application takes the activity.
        for nth in 1...2 {
            let accept = try pair.accept()
            try await reader.agree(nth: nth)
            if nth == 1 {
                _ = try await origin.nth("willSave", nth)
            } else {
                try await origin.save(nth: nth)
                _ = try await reader.nth("continue", 1)
            }
            #expect(try await accept.end(by: SIGINT).status == 130)
            let failed = try await reader.nth("didFailToContinue", nth)
            #expect(failed.code == 3072, "\(failed)")
            let told = try await origin.nth("failed", nth)
            #expect(told.code == 3072 && told.device == "desktop", "\(told)")
            // Nobody waits for this any more.
            if nth == 1 { try await origin.save(nth: nth) }
        }
        #expect(origin.count("wasContinued") == 0)

        try await pair.list(["Note"], "it is still offered")
        let accept = try pair.accept()
        try await reader.agree(nth: 3)
        try await origin.save(nth: 3, page: 30)
        let activity = try await reader.continue(nth: 2)
        #expect(activity.userInfo?.page == 30)
        #expect(try await accept.end().status == 0)
        try await origin.event("wasContinued")
        #expect(origin.count("failed") == 2 && reader.count("didFailToContinue") == 2)
    }

    @Test("^C of a continuation stream in the terminal is the user's cancelling, and no broken way")
    func cancelledStream() async throws {
        let lab = try await HandoffLab()
        defer { lab.down() }
        _ = try await lab.startNodes()
        let origin = try await LabApplication(lab, on: 1, LabManifest.write(lab, "org.example.writer"))
        origin.offer("Note", #","supportsContinuationStreams":true"#)
        let accept = try lab.start(2, "accept", "--wait", "30", "--stream")
        try await origin.save()
        let stream = try await origin.event("streamOpened").stream
        #expect(try await accept.end(by: SIGINT).status == 130)
        let failed = try await origin.event("streamFailed")
        #expect(failed.stream == stream && failed.code == 3072, "\(failed)")
    }
}
