// SPDX-License-Identifier: Apache-2.0

import Baton
import BatonMessages
import BatonTestSupport
import BatonTransport
import FoundationEssentials
import SwiftProtobuf
import Testing

@Suite("Continuing")
struct ContinuingTests {
    static let viewing = "org.example.notes.viewing"

    private func stage(
        deadlines: ApplicationDeadlines = .init(), versions: ClosedRange<UInt32>? = nil
    ) async throws -> Stage {
        try await Stage(
            continues: [ContinuedActivityType(Self.viewing, versions: versions)], deadlines: deadlines)
    }

    @Test("It registers with what it continues, and says when it comes to the front")
    func registration() async throws {
        let stage = try await stage(versions: 1...3)
        let said = try #require(await stage.node.registrations.first)
        #expect(said.identifier == "org.example.notes" && said.name == "Notes" && said.team == "T1" && !said.inFront)
        #expect(said.types.map(\.type) == [Self.viewing])
        #expect(said.types.first?.oldestVersion == 1 && said.types.first?.newestVersion == 3)
        stage.application.isInFront = true
        try await eventually("said") { await stage.node.registrations.last?.inFront == true }
        #expect(await stage.node.departures == 0)
        await stage.application.close()
        try await eventually("gone") { await stage.node.departures == 1 }
    }

    @Test(
        "The answer to will-continue says who shows the waiting",
        arguments: [(WillContinue.applicationShowsProgress, true), (.systemShowsProgress, false)])
    func willContinue(response: WillContinue, shows: Bool) async throws {
        let stage = try await stage()
        let recorder = ApplicationRecorder(onWillContinue: { response })
        stage.application.delegate = recorder
        let (answer, _) = try await stage.node.ask(.announcement(1))
        #expect(answer == .willContinue(.with { $0.showsProgress = shows }))
        #expect(recorder.events.value == ["willContinue \(Self.viewing)"])
    }

    @Test("The activity comes with all it has, and the objects are restored in their order")
    func continues() async throws {
        let stage = try await stage()
        let (first, second) = (Window(), Window())
        let order = Box<[String]>([])
        first.onRestore.value = { order.change { $0.append("first") } }
        second.onRestore.value = { order.change { $0.append("second") } }
        let recorder = ApplicationRecorder(onContinue: { _, restore in
            await restore([first, second])
            return true
        })
        stage.application.delegate = recorder
        _ = try await stage.node.ask(.announcement(1))
        let (answer, stream) = try await stage.node.ask(.arrival(1))
        #expect(answer == .continueActivity(.init()))
        #expect(recorder.events.value == ["willContinue \(Self.viewing)", "continue \(Self.viewing)"])
        #expect(order.value == ["first", "second"])
        let activity = try #require(recorder.activities.value.first)
        #expect(activity.userInfo == ["page": 4] && activity.title == "List" && activity.version == 2)
        #expect(activity.webpageURL == URL(string: "https://example.org/4"))
        #expect(!activity.isCurrent)
        // The claim is held for as long as the activity is; this round trip would let its end arrive.
        let hasEnded = Box(false)
        let ending = Task {
            while try await stream.read() != nil {}
            hasEnded.value = true
        }
        _ = try await stage.node.ask(.announcement(2))
        #expect(!hasEnded.value)
        activity.invalidate()
        try await ending.value
    }

    @Test("An activity that nobody keeps lets its claim go after the answer")
    func unkept() async throws {
        let stage = try await stage()
        let recorder = ApplicationRecorder()
        stage.application.delegate = recorder
        let (answer, stream) = try await stage.node.ask(.arrival(1))
        #expect(answer == .continueActivity(.init()))
        weak let activity = recorder.activities.value.first
        recorder.activities.value = []
        while try await stream.read() != nil {}
        try await eventually("released") { activity == nil }
    }

    @Test("An activity that is invalidated while it is continued lets its claim go after the answer as well")
    func invalidatedAtOnce() async throws {
        let stage = try await stage()
        let recorder = ApplicationRecorder(onContinue: { activity, _ in
            activity.invalidate()
            return true
        })
        stage.application.delegate = recorder
        let (answer, stream) = try await stage.node.ask(.arrival(1))
        #expect(answer == .continueActivity(.init()))
        while try await stream.read() != nil {}
    }

    @Test("Of the objects, those that show the target are restored, and all where none does")
    func target() async throws {
        let stage = try await stage()
        let windows = [Window("a"), Window("b"), Window("b"), Window()]
        let recorder = ApplicationRecorder(onContinue: { _, restore in
            await restore(windows)
            return true
        })
        stage.application.delegate = recorder
        let cases = [("b", [0, 1, 1, 0]), ("c", [1, 2, 2, 1]), ("", [2, 3, 3, 2])]
        for (handoff, (target, expected)) in zip([1, 2, 3] as [UInt8], cases) {
            _ = try await stage.node.ask(.arrival(handoff) { $0.payload.targetContentIdentifier = target })
            #expect(windows.map(\.restored.value.count) == expected, "target \(target)")
        }
    }

    @Test("An application that refused is never sent the activity")
    func refusal() async throws {
        let stage = try await stage()
        let recorder = ApplicationRecorder(onWillContinue: { .refused("busy") })
        stage.application.delegate = recorder
        let refused = await #expect(throws: HandoffError.self) { try await stage.node.ask(.announcement(1)) }
        #expect(refused?.code == .refused && refused?.message == "Notes declined: busy")
        await #expect(throws: HandoffError.self) { try await stage.node.ask(.arrival(1)) }
        _ = try await stage.node.ask(.failure(1, .connectionLost))
        #expect(recorder.events.value == ["willContinue \(Self.viewing)"])
    }

    @Test("A web page is taken undeclared, since the node has asked its host; no other type is")
    func webPage() async throws {
        let stage = try await stage()
        let recorder = ApplicationRecorder()
        stage.application.delegate = recorder
        _ = try await stage.node.ask(.announcement(1) { $0.type = UserActivity.browsingWebType })
        #expect(recorder.events.value == ["willContinue \(UserActivity.browsingWebType)"])
        let error = await #expect(throws: HandoffError.self) {
            try await stage.node.ask(.announcement(2) { $0.type = "org.example.else" })
        }
        #expect(error?.code == .notHandled)
    }

    @Test("Did-fail is told once, and cancelling by the user is its own error")
    func didFail() async throws {
        let stage = try await stage()
        let recorder = ApplicationRecorder()
        stage.application.delegate = recorder
        _ = try await stage.node.ask(.announcement(1))
        _ = try await stage.node.ask(.failure(1, .cancelled))
        _ = try await stage.node.ask(.failure(1, .connectionLost))
        try await eventually("told of the first") { recorder.failures.value.count == 1 }
        _ = try await stage.node.ask(.announcement(2))
        _ = try await stage.node.ask(.failure(2, .connectionLost))
        try await eventually("told") { recorder.failures.value.count == 2 }
        #expect(recorder.failures.value.map(\.code) == [.userCancelled, .connectionUnavailable])
        #expect(recorder.failures.value.first?.code.rawValue == 3072)
        #expect(recorder.failures.value.first?.device == "laptop")
    }

    @Test("What fails while the application is asked is told when it has agreed, and never when it refuses")
    func failedWhileAsked() async throws {
        let stage = try await stage()
        let gate = Gate()
        let recorder = ApplicationRecorder(onWillContinue: {
            await gate.pass()
            return .systemShowsProgress
        })
        stage.application.delegate = recorder
        let node = stage.node
        let asking = (1...2).map { number in
            Task { () -> HandoffError? in
                do {
                    _ = try await node.ask(.announcement(UInt8(number)))
                    return nil
                } catch {
                    return error as? HandoffError
                }
            }
        }
        try await eventually("asked") { recorder.events.value.count == 2 }
        _ = try await node.ask(.failure(1, .cancelled))
        _ = try await node.ask(.failure(1, .connectionLost))
        #expect(recorder.failures.value.isEmpty)
        gate.open()
        #expect(await asking[0].value?.code == .cancelled)
        #expect(await asking[1].value == nil)
        try await eventually("told") { recorder.failures.value.map(\.code) == [.userCancelled] }

        let refused = Gate()
        let refusing = ApplicationRecorder(onWillContinue: {
            await refused.pass()
            return .refused("busy")
        })
        stage.application.delegate = refusing
        let isRefused = Task { (try? await node.ask(.announcement(3))) == nil }
        try await eventually("asked") { refusing.events.value.count == 1 }
        _ = try await node.ask(.failure(3, .cancelled))
        refused.open()
        #expect(await isRefused.value)
        _ = try await node.ask(.failure(3, .cancelled))
        #expect(refusing.failures.value.isEmpty)
    }

    @Test("A node that is lost fails what the application has agreed to, once, and nothing else")
    func nodeLost() async throws {
        let stage = try await stage()
        let gate = Gate()
        let hasReturned = Box(false)
        let recorder = ApplicationRecorder(onContinue: { _, _ in
            await gate.pass()
            defer { hasReturned.value = true }
            return true
        })
        stage.application.delegate = recorder
        let node = stage.node
        for number in 1...3 as ClosedRange<UInt8> { _ = try await node.ask(.announcement(number)) }
        _ = try await node.ask(.failure(1, .cancelled))
        try await eventually("told of the first") { recorder.failures.value.count == 1 }
        let continuing = Task { try? await node.ask(.arrival(2)) }
        try await eventually("the second has come") { recorder.activities.value.count == 1 }
        await node.stop()
        try await eventually("told of the third") { recorder.failures.value.count == 2 }
        gate.open()
        _ = await continuing.value
        try await eventually("the second is continued, though the node is gone") { hasReturned.value }
        #expect(recorder.failures.value.map(\.code) == [.userCancelled, .connectionUnavailable])
    }

    @Test("What it does not handle fails on both sides")
    func unhandled() async throws {
        let stage = try await stage()
        let recorder = ApplicationRecorder(onContinue: { _, _ in false })
        stage.application.delegate = recorder
        _ = try await stage.node.ask(.announcement(1))
        let error = await #expect(throws: HandoffError.self) { try await stage.node.ask(.arrival(1)) }
        #expect(error?.message == "Notes did not handle \(Self.viewing)")
        _ = try await stage.node.ask(.failure(1, .notHandled))
        try await eventually("told") { recorder.failures.value.map(\.code) == [.notHandled] }
        #expect(recorder.events.value.last == "didFail \(Self.viewing)")
    }

    @Test("Without a delegate nothing is handled")
    func noDelegate() async throws {
        let stage = try await stage()
        let (answer, _) = try await stage.node.ask(.announcement(1))
        #expect(answer == .willContinue(.init()))
        await #expect(throws: HandoffError.self) { try await stage.node.ask(.arrival(1)) }
    }

    @Test("Delegates that do not answer in time fail the handoff, and are told so")
    func timeOuts() async throws {
        #expect(ApplicationDeadlines().willContinue == .seconds(5) && ApplicationDeadlines().continuing == .seconds(20))
        let stage = try await stage(deadlines: .short)
        let gate = Gate()
        let slow = ApplicationRecorder(onWillContinue: {
            await gate.pass()
            return .systemShowsProgress
        })
        stage.application.delegate = slow
        let first = await #expect(throws: HandoffError.self) { try await stage.node.ask(.announcement(1)) }
        #expect(first?.code == .timedOut)
        try await eventually("told") { slow.failures.value.map(\.code) == [.remoteApplicationTimedOut] }
        let slower = ApplicationRecorder(onContinue: { _, _ in
            await gate.pass()
            return true
        })
        stage.application.delegate = slower
        let second = await #expect(throws: HandoffError.self) { try await stage.node.ask(.arrival(2)) }
        #expect(second?.code == .timedOut)
        try await eventually("told") { slower.failures.value.map(\.code) == [.remoteApplicationTimedOut] }
        gate.open()
    }

    @Test("What comes without the keys it requires fails and names them")
    func missingKeys() async throws {
        let stage = try await stage()
        let recorder = ApplicationRecorder()
        stage.application.delegate = recorder
        _ = try await stage.node.ask(.announcement(1))
        let error = await #expect(throws: HandoffError.self) {
            try await stage.node.ask(.arrival(1) { $0.payload.requiredUserInfoKeys = ["page", "cursor", "author"] })
        }
        #expect(error?.message.hasSuffix("author, cursor") == true)
        try await eventually("told") { recorder.failures.value.map(\.code) == [.handoffFailed] }
        #expect(recorder.events.value == ["willContinue \(Self.viewing)", "didFail \(Self.viewing)"])
    }

    @Test("A type that it does not declare is declined")
    func undeclared() async throws {
        let stage = try await stage()
        let recorder = ApplicationRecorder()
        stage.application.delegate = recorder
        let error = await #expect(throws: HandoffError.self) {
            try await stage.node.ask(.announcement(1) { $0.type = "org.example.other" })
        }
        #expect(error?.code == .notHandled)
        #expect(recorder.events.value.isEmpty)
    }

    @Test("Access to a file is asked of the node")
    func access() async throws {
        let stage = try await stage()
        let url = URL(filePath: "/tmp/a b.txt")
        #expect(try await stage.application.startAccessing(url).url == url)
        #expect(await stage.node.accessed == ["/tmp/a b.txt"])
        await stage.node.refuse(HandoffError(.accessRefused, "policy"))
        let refused = await #expect(throws: UserActivityError.self) {
            try await stage.application.startAccessing(url)
        }
        #expect(refused?.code == .accessRefused)
        let other = URL(string: "https://example.org")
        let invalid = await #expect(throws: UserActivityError.self) {
            try await stage.application.startAccessing(try #require(other))
        }
        #expect(invalid?.code == .invalid)
        for text in ["file://otherhost/tmp/a.txt", "file://otherhost"] {
            let foreign = await #expect(throws: UserActivityError.self) {
                try await stage.application.startAccessing(try #require(URL(string: text)))
            }
            #expect(foreign?.code == .invalid)
        }
    }
}

/// An object that takes activities up.
private final class Window: UserActivityRestoring {
    let targetContentIdentifier: String?
    let restored = Box<[UserActivity]>([])
    let onRestore = Box<@Sendable () -> Void>({})

    init(_ identifier: String? = nil) { targetContentIdentifier = identifier }

    func restoreUserActivityState(_ activity: UserActivity) async {
        restored.change { $0.append(activity) }
        onRestore.value()
    }
}
