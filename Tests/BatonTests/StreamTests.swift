// SPDX-License-Identifier: Apache-2.0

import Baton
import BatonMessages
import BatonProtocol
import BatonTestSupport
import BatonTransport
import FoundationEssentials
import SwiftProtobuf
import Testing

@Suite("Continuation streams")
struct StreamTests {
    /// A stage on which an activity with streams is offered.
    private func makeOrigin(
        _ serve: @escaping @Sendable (ContinuationInput, ContinuationOutput) async -> Void
    ) async throws -> (stage: Stage, activity: UserActivity, recorder: ActivityRecorder) {
        let stage = try await Stage()
        let activity = try stage.activity()
        let recorder = ActivityRecorder(onStreams: serve)
        activity.delegate = recorder
        activity.supportsContinuationStreams = true
        activity.becomeCurrent()
        _ = try await stage.offered(1)
        return (stage, activity, recorder)
    }

    /// An activity that came to a stage, and the stage.
    private func continued(
        _ change: (inout WireContinueRequest) -> Void = { _ in }
    ) async throws -> (Stage, UserActivity) {
        let stage = try await Stage(continues: [ContinuedActivityType(ContinuingTests.viewing)])
        let recorder = ApplicationRecorder()
        stage.application.delegate = recorder
        _ = try await stage.node.ask(.arrival(7, change))
        return (stage, try #require(recorder.activities.value.first))
    }

    @Test("Several streams of one activity carry bytes both ways, each to its end")
    func severalStreams() async throws {
        let origin = try await makeOrigin { input, output in
            do {
                for try await bytes in input { try await output.write(bytes) }
                try await output.write("the end".utf8)
                await output.finish()
            } catch {
                Issue.record(error)
            }
        }
        defer { withExtendedLifetime(origin) {} }
        let (stage, activity) = (origin.stage, origin.activity)
        let streams = try await (0..<8).asyncMap { _ in try await stage.openStream() }
        for (index, stream) in streams.enumerated() {
            try await stream.write(Buffer(copying: Array("stream \(index), ".utf8)))
        }
        for (index, stream) in streams.enumerated() {
            await stream.finish()
            #expect(String(decoding: try await stream.readAll(), as: UTF8.self) == "stream \(index), the end")
        }
        // Saving works while a stream is open, and streams work after the activity was withdrawn.
        let late = try await stage.openStream()
        _ = try await stage.save(activity)
        activity.resignCurrent()
        _ = try await stage.offered(0)
        let later = try await stage.openStream(of: activity)
        for stream in [late, later] {
            await stream.finish()
            #expect(try await stream.readAll() == Array("the end".utf8))
        }
    }

    @Test("Who writes waits for who reads")
    func backPressure() async throws {
        let total = 8 << 20
        let written = Box(0)
        let origin = try await makeOrigin { _, output in
            do {
                for index in 0..<total / 4096 {
                    try await output.write([UInt8](repeating: UInt8(truncatingIfNeeded: index), count: 4096))
                    written.change { $0 += 4096 }
                }
                await output.finish()
            } catch {
                Issue.record(error)
            }
        }
        defer { withExtendedLifetime(origin) {} }
        let stage = origin.stage
        let stream = try await stage.openStream()
        // It stops where the node's credit and the queue are used up.
        let bound = Limits().initialStreamWindow + ContinuationOutput.queueBound + 4096
        var last = -1
        try await eventually("it stands still") {
            defer { last = written.value }
            try? await Task.sleep(for: .milliseconds(100))
            return written.value > ContinuationOutput.queueBound && written.value == last
        }
        #expect(written.value <= bound)
        let received = try await stream.readAll()
        #expect(received.count == total)
        #expect(received.enumerated().allSatisfy { $0.element == UInt8(truncatingIfNeeded: $0.offset / 4096) })
    }

    @Test("An output that finishes leaves the other direction open")
    func halfClose() async throws {
        let heard = Box(Data())
        let origin = try await makeOrigin { input, output in
            do {
                await output.finish()
                while let bytes = try await input.read() { heard.change { $0.append(bytes) } }
            } catch {
                Issue.record(error)
            }
        }
        defer { withExtendedLifetime(origin) {} }
        let stage = origin.stage
        let stream = try await stage.openStream()
        #expect(try await stream.readAll().isEmpty)
        try await stream.write(Buffer(copying: Array("still here".utf8)))
        await stream.finish()
        try await eventually("heard") { heard.value == Data("still here".utf8) }
    }

    @Test("What is cancelled, or let go unfinished, is an error on the other side and never an end")
    func cancelling() async throws {
        let origin = try await makeOrigin { input, output in
            let first = try? await input.read()
            if first == Data("cancel".utf8) { await output.cancel() }
        }
        defer { withExtendedLifetime(origin) {} }
        let stage = origin.stage
        for word in ["cancel", "let go"] {
            let stream = try await stage.openStream()
            try await stream.write(Buffer(copying: Array(word.utf8)))
            let error = await #expect(throws: TransportError.self) { try await stream.readAll() }
            #expect(error?.code == .reset(.cancelled))
        }
    }

    @Test("A program that fails tells the other side its status, behind all that it wrote")
    func failing() async throws {
        let origin = try await makeOrigin { _, output in
            try? await output.write("a part".utf8)
            await output.fail(status: 3)
        }
        defer { withExtendedLifetime(origin) {} }
        let stream = try await origin.stage.openStream()
        var read: [UInt8] = []
        let error = await #expect(throws: TransportError.self) {
            while let buffer = try await stream.read() { read += buffer.bytes }
        }
        #expect(read == Array("a part".utf8) && error?.code == .reset(.programFailed(status: 3)))
    }

    @Test("A program that failed on the other side is a typed error, behind all that it wrote")
    func failed() async throws {
        let (stage, activity) = try await continued()
        let (input, output) = try await activity.continuationStreams()
        try await eventually("the node has it") { await !stage.node.streams.isEmpty }
        let far = try #require(await stage.node.streams.last)
        try await far.write(Buffer(copying: Array("a part".utf8)))
        await far.fail(status: 3)
        var read = Data()
        let error = await #expect(throws: UserActivityError.self) { for try await bytes in input { read += bytes } }
        #expect(read == Data("a part".utf8) && error?.code == .streamFailed)
        #expect(error?.message.contains("status 3") == true)
        let written = await #expect(throws: UserActivityError.self) { try await output.write("more".utf8) }
        #expect(written?.code == .streamFailed)
    }

    @Test("The other side's cancelling, and a cut, are typed errors")
    func cut() async throws {
        let errors = Box<[UserActivityError]>([])
        let origin = try await makeOrigin { input, _ in
            do throws(UserActivityError) {
                while try await input.read() != nil {}
            } catch {
                errors.change { $0.append(error) }
            }
        }
        defer { withExtendedLifetime(origin) {} }
        let stage = origin.stage
        let first = try await stage.openStream()
        await first.reset(.cancelled)
        try await eventually("told") { errors.value.map(\.code) == [.userCancelled] }
        let second = try await stage.openStream()
        await stage.node.stop()
        try await eventually("told") { errors.value.map(\.code) == [.userCancelled, .connectionUnavailable] }
        // Let go before, it would be cancelled too.
        withExtendedLifetime(second) {}
    }

    @Test("Two tasks cannot read, or write, the same stream")
    func oneAtATime() async throws {
        let codes = Box<Set<UserActivityError.Code>>([])
        let origin = try await makeOrigin { input, output in
            await withDiscardingTaskGroup { group in
                for _ in 0..<2 {
                    group.addTask {
                        do throws(UserActivityError) {
                            while try await input.read() != nil {}
                        } catch {
                            codes.change { $0.insert(error.code) }
                        }
                    }
                }
            }
            await output.finish()
        }
        defer { withExtendedLifetime(origin) {} }
        let stage = origin.stage
        let stream = try await stage.openStream()
        try await eventually("refused") { codes.value == [.streamInUse] }
        await stream.finish()
        #expect(try await stream.readAll().isEmpty)
    }

    @Test("The node's requests for streams are refused where there are none")
    func refusedAtOrigin() async throws {
        let origin = try await makeOrigin { _, _ in }
        defer { withExtendedLifetime(origin) {} }
        let (stage, activity) = (origin.stage, origin.activity)
        activity.supportsContinuationStreams = false
        let unsupported = await #expect(throws: HandoffError.self) { try await stage.openStream() }
        #expect(unsupported?.code == .streamsUnsupported)
        activity.supportsContinuationStreams = true
        _ = try await stage.openStream()
        activity.invalidate()
        let gone = await #expect(throws: HandoffError.self) { try await stage.openStream() }
        #expect(gone?.code == .applicationGone)
    }

    @Test("So many streams of one activity are served at a time, and one more is refused")
    func bound() async throws {
        let gate = Gate()
        let origin = try await makeOrigin { _, _ in await gate.pass() }
        defer { withExtendedLifetime(origin) {} }
        let stage = origin.stage
        var streams: [BatonTransport.Stream] = []
        for _ in 0..<32 { streams.append(try await stage.openStream()) }
        let error = await #expect(throws: HandoffError.self) { try await stage.openStream() }
        #expect(error?.code == .limitExceeded)
        gate.open()
        try await eventually("one more") { (try? await stage.openStream()) != nil }
    }

    @Test("The continuing side opens as many as it wants, by the handoff")
    func continuing() async throws {
        let (stage, activity) = try await continued()
        for index in 1...3 {
            let (input, output) = try await activity.continuationStreams()
            try await output.write("hello \(index)".utf8)
            await output.finish()
            try await eventually("the node has it") { await stage.node.streams.count == index }
            let far = try #require(await stage.node.streams.last)
            #expect(String(decoding: try await far.readAll(), as: UTF8.self) == "hello \(index)")
            try await far.write(Buffer(copying: Array("back".utf8)))
            await far.finish()
            #expect(try await input.read() == Data("back".utf8))
            #expect(try await input.read() == nil)
        }
    }

    @Test("An activity that was not continued has no streams, which is said at once")
    func notContinued() async throws {
        let stage = try await Stage(isStarted: false)
        let made = try stage.activity()
        made.supportsContinuationStreams = true
        let error = await #expect(throws: UserActivityError.self) { try await made.continuationStreams() }
        #expect(error?.code == .notContinued)
        let (_, activity) = try await continued()
        activity.invalidate()
        let letGo = await #expect(throws: UserActivityError.self) { try await activity.continuationStreams() }
        #expect(letGo?.code == .notContinued)
    }

    @Test("An origin without streams, or that answers no, is a typed error")
    func unsupported() async throws {
        let (refusing, without) = try await continued { $0.payload.summary.supportsContinuationStreams = false }
        await refusing.node.refuse(HandoffError(.streamsUnsupported, "it has none", device: "laptop"))
        let error = await #expect(throws: UserActivityError.self) { try await without.continuationStreams() }
        #expect(error?.code == .streamsUnsupported && error?.device == "laptop")
        // It has some since.
        _ = try await without.continuationStreams()
        let (stage, activity) = try await continued()
        await stage.node.refuse(HandoffError(.applicationGone, "it has gone"), HandoffError(.noSuchClaim, "none"))
        let gone = await #expect(throws: UserActivityError.self) { try await activity.continuationStreams() }
        #expect(gone?.code == .handoffFailed)
        let claim = await #expect(throws: UserActivityError.self) { try await activity.continuationStreams() }
        #expect(claim?.code == .notContinued)
        await stage.node.stop()
        let cut = await #expect(throws: UserActivityError.self) { try await activity.continuationStreams() }
        #expect(cut?.code == .connectionUnavailable)
    }
}

extension Stage {
    /// Opens a stream to the application as a continuing device does.
    fileprivate func openStream(of activity: UserActivity? = nil) async throws -> BatonTransport.Stream {
        let id = Data(await node.offers.last?.request.activityID ?? Data())
        return try await node.ask(
            .continuationStream(
                .with {
                    $0.activityID = id
                    $0.device = "laptop"
                })
        ).stream
    }
}

extension BatonTransport.Stream {
    fileprivate func readAll() async throws -> [UInt8] {
        var all: [UInt8] = []
        while let buffer = try await read() { buffer.withBytes { all.append(contentsOf: $0) } }
        return all
    }
}

extension Sequence {
    fileprivate func asyncMap<Result>(_ transform: (Element) async throws -> Result) async rethrows -> [Result] {
        var results: [Result] = []
        for element in self { results.append(try await transform(element)) }
        return results
    }
}
