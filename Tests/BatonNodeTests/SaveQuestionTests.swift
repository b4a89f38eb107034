// SPDX-License-Identifier: Apache-2.0

import BatonCore
import BatonEventLoop
import BatonMessages
import BatonProtocol
import BatonTestSupport
import BatonTransport
import Logging
import SwiftProtobuf
import SystemPackage
import Testing

@testable import BatonNode

/// An application is asked to save when devices take its activity over: one question at a time, each for all devices
/// that wait then.
@Suite("Questions to save", .timeLimit(.minutes(5)))
struct SaveQuestionTests {
    @Test("Devices that come while an application saves share its next question, and no state from before they came")
    func shared() async throws {
        let scene = try await Scene(saveDeadline: .seconds(60))
        let first = scene.takeOver("first")
        let question = try await scene.question()
        #expect(question.device == "first")
        let others = (1...20).map { scene.takeOver("other \($0)") }
        try await eventually("all wait") { await scene.waiting == 21 }
        try await question.answer("before")
        let next = try await scene.question()
        // This one has come too late for it.
        let late = scene.takeOver("late")
        try await eventually("all wait") { await scene.waiting == 21 }
        try await next.answer("after")
        let last = try await scene.question()
        #expect(last.device == "late")
        try await last.answer("at last")
        #expect(await first.outcome.value == .saved("before"))
        for other in others { #expect(await other.outcome.value == .saved("after")) }
        #expect(await late.outcome.value == .saved("at last"))
        #expect(await scene.waiting == 0)
        await scene.end()
    }

    @Test("Two offers of one activity that are withdrawn during their saves both end")
    func withdrawnTwice() async throws {
        let scene = try await Scene(saveDeadline: .seconds(60))
        let first = scene.takeOver("first")
        let question = try await scene.question()
        await scene.withdraw()
        let again = try await scene.offers.offer(scene.activity, from: scene.node)
        let second = scene.takeOver("second")
        let next = try await scene.question()
        await scene.withdraw()
        for question in [question, next] { try await question.answer("saved") }
        // Nobody gets what is offered no more.
        #expect(await first.outcome.value == .failed(.noSuchActivity))
        #expect(await second.outcome.value == .failed(.noSuchActivity))
        for await _ in again {}
        await scene.eventsEnded()
        await scene.end()
    }

    @Test("A question without an answer fails those that it was for: those who wait have the whole time again")
    func hanging() async throws {
        // The library adds half a second to the 5 s of the code; two questions fit before an asker's 15 s.
        #expect(Offers.saveDeadline == .milliseconds(5500))
        let scene = try await Scene(saveDeadline: .seconds(6))
        let start = ContinuousClock.now
        let first = scene.takeOver("first")
        let question = try await scene.question()
        let others = (1...5).map { scene.takeOver("other \($0)") }
        try await eventually("all wait") { await scene.waiting == 6 }
        let next = try await scene.question()
        #expect(ContinuousClock.now - start >= .seconds(6))
        #expect(await first.outcome.value == .failed(.timedOut))
        for other in others { #expect(await other.outcome.value == .failed(.timedOut)) }
        #expect(ContinuousClock.now - start >= .seconds(12))
        // Behind them the application is asked again, and once only.
        let late = scene.takeOver("late")
        let last = try await scene.question()
        #expect(last.device == "late")
        try await last.answer("at last")
        #expect(await late.outcome.value == .saved("at last"))
        withExtendedLifetime((question, next)) {}
        await scene.end()
    }

    @Test("For an activity that is withdrawn meanwhile the application is not asked again")
    func withdrawn() async throws {
        let scene = try await Scene(saveDeadline: .seconds(60))
        let first = scene.takeOver("first")
        let question = try await scene.question()
        let behind = scene.takeOver("behind")
        try await eventually("both wait") { await scene.waiting == 2 }
        await scene.withdraw()
        // The first device waits for the answer, the one behind it for nothing.
        #expect(await behind.outcome.value == .failed(.noSuchActivity))
        try await question.answer("as it was")
        #expect(await first.outcome.value == .failed(.noSuchActivity))
        #expect(await scene.waiting == 0)
        await scene.end()
    }

    @Test("Takeovers that are cancelled, or make room, end at once, and the application is not asked for them")
    func gone() async throws {
        let scene = try await Scene(saveDeadline: .seconds(60))
        let evicted = 8
        let takeovers = (1...(ClaimBounds.ofOneDevice + evicted)).map { _ in scene.takeOver("phone") }
        let question = try await scene.question()
        try await eventually("the oldest have made room") {
            let (failed, waiting) = (await scene.failures.count, await scene.waiting)
            return failed == evicted && waiting == ClaimBounds.ofOneDevice
        }
        #expect(await scene.failures.allSatisfy { $0 == .limitExceeded })
        for takeover in takeovers { await takeover.go() }
        var outcomes: [Scene.Outcome] = []
        for takeover in takeovers { outcomes.append(await takeover.outcome.value) }
        #expect(outcomes.count { $0 == .failed(.limitExceeded) } == evicted)
        #expect(outcomes.count { $0 == .failed(.cancelled) } == ClaimBounds.ofOneDevice)
        try await eventually("the application was told of all") { await scene.failures.count == takeovers.count }
        #expect(await scene.failures.count { $0 == .cancelled } == ClaimBounds.ofOneDevice)
        #expect(await !scene.offers.core.holdsClaim("phone"))

        // The application is still at the question, and the next one is not for them.
        let tablet = scene.takeOver("tablet")
        try await eventually("it waits") { await scene.waiting == 1 }
        try await question.answer("for nobody")
        let next = try await scene.question()
        #expect(next.device == "tablet")
        try await next.answer("for the tablet")
        #expect(await tablet.outcome.value == .saved("for the tablet"))
        #expect(await scene.waiting == 0)

        // Nor where nobody is left behind them.
        let last = scene.takeOver("phone")
        let alone = try await scene.question()
        let behind = scene.takeOver("phone")
        try await eventually("both wait") { await scene.waiting == 2 }
        for takeover in [last, behind] {
            await takeover.go()
            #expect(await takeover.outcome.value == .failed(.cancelled))
        }
        try await alone.answer("for nobody")
        #expect(await scene.waiting == 0)
        await scene.end()
    }
}

/// An application that offers one activity, and devices that take it over.
private actor Scene {
    enum Outcome: Equatable {
        case saved(String)
        case failed(HandoffError.Code)
    }

    /// A device's takeover.
    struct Takeover {
        let outcome: Task<Outcome, Never>
        let device: PeerName
        let claim: ClaimID
        let offers: Offers

        /// Its user does not want it any more.
        func go() async { await offers.decide { $0.release(claim, by: device) } }
    }

    /// Letting it go unanswered would abort it.
    struct Question {
        let device: String
        fileprivate let stream: BatonTransport.Stream

        func answer(_ title: String) async throws {
            try await stream.respond(.willSave(.with { $0.title = title }))
            await stream.finish()
        }
    }

    let offers: Offers
    let activity: OfferedActivity
    let node: Connection
    private let application: Connection
    private let questions: AsyncStream<IncomingStream>
    /// The errors of failed takeovers that the application was told.
    private(set) var failures: [HandoffError.Code] = []
    private var telling: Task<Void, Never>?

    init(saveDeadline: Duration) async throws {
        let loop = ControlLoop.loop
        let files = SharedFiles(
            path: "/nonexistent/roots", on: try BlockingExecutor(name: "files"),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        offers = Offers(files: files, saveDeadline: saveDeadline) {}
        (node, application) = try await connectedPair(on: loop)
        activity = try OfferedActivity(
            .with {
                $0.type = "org.example.note"
                $0.needsSave = true
            }, document: nil)
        let (questions, asked) = AsyncStream<IncomingStream>.makeStream()
        self.questions = questions
        let events = try await offers.offer(activity, from: node)
        Task { [application] in
            for await incoming in application.incoming { asked.yield(incoming) }
            asked.finish()
        }
        telling = Task {
            for await event in events {
                if case .failed(let failure) = event.kind { failures.append(HandoffError(failure).code) }
            }
        }
    }

    /// Waits until the events of the first offer have ended.
    func eventsEnded() async { await telling?.value }

    /// How many takeovers wait for the application.
    var waiting: Int {
        get async { await offers.core.claims.count { $0.state == .waiting || $0.state == .asked } }
    }

    /// The next question to the application.
    func question() async throws -> Question {
        for await incoming in questions {
            guard case .willSave(let request) = try WireRequest.decode(incoming.request) else { continue }
            return Question(device: request.device, stream: incoming.stream)
        }
        throw CancellationError()
    }

    nonisolated func takeOver(_ device: String) -> Takeover {
        let (name, claim) = (PeerName(id: device, name: device), ClaimID())
        let outcome = Task { () -> Outcome in
            do throws(HandoffError) {
                return .saved(try await offers.claim(activity.id, by: name, as: claim).payload.summary.title)
            } catch {
                return .failed(error.code)
            }
        }
        return Takeover(outcome: outcome, device: name, claim: claim, offers: offers)
    }

    func withdraw() async {
        await offers.withdraw(activity.id)
    }

    func end() async {
        await withdraw()
        await application.close()
        await node.close()
    }
}
