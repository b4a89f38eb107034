// SPDX-License-Identifier: Apache-2.0

import BatonMessages
import BatonTestSupport
import BatonTransport
import Foundation
import Testing

@testable import BatonNode

/// Programs of one user try to harm the connection that they share with all others.
@Suite(.serialized, .lab, .timeLimit(.minutes(3)))
struct LabStreamFloodTests {
    @Test("Three programs that open and abort streams as fast as they can end nobody's stream, document or connection")
    func abortedStreams() async throws {
        let seed: UInt64 = 150
        let lab = try await HandoffLab()
        defer { lab.down() }
        _ = try await lab.startNodes()
        let origin = try await LabApplication(lab, on: 1, LabManifest.write(lab, "org.example.writer"))
        let quietOrigin = try await LabApplication(lab, on: 1, LabManifest.write(lab, "org.example.quiet-writer"))
        origin.offer("Flooded", #","supportsContinuationStreams":true"#)
        quietOrigin.offer("Quiet", #","supportsContinuationStreams":true"#)
        let document = try lab.document("slow.bin", bytes: 12_000_000, seed: seed)
        let offering = try await lab.offer(1, document.path)
        var ids: [String: String] = [:]
        try await eventually("all three are listed", within: .seconds(40)) {
            for event in try await lab.run(2, "activities", "--json").events { ids[event.title ?? ""] = event.id }
            return ids.count == 3
        }

        let quiet = try await reader("org.example.quiet", of: ids["Quiet"], from: quietOrigin, lab)
        quiet.application.send(#""do":"openStream","activity":"\#(quiet.activity)","stream":"idle""#)
        try await quiet.application.event("streamOpened")
        let idle = try await quietOrigin.event("streamOpened").stream ?? ""

        var flooders: [(application: LabApplication, activity: String)] = []
        for number in 1...3 {
            flooders.append(
                try await reader("org.example.flood\(number)", of: ids["Flooded"], from: origin, lab, nth: number))
        }
        // A document that takes about as long as the flood.
        try lab.lab.command("rate", "1", "20")
        let folder = try lab.destination("inbox")
        let accepting = try lab.start(2, "accept", offering.id, "--json", "--to", folder.path)

        try await withThrowingTaskGroup { group in
            for (application, activity) in flooders {
                group.addTask { try await flood(application, activity, times: 60) }
            }
            try await group.waitForAll()
        }

        #expect(try await accepting.end().status == 0)
        let arrived = folder.appendingPathComponent("slow.bin").path
        #expect(FileManager.default.contentsEqual(atPath: arrived, andPath: document.path), "seed \(seed)")
        quietOrigin.send(#""do":"write","stream":"\#(idle)","text":"still here""#)
        #expect(
            try await quiet.application.event("data").data == Data("still here".utf8).base64EncodedString())
        let everybody = [origin, quietOrigin, quiet.application] + flooders.map(\.application)
        for application in everybody {
            #expect(application.count("node") == 1, "it was never without its node: \(application.command.errors)")
        }
        #expect(quiet.application.count("streamFailed") == 0 && quietOrigin.count("streamFailed") == 0)
        // And they can go on when their streams have left.
        var attempt = 0
        try await eventually("a program that aborted many opens another") {
            attempt += 1
            let (application, activity) = flooders[0]
            application.send(#""do":"openStream","activity":"\#(activity)","stream":"last-\#(attempt)""#)
            return try await application.event("streamOpened", or: "streamFailed") { [attempt] in
                $0.stream == "last-\(attempt)"
            }.event == "streamOpened"
        }
    }

    /// An application on the second host that continues an activity.
    private func reader(
        _ identifier: String, of id: String?, from origin: LabApplication, _ lab: HandoffLab, nth: Int = 1
    ) async throws -> (application: LabApplication, activity: String) {
        let application = try await LabApplication(lab, on: 2, LabManifest.write(lab, identifier))
        let accept = try lab.start(2, "accept", try #require(id), "--json", "--application", identifier)
        try await application.agree()
        try await origin.save(nth: nth)
        let activity = try await application.continue()
        #expect(try await accept.end().status == 0)
        return (application, try #require(activity.activity))
    }

    /// Opens a stream and aborts it, again and again. Without a place there is a typed failure, and another attempt.
    private func flood(_ application: LabApplication, _ activity: String, times: Int) async throws {
        for number in 0..<times {
            application.send(#""do":"openStream","activity":"\#(activity)","stream":"\#(number)""#)
            let answer = try await application.event("streamOpened", or: "streamFailed") { $0.stream == "\(number)" }
            if answer.event == "streamOpened" { application.send(#""do":"reset","stream":"\#(number)""#) }
        }
    }
}

/// The places of continuation streams.
@Suite @ControlLoop struct ContinuationStreamPlacesTests {
    @Test("At each bound one more is refused with limitExceeded, has taken nothing, and comes in when one has left")
    func bounds() async throws {
        let table = HandoffTable()
        let (bound, ofOne) = (HandoffTable.streamBound, HandoffTable.streamBoundOfApplication)
        #expect(3 * ofOne == bound)
        var applications: [Connection] = []
        for _ in 0..<2 {
            let (near, far) = try await connectedPair(on: ControlLoop.loop)
            applications += [near, far]
        }
        func enter(_ application: Int) -> (UInt64?, HandoffError.Code?) {
            do throws(HandoffError) {
                return (try table.enterStream(of: applications[application]), nil)
            } catch {
                return (nil, error.code)
            }
        }
        var numbers: [UInt64] = []
        for application in 0..<3 {
            for _ in 0..<ofOne { numbers.append(try #require(enter(application).0)) }
            #expect(enter(application).1 == .limitExceeded)
        }
        #expect(enter(3).1 == .limitExceeded)
        table.leaveStream(numbers[0])
        #expect(enter(3).0 != nil)
        #expect(enter(0).1 == .limitExceeded)
        for connection in applications { await connection.close() }
    }
}
