// SPDX-License-Identifier: Apache-2.0

import Baton
import BatonMessages
import BatonTestSupport
import SwiftProtobuf
import Testing

/// Saves for the device itself and for others, which come one after the other and cost no other its time.
@Suite("Saving in turn", .timeLimit(.minutes(5)))
struct SavingInTurnTests {
    @Test("What the delegate is to hear is not lost where a device's save comes before it, and neither call overlaps")
    func overtaken() async throws {
        var deadlines = ApplicationDeadlines.short
        deadlines.save = .seconds(600)
        let stage = try await Stage(deadlines: deadlines)
        let activity = try stage.activity()
        let (own, takeover) = (Gate(), Gate())
        let (begun, ended) = (Box(0), Box<[Int]>([]))
        let recorder = ActivityRecorder(onSave: { _ in
            begun.change { $0 += 1 }
            let number = begun.value
            await (number == 1 ? own : takeover).pass()
            ended.change { $0.append(number) }
        })
        activity.delegate = recorder
        activity.needsSave = true
        activity.becomeCurrent()
        _ = try await stage.offered(1)
        try await eventually("it saves for itself") { begun.value == 1 }
        // Behind it: the end of a handoff, and one more save for itself, however often it becomes current.
        let laptop = WireOfferEvent.Taken.with { $0.deviceID = "id-1" }
        try await stage.node.report(.taken(laptop))
        try await stage.node.report(.continued(laptop))
        for _ in 1...5 {
            activity.needsSave = true
            activity.becomeCurrent()
        }
        let saving = Task { try await stage.save(activity, for: "phone") }
        try await eventually("it saves for the device") { begun.value == 2 }
        #expect(recorder.continued.value.isEmpty)
        // The cancelled call finishes, and begins nothing further.
        own.open()
        try await eventually("the first save returns") { ended.value == [1] }
        #expect(begun.value == 2)
        #expect(recorder.continued.value.isEmpty)
        takeover.open()
        _ = try await saving.value
        try await eventually("the delegate hears of the handoff") { recorder.continued.value.count == 1 }
        try await eventually("and saves what was changed meanwhile") { ended.value == [1, 2, 3] }
        activity.title = "later"
        try await eventually("the next change") { await stage.node.offered.first?.latest.title == "later" }
        #expect(begun.value == 3)
    }

    @Test("Questions that came while the delegate saved for another share the next save, which waits for no more")
    func shared() async throws {
        var deadlines = ApplicationDeadlines.short
        deadlines.save = .seconds(600)
        // All come in that time.
        deadlines.ownCall = .seconds(3)
        let stage = try await Stage(deadlines: deadlines)
        let activity = try stage.activity()
        let gate = Gate()
        let count = Box(0)
        let recorder = ActivityRecorder(onSave: { activity in
            count.change { $0 += 1 }
            let number = count.value
            if number == 1 { await gate.pass() }
            activity.title = "Take \(number)"
        })
        activity.delegate = recorder
        activity.becomeCurrent()
        _ = try await stage.offered(1)
        // As a node leaves it that gave up waiting, while the whole application was stopped.
        let left = Task { try await stage.save(activity, for: "left") }
        try await eventually("it saves") { count.value == 1 }
        let states = try await withThrowingTaskGroup(of: String.self) { group in
            for number in 1...5 { group.addTask { try await stage.save(activity, for: "\(number)").title } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(states == [String](repeating: "Take 2", count: 5))
        let error = await #expect(throws: HandoffError.self) { try await left.value }
        #expect(error?.code == .timedOut)
        gate.open()
        try await eventually("the late one is a change like any") { activity.title == "Take 1" }
        #expect(try await stage.save(activity).title == "Take 3")
    }

    @Test("Who becomes current while it saves for a device is asked once more, for itself")
    func becomesCurrent() async throws {
        let stage = try await Stage()
        let activity = try stage.activity()
        let asked = Box(0)
        let recorder = ActivityRecorder(onSave: { activity in
            asked.change { $0 += 1 }
            guard asked.value == 1 else { return }
            activity.needsSave = true
            activity.becomeCurrent()
        })
        activity.delegate = recorder
        activity.becomeCurrent()
        _ = try await stage.offered(1)
        _ = try await stage.save(activity)
        try await eventually("it saves for itself") { asked.value == 2 }
        #expect(!activity.needsSave)
    }

    @Test("A responder that is cut short and heeds it leaves nothing in what a device gets")
    func responderCutShort() async throws {
        let stage = try await Stage()
        let activity = try stage.activity()
        let gate = Gate()
        let slow = SlowResponder(gate)
        let link = activity.attach(slow)
        activity.needsSave = true
        activity.becomeCurrent()
        _ = try await stage.offered(1)
        try await eventually("it is asked for its own device") { slow.asked.value == 1 }
        let saving = Task { try await stage.save(activity) }
        try await eventually("it is asked for the other one") { slow.asked.value == 2 }
        gate.open()
        #expect(try UserInfo(try await saving.value.userInfo) == ["asked": 2])
        link.detach()
    }

    @Test("Behind a save of its own that hangs, a delegate has all of its time for a device")
    func wholeTime() async throws {
        var deadlines = ApplicationDeadlines.short
        (deadlines.save, deadlines.ownCall) = (.seconds(4), .seconds(3))
        let stage = try await Stage(deadlines: deadlines)
        let activity = try stage.activity()
        let gate = Gate()
        let asked = Box(0)
        let recorder = ActivityRecorder(onSave: { activity in
            asked.change { $0 += 1 }
            guard asked.value > 1 else { return await gate.pass() }
            // With the wait before it, longer than the limit.
            try? await Task.sleep(for: .seconds(2))
            activity.title = "now"
        })
        activity.delegate = recorder
        activity.needsSave = true
        activity.becomeCurrent()
        _ = try await stage.offered(1)
        try await eventually("it saves for itself") { recorder.saves.value == 1 }
        let began = ContinuousClock.now
        #expect(try await stage.save(activity).title == "now")
        #expect(ContinuousClock.now - began > deadlines.save)
        gate.open()
        // The last test of all: the process would end before its folder is removed.
        await stage.node.stop()
    }

    @Test("What hangs for the device itself takes nothing of another device's time", arguments: [true, false])
    func ownCall(becomesCurrent: Bool) async throws {
        #expect(ApplicationDeadlines().ownCall == .milliseconds(250))
        var deadlines = ApplicationDeadlines.short
        // Longer than any wait of this test: a save behind the hanging call would never begin.
        deadlines.save = .seconds(600)
        let stage = try await Stage(deadlines: deadlines)
        let activity = try stage.activity()
        let gate = Gate()
        let hangs = Box(becomesCurrent)
        let wasEnded = Box(false)
        let hang: @Sendable () async -> Void = {
            await gate.pass()
            wasEnded.value = Task.isCancelled
        }
        let recorder = ActivityRecorder(
            onSave: { activity in
                if hangs.value {
                    hangs.value = false
                    await hang()
                } else {
                    activity.title = "now"
                }
            }, onFailure: hang)
        activity.delegate = recorder
        activity.needsSave = becomesCurrent
        activity.becomeCurrent()
        _ = try await stage.offered(1)
        if becomesCurrent {
            try await eventually("it saves for itself") { recorder.saves.value == 1 }
        } else {
            try await stage.node.report(.failed(HandoffError(.cancelled, "it was cancelled", device: "laptop").failure))
            try await eventually("it hears of a handoff") { recorder.failures.value.count == 1 }
        }
        #expect(try await stage.save(activity, for: "phone").title == "now")
        gate.open()
        try await eventually("its task was cancelled") { wasEnded.value }
        #expect(activity.isCurrent && recorder.failures.value.count == (becomesCurrent ? 0 : 1))
    }
}

/// A slow responder that adds nothing after its task is cancelled.
private final class SlowResponder: UserActivityResponder {
    let asked = Box(0)
    private let gate: Gate

    init(_ gate: Gate) { self.gate = gate }

    func updateUserActivityState(_ activity: UserActivity) async {
        asked.change { $0 += 1 }
        let number = asked.value
        await gate.pass()
        if !Task.isCancelled { activity.addUserInfoEntries(from: ["asked": .integer(Int64(number))]) }
    }
}
