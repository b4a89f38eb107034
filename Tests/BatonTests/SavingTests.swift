// SPDX-License-Identifier: Apache-2.0

import Baton
import BatonMessages
import BatonTestSupport
import Foundation
import Logging
import SwiftProtobuf
import Testing

@Suite("Saving")
struct SavingTests {
    @Test("At becomeCurrent the delegate is asked once where it is needed, after becomeCurrent has returned")
    func atBecomeCurrent() async throws {
        let stage = try await Stage()
        let activity = try stage.activity()
        let hasReturned = Box(false)
        let sawReturn = Box<[Bool]>([])
        let recorder = ActivityRecorder(onSave: { activity in
            sawReturn.change { $0.append(hasReturned.value) }
            #expect(!activity.needsSave)
            activity.userInfo = ["saved": true]
        })
        activity.delegate = recorder
        activity.becomeCurrent()
        _ = try await stage.offered(1)
        activity.needsSave = true
        activity.becomeCurrent()
        // Again in the same moment: it is asked once for both.
        activity.needsSave = true
        activity.becomeCurrent()
        hasReturned.value = true
        #expect(!activity.needsSave)
        try await eventually("what was saved goes out") {
            try await stage.node.offered.first.map { try UserInfo($0.latest.userInfo) } == ["saved": true]
        }
        #expect(recorder.saves.value == 1)
        #expect(sawReturn.value == [true])
        // Not needed, not asked.
        activity.becomeCurrent()
        activity.title = "later"
        try await eventually("the next change") { await stage.node.offered.first?.latest.title == "later" }
        #expect(recorder.saves.value == 1)
    }

    @Test("When a device takes it over the delegate is asked for the state as it is now")
    func atTakeover() async throws {
        let stage = try await Stage()
        let activity = try stage.activity()
        let count = Box(Int64(0))
        let recorder = ActivityRecorder(onSave: { activity in
            count.change { $0 += 1 }
            activity.userInfo = ["count": .integer(count.value)]
            activity.title = "Take \(count.value)"
            activity.requiredUserInfoKeys = ["count"]
            activity.targetContentIdentifier = "w\(count.value)"
            try? activity.setWebpageURL(URL(string: "https://example.org/\(count.value)"))
        })
        activity.delegate = recorder
        activity.becomeCurrent()
        _ = try await stage.offered(1)
        for take in 1...3 as ClosedRange<Int64> {
            activity.needsSave = take == 2
            let state = try await stage.save(activity)
            #expect(try UserInfo(state.userInfo) == ["count": .integer(take)])
            #expect(state.title == "Take \(take)" && state.webPageURL == "https://example.org/\(take)")
            #expect(state.requiredUserInfoKeys == ["count"] && state.targetContentIdentifier == "w\(take)")
            #expect(!activity.needsSave)
        }
        #expect(recorder.saves.value == 3)
    }

    @Test("Without a delegate the state is what it was")
    func withoutDelegate() async throws {
        let stage = try await Stage()
        let activity = try stage.activity()
        activity.userInfo = ["page": 1]
        activity.becomeCurrent()
        _ = try await stage.offered(1)
        #expect(try UserInfo(try await stage.save(activity).userInfo) == ["page": 1])
    }

    @Test("A delegate that does not answer fails that handoff by time-out, and nothing else")
    func timeOut() async throws {
        #expect(ApplicationDeadlines().save == .seconds(5))
        let stage = try await Stage(deadlines: .short)
        let activity = try stage.activity()
        let gate = Gate()
        let hangs = Box(true)
        let recorder = ActivityRecorder(onSave: { activity in
            if hangs.value {
                hangs.value = false
                await gate.pass()
                activity.title = "late"
            } else {
                activity.title = "in time"
            }
        })
        activity.delegate = recorder
        activity.becomeCurrent()
        _ = try await stage.offered(1)
        let error = await #expect(throws: HandoffError.self) { try await stage.save(activity) }
        #expect(error?.code == .timedOut)
        // The first call still hangs, and holds up nothing.
        #expect(try await stage.save(activity, for: "phone").title == "in time")
        #expect(activity.isCurrent && !activity.isInvalidated)
        gate.open()
        try await eventually("the late answer changes what is offered, as any change") {
            await stage.node.offered.first?.latest.title == "late"
        }
        #expect(recorder.failures.value.isEmpty)
    }

    @Test("Responders fill an empty user info in their order, and the application has the last word")
    func responders() async throws {
        let stage = try await Stage()
        let application = ApplicationRecorder()
        stage.application.delegate = application
        let activity = try stage.activity()
        let order = Box<[String]>([])
        let (first, second) = (Responder("first", order), Responder("second", order))
        first.link.value = activity.attach(first)
        second.link.value = activity.attach(second)
        let recorder = ActivityRecorder(onSave: { $0.addUserInfoEntries(from: ["delegate": true]) })
        activity.delegate = recorder
        activity.userInfo = ["old": true]
        activity.becomeCurrent()
        _ = try await stage.offered(1)
        let state = try await stage.save(activity)
        #expect(try UserInfo(state.userInfo) == ["first": 0, "second": 1, "delegate": true, "updated": true])
        #expect(order.value == ["first", "second"])
        #expect(application.events.value == ["didUpdate delegate first second"])
        first.link.value = nil
        #expect(!activity.isInvalidated)
        #expect(try UserInfo(try await stage.save(activity).userInfo)["first"] == nil)
        second.link.value?.detach()
        #expect(activity.isInvalidated)
        _ = try await stage.offered(0)
    }

    @Test("A responder that is let go takes its activity with it")
    func responderGone() async throws {
        let stage = try await Stage(isStarted: false)
        let activity = try stage.activity()
        do {
            let responder = Responder("only", Box([]))
            responder.link.value = activity.attach(responder)
            #expect(responder.link.value?.activity === activity)
        }
        #expect(activity.isInvalidated)
    }

    @Test("Over 3 KB of user info the size is said, once")
    func large() async throws {
        let stage = try await Stage()
        let activity = try stage.activity()
        activity.becomeCurrent()
        _ = try await stage.offered(1)
        for size in [2900, 3200, 3300, 7000, 3200, 2000, 7000, 13_000] {
            activity.userInfo = ["d": .data(Data(count: size))]
            try await eventually("\(size) is out") {
                try await stage.node.offered.first.map { try UserInfo($0.latest.userInfo) } == activity.userInfo
            }
        }
        let said = stage.lines.value.filter { $0.level == .warning }.map(\.text)
        #expect(said.count == 1, "\(said)")
        for (line, size) in zip(said, [3200]) {
            let expected = UserInfo(["d": .data(Data(count: size))]).encodedSize
            #expect(line.contains("\(expected) bytes of user info"))
        }
    }

    @Test("Over 48 KB it is not offered, and the delegate is told so with 4611")
    func tooLarge() async throws {
        let stage = try await Stage()
        let activity = try stage.activity()
        let recorder = ActivityRecorder()
        activity.delegate = recorder
        activity.userInfo = ["d": .data(Data(count: UserInfo.maximumSize))]
        activity.becomeCurrent()
        try await eventually("told") { recorder.failures.value.map(\.code.rawValue) == [4611] }
        #expect(recorder.failures.value.first?.cocoaError.code == .userActivityHandoffUserInfoTooLarge)
        #expect(await stage.node.offers.isEmpty)
        activity.title = "still too large, and not told again"
        activity.userInfo = ["d": 1]
        _ = try await stage.offered(1)
        activity.userInfo = ["d": .data(Data(count: UserInfo.maximumSize))]
        _ = try await stage.offered(0)
        try await eventually("told again") { recorder.failures.value.count == 2 }
    }

    @Test("A web page goes without user info, and is not offered without an address, of which the delegate hears")
    func webPages() async throws {
        let stage = try await Stage()
        let activity = try stage.activity(UserActivity.browsingWebType)
        let recorder = ActivityRecorder()
        activity.delegate = recorder
        activity.userInfo = ["line": 12]
        activity.requiredUserInfoKeys = ["line"]
        activity.becomeCurrent()
        try await eventually("told") { recorder.failures.value.map(\.code) == [.invalid] }
        _ = try await stage.offered(0)
        try activity.setWebpageURL(URL(string: "https://example.org/"))
        let offer = try #require(try await stage.offered(1).first?.request)
        #expect(offer.webPageURL == "https://example.org/")
        #expect(offer.userInfo.pairs.isEmpty && offer.requiredUserInfoKeys.isEmpty)
        let state = try await stage.save(activity)
        #expect(state.webPageURL == "https://example.org/" && state.userInfo.pairs.isEmpty)
        #expect(activity.userInfo == ["line": 12])
    }

    @Test("What becomes too large when it is taken over fails that handoff with 4611 on both sides")
    func tooLargeAtTakeover() async throws {
        let stage = try await Stage()
        let activity = try stage.activity()
        let recorder = ActivityRecorder(onSave: { $0.userInfo = ["d": .data(Data(count: UserInfo.maximumSize))] })
        activity.delegate = recorder
        activity.becomeCurrent()
        _ = try await stage.offered(1)
        let error = await #expect(throws: HandoffError.self) { try await stage.save(activity) }
        #expect(error?.code == .userInfoTooLarge)
        try await eventually("told") { recorder.failures.value.first?.code == .handoffUserInfoTooLarge }
    }

    @Test("What is missing of the required keys is said when it is saved, and everything else crosses")
    func requiredKeys() async throws {
        let stage = try await Stage()
        let activity = try stage.activity()
        activity.userInfo = ["page": 1, "extra": 2]
        activity.requiredUserInfoKeys = ["page", "cursor", "author"]
        activity.becomeCurrent()
        _ = try await stage.offered(1)
        let state = try await stage.save(activity)
        #expect(try UserInfo(state.userInfo) == ["page": 1, "extra": 2])
        #expect(state.requiredUserInfoKeys == ["author", "cursor", "page"])
        #expect(stage.lines.value.contains { $0.level == .warning && $0.text.hasSuffix("author, cursor") })
    }

    @Test("Was-continued names the device and what it was given, once for each handoff; failures are told")
    func events() async throws {
        let stage = try await Stage()
        let activity = try stage.activity()
        let recorder = ActivityRecorder()
        activity.delegate = recorder
        activity.becomeCurrent()
        _ = try await stage.offered(1)
        let laptop = WireOfferEvent.Taken.with {
            $0.device = "laptop"
            $0.deviceID = "id-1"
        }
        activity.userInfo = ["page": 4]
        var continued = laptop
        continued.state = try await stage.save(activity).state
        activity.userInfo = ["page": 5]
        #expect(try await stage.save(activity).state != continued.state)
        try await stage.node.report(.taken(laptop))
        try await stage.node.report(.continued(continued))
        try await stage.node.report(.taken(laptop))
        try await stage.node.report(.continued(laptop))
        // Two at the same moment are two.
        for event in [.taken(laptop), .taken(laptop), .continued(laptop), .continued(laptop)]
            as [WireOfferEvent.OneOf_Kind]
        {
            try await stage.node.report(event)
        }
        try await stage.node.report(.failed(HandoffError(.cancelled, "it was cancelled", device: "phone").failure))
        try await eventually("told of the failure") { recorder.failures.value.count == 1 }
        #expect(recorder.failures.value.first?.code == .userCancelled)
        #expect(recorder.failures.value.first?.device == "phone")
        #expect(recorder.continued.value.map(\.name) == [String](repeating: "laptop", count: 4))
        #expect(recorder.continued.value.first?.identifier == "id-1")
        #expect(recorder.continued.value.map(\.userInfo) == [["page": 4], [:], [:], [:]])
    }

    @Test("An activity that ends before it is asked for its state is not asked")
    func endsBefore() async throws {
        let stage = try await Stage()
        let (ended, other) = (try stage.activity(), try stage.activity())
        let recorders = [ActivityRecorder(), ActivityRecorder()]
        (ended.delegate, other.delegate) = (recorders[0], recorders[1])
        for activity in [ended, other] {
            activity.needsSave = true
            activity.becomeCurrent()
            ended.invalidate()
        }
        // Which it would be after the one before.
        try await eventually("the other is asked") { recorders[1].saves.value == 1 }
        #expect(recorders[0].saves.value == 0)
    }

    @Test("An activity that ended is not saved")
    func ended() async throws {
        let stage = try await Stage()
        let activity = try stage.activity()
        activity.becomeCurrent()
        _ = try await stage.offered(1)
        activity.invalidate()
        let error = await #expect(throws: HandoffError.self) { try await stage.save(activity) }
        #expect(error?.code == .applicationGone)
    }
}

/// An object whose state is part of an activity.
private final class Responder: UserActivityResponder {
    let link = Box<ResponderLink?>(nil)
    private let name: String
    private let order: Box<[String]>

    init(_ name: String, _ order: Box<[String]>) {
        self.name = name
        self.order = order
    }

    func updateUserActivityState(_ activity: UserActivity) async {
        order.change { $0.append(name) }
        activity.addUserInfoEntries(from: [name: .integer(Int64(activity.userInfo.entries.count))])
    }
}
