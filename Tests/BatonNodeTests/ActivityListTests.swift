// SPDX-License-Identifier: Apache-2.0

import BatonDocuments
import BatonEventLoop
import BatonMessages
import BatonProtocol
import BatonTestSupport
import BatonTransport
import FoundationEssentials
import SwiftProtobuf
import Testing

@testable import BatonNode

@Suite("The list of a device")
struct ActivityListTests {
    private func title(_ title: String) -> String? {
        WireActivitySummary.with {
            $0.id = Data(0..<16)
            $0.type = "org.example.note"
            $0.title = title
        }.bounded?.title
    }

    @Test("A title is cut between two characters, at the bound")
    func titles() {
        #expect(title("") == "")
        #expect(title(String(repeating: "x", count: 1024)) == String(repeating: "x", count: 1024))
        #expect(title(String(repeating: "x", count: 1025)) == String(repeating: "x", count: 1024))
        #expect(title(String(repeating: "ü", count: 600)) == String(repeating: "ü", count: 512))
        #expect(title("x" + String(repeating: "ü", count: 512)) == "x" + String(repeating: "ü", count: 511))
        #expect(title("x" + String(repeating: "\u{301}", count: 1000)) == "")
    }

    /// An answer whose every byte is a record, and which has no end.
    private func endless(_ listening: (Connection) async throws -> Void) async throws {
        let (near, far) = try await connectedPair(on: ControlLoop.loop)
        let answering = Task {
            for await incoming in far.incoming {
                try await incoming.stream.respond(.activityList(.init()))
                while true {
                    let zeros = Buffer(copying: [UInt8](repeating: 0, count: 1 << 20))
                    _ = try await incoming.stream.write(zeros)
                }
            }
        }
        try await listening(near)
        await near.close()
        await far.close()
        _ = await answering.result
    }

    @Test("A device that lists without end is listened to for so many activities, whatever they are")
    func endlessList() async throws {
        try await endless { connection in
            let offered = try await connection.offeredActivities()
            #expect(offered.isEmpty)
        }
    }

    @Test("A reader of records without an end is ended by its cancellation")
    func cancelled() async throws {
        try await endless { connection in
            let (_, stream) = try await connection.request(.activityList(.init()))
            let reading = Task {
                for try await _ in stream.records(of: WireActivitySummary.self) {}
            }
            reading.cancel()
            await #expect(throws: HandoffError.self) { try await reading.value }
        }
    }

    /// Each of these took seconds, on the loop that serves everything: cutting it from its end looks at all of it for
    /// every character.
    @Test("The longest title of the worst kind costs next to nothing", .timeLimit(.minutes(5)))
    func flags() {
        let flags = String(repeating: "\u{1F1E9}", count: 16_000)
        for _ in 0..<64 { #expect(title(flags) == String(repeating: "\u{1F1E9}", count: 256)) }
    }

    /// A summary that fills a message.
    private func hostile() throws -> WireActivitySummary {
        var summary = WireActivitySummary.with {
            $0.id = Data(0..<16)
            $0.kind = .document
            $0.type = String(repeating: "t", count: 96)
            $0.title = String(repeating: "x", count: 1025)
            $0.documentSize = .max
            $0.since = .max
            $0.supportsContinuationStreams = true
            $0.hasWebPage_p = true
            $0.exclusive = true
            $0.version = .max
            $0.documentIdentity = Data(count: 17)
            $0.placeIdentity = Data(count: 15)
        }
        // Field 200, which no version has, of 20,000 bytes.
        try summary.merge(serializedBytes: [0xC2, 0x0C, 0xA0, 0x9C, 0x01] + [UInt8](repeating: 7, count: 20_000))
        let size = (try summary.serializedBytes() as [UInt8]).count
        // The number of the field and three bytes of length stand in front.
        summary.teamTag = Data(count: MessageLimits.size - size - 4)
        return summary
    }

    @Test("Only what a listing shows is kept of it, whatever else a device says")
    func unknown() throws {
        let before: [UInt8] = try hostile().serializedBytes()
        #expect(before.count == MessageLimits.size)
        let bounded = try #require(try hostile().bounded)
        #expect(bounded.teamTag.isEmpty && bounded.identity == .unknown)
        let after: [UInt8] = try bounded.serializedBytes()
        #expect(after.count <= 1536, "\(after.count)")
        // What is as it has to be stays.
        var honest = bounded
        honest.teamTag = Data(0..<8)
        (honest.documentIdentity, honest.placeIdentity) = (Data(0..<16), Data(16..<32))
        #expect(honest.bounded == honest)
    }

    /// A device whose summaries fill a message broke every listing once: with its name they were over the size of one.
    @Test("The list of a hostile device can be told to an application, with the lists of others")
    func hostileList() async throws {
        let (near, far) = try await connectedPair(on: ControlLoop.loop)
        let list = Array(repeating: try hostile(), count: 70)
        let serving = Task {
            for await incoming in far.incoming {
                try? await incoming.stream.respond(.activityList(.init()))
                for summary in list { try? await incoming.stream.send(record: summary) }
                await incoming.stream.finish()
            }
        }
        let offered = try await near.offeredActivities()
        #expect(offered.count == 64)
        await near.close()
        await far.close()
        await serving.value

        let (node, application) = try await connectedPair(on: ControlLoop.loop)
        let asking = Task {
            let (_, stream) = try await application.request(.activities(.init()))
            await stream.finish()
            var devices: [String] = []
            for try await listing in stream.records(of: WireActivityListing.self) { devices.append(listing.device) }
            return devices
        }
        let stream = try #require(await node.incoming.makeAsyncIterator().next()).stream
        try await stream.respond(.activities(.init()))
        let hostile = String(repeating: "h", count: 63)
        func listing(_ activity: WireActivitySummary) -> WireActivityListing {
            .with {
                $0.activity = activity
                $0.device = hostile
                $0.deviceID = String(repeating: "a", count: 64)
            }
        }
        // With no more cut than its title and its document's identity.
        var half = try #require(list.first)
        (half.title, half.identity) = (String(half.title.dropLast()), .unknown)
        let tooLong = listing(half)
        await #expect(throws: HandoffError.self) { try await stream.send(record: tooLong) }
        for activity in offered { try await stream.send(record: listing(activity)) }
        try await stream.send(record: WireActivityListing.with { $0.device = "another" })
        await stream.finish()
        #expect(try await asking.value == Array(repeating: hostile, count: 64) + ["another"])
        await node.close()
        await application.close()
    }

    @Test("An entry that is no activity is left out")
    func nothing() {
        #expect(WireActivitySummary().bounded == nil)
        #expect(WireActivitySummary.with { $0.id = Data(0..<16) }.bounded == nil)
        let long = WireActivitySummary.with {
            $0.id = Data(0..<16)
            $0.type = String(repeating: "t", count: 97)
        }
        #expect(long.bounded == nil)
    }
}
