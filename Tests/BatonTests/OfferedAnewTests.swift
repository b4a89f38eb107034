// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonMessages
import BatonTestSupport
import FoundationEssentials
import SwiftProtobuf
import Testing

@testable import Baton

/// Offering a withdrawn activity again, without waiting for the end of its first offer.
@Suite("Offering anew", .timeLimit(.minutes(5)))
struct OfferedAnewTests {
    @Test("An activity that becomes current again before the node has let it go is offered when it has")
    func offeredInTurn() async throws {
        let stage = try await Stage()
        let (first, second) = (try stage.activity(), try stage.activity("org.example.notes.other"))
        let recorder = ActivityRecorder()
        first.delegate = recorder
        first.becomeCurrent()
        _ = try await stage.offered(1)
        await stage.node.holdEnds()
        second.becomeCurrent()
        _ = try await stage.offered(2)
        first.becomeCurrent()
        try await eventually("both were withdrawn") { await stage.node.heldEnds == 2 }
        await stage.node.releaseEnds()
        try await eventually("the first is offered again") {
            await stage.node.offered.map(\.request.type) == [Stage.editing]
        }
        #expect(recorder.failures.value.isEmpty)
        await stage.application.close()
    }

    /// A stage on which nothing ends because a delegate takes its time: longer than anything here is waited for.
    private func patientStage() async throws -> Stage {
        var deadlines = ApplicationDeadlines()
        deadlines.save = .seconds(600)
        deadlines.letGo = .seconds(600)
        return try await Stage(deadlines: deadlines)
    }

    @Test("What devices were given is known by its number, each of the last 64")
    func states() {
        var state = UserActivity.State()
        // Two that Swift takes for the same text are two.
        let texts = ["caf\u{E9}", "cafe\u{301}"] + (0..<UserActivity.State.handedOverBound).map { "\($0)" }
        let numbers = texts.map { state.handOver(["text": .string($0)]) }
        #expect(Set(numbers).count == texts.count && !numbers.contains(0))
        for (number, text) in zip(numbers, texts).dropFirst(2) {
            #expect(state.handedOver[number] == ["text": .string(text)])
        }
        #expect([numbers[0], numbers[1], 0].allSatisfy { state.handedOver[$0] == nil })
        let pair = texts.prefix(2).map { state.handOver(["text": .string($0)]) }
        let given = pair.compactMap { state.handedOver[$0]?["text"] }.map { "\($0)".unicodeScalars.count }
        #expect(given.count == 2 && given[0] + 1 == given[1])
    }

    @Test("A device that is taking the activity over does not keep it from being offered again")
    func offeredAnew() async throws {
        let stage = try await patientStage()
        let (first, second) = (try stage.activity(), try stage.activity("org.example.notes.other"))
        let recorder = ActivityRecorder()
        first.delegate = recorder
        first.becomeCurrent()
        _ = try await stage.offered(1)
        let device = WireOfferEvent.Taken.with {
            $0.device = "desktop"
            $0.deviceID = "d"
        }
        try await stage.node.report(.taken(device))
        second.becomeCurrent()
        try await eventually("the second is offered") {
            await stage.node.offered.map(\.request.type) == ["org.example.notes.other"]
        }
        first.becomeCurrent()
        try await eventually("the first is offered again") {
            await stage.node.offered.map(\.request.type) == [Stage.editing]
        }
        #expect(await stage.node.offers.count == 3)
        // An event of the takeover is delivered through the offer in which it began.
        try await stage.node.report(.continued(device), of: 0)
        try await eventually("told") { recorder.continued.value.map(\.name) == ["desktop"] }
        first.invalidate()
        await stage.application.close()
    }

    @Test("A delegate that is long over a failure holds up no other activity")
    func slowFailure() async throws {
        let stage = try await patientStage()
        let (large, other) = (try stage.activity(), try stage.activity("org.example.notes.other"))
        let gate = Gate()
        let recorder = ActivityRecorder(onFailure: { await gate.pass() })
        large.delegate = recorder
        large.userInfo = ["d": .data(Data(count: UserInfo.maximumSize))]
        large.becomeCurrent()
        try await eventually("told") { recorder.failures.value.map(\.code) == [.handoffUserInfoTooLarge] }
        other.becomeCurrent()
        #expect(try await stage.offered(1).first?.request.type == "org.example.notes.other")
        gate.open()
    }

    private func failure(_ number: Int) -> WireOfferEvent.OneOf_Kind {
        .failed(HandoffError(.cancelled, "\(number)", device: "phone").failure)
    }

    @Test("A delegate that hangs over what became of a takeover delays only what it is told next")
    func hangingDelegate() async throws {
        let stage = try await patientStage()
        let (first, second) = (try stage.activity(), try stage.activity("org.example.notes.other"))
        let gate = Gate()
        let (hanging, other) = (ActivityRecorder(onFailure: { await gate.pass() }), ActivityRecorder())
        first.delegate = hanging
        second.delegate = other
        first.becomeCurrent()
        _ = try await stage.offered(1)
        for number in 1...3 { try await stage.node.report(failure(number)) }
        try await eventually("told of the first") { hanging.failures.value.count == 1 }
        second.becomeCurrent()
        try await eventually("the second is offered") {
            await stage.node.offered.map(\.request.type) == ["org.example.notes.other"]
        }
        // Events that the node sent before it released the first offer come first.
        first.becomeCurrent()
        try await eventually("the first is offered again") {
            await stage.node.offered.map(\.request.type) == [Stage.editing]
        }
        try await stage.node.report(failure(4))
        second.becomeCurrent()
        try await eventually("the second is offered again") {
            await stage.node.offered.map(\.request.type) == ["org.example.notes.other"]
        }
        try await stage.node.report(failure(5))
        try await eventually("another delegate hears at once") { other.failures.value.map(\.message) == ["5"] }
        #expect(hanging.failures.value.map(\.message) == ["1"])
        gate.open()
        try await eventually("nothing is lost, and all in order") {
            hanging.failures.value.map(\.message) == ["1", "2", "3", "4"]
        }
    }

    @Test("More than a delegate that hangs can be told waits with the node, and is told in order when it goes on")
    func manyEvents() async throws {
        let count = 3 * DelegateTurns.bound
        let stage = try await patientStage()
        let (first, second) = (try stage.activity(), try stage.activity("org.example.notes.other"))
        let gate = Gate()
        let recorder = ActivityRecorder(onFailure: { await gate.pass() })
        first.delegate = recorder
        first.becomeCurrent()
        _ = try await stage.offered(1)
        for number in 1...count { try await stage.node.report(failure(number)) }
        try await eventually("told of the first") { recorder.failures.value.count == 1 }
        // The first offer's end comes after all those events, and does not delay the second offer.
        second.becomeCurrent()
        try await eventually("the second is offered") {
            await stage.node.offered.map(\.request.type) == ["org.example.notes.other"]
        }
        first.becomeCurrent()
        gate.open()
        try await eventually("all are told") { recorder.failures.value.map(\.message) == (1...count).map(String.init) }
        try await eventually("the first is offered again") {
            await stage.node.offered.map(\.request.type) == [Stage.editing]
        }
    }

    @Test("An activity that the node does not let go keeps no other from being offered")
    func notLetGo() async throws {
        let stage = try await patientStage()
        let types = ["org.example.notes.a", "org.example.notes.b"]
        let (first, second) = (try stage.activity(types[0]), try stage.activity(types[1]))
        first.becomeCurrent()
        _ = try await stage.offered(1)
        // Such as while its application is saving for a device.
        await stage.node.holdEnds()
        second.becomeCurrent()
        _ = try await stage.offered(2)
        first.becomeCurrent()
        try await eventually("both were withdrawn") { await stage.node.heldEnds == 2 }
        let third = try stage.activity("org.example.notes.c")
        third.becomeCurrent()
        #expect(try await stage.offered(3).last?.request.type == "org.example.notes.c")
        await stage.node.releaseEnds()
        _ = try await stage.offered(1)
        first.becomeCurrent()
        try await eventually("the first is offered again") {
            await stage.node.offered.map(\.request.type) == [types[0]]
        }
    }
}
