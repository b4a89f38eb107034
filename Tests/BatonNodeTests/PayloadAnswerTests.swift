import BatonDocuments
import BatonEventLoop
import BatonMessages
import BatonProtocol
import BatonTestSupport
import BatonTransport
import FoundationEssentials
import Logging
import SwiftProtobuf
import SystemPackage
import Testing

@testable import BatonNode

/// What the origin's application hears of a device that asked for its activity and did not take the answer.
@Suite("Answers that nobody takes", .timeLimit(.minutes(5)))
struct PayloadAnswerTests {
    /// How a device goes.
    enum Going: CaseIterable {
        case cancels, waitsNoLonger, dies

        var code: HandoffError.Code {
            switch self {
            case .cancels: .cancelled
            case .waitsNoLonger: .timedOut
            case .dies: .connectionLost
            }
        }
    }

    @Test("What is done because an operation is late is done before it is cancelled, and its error is the time-out")
    func late() async throws {
        let (waits, wait) = AsyncStream<Never>.makeStream()
        let wasCancelled = Lock<Bool?>(nil)
        let error = await #expect(throws: HandoffError.self) {
            try await withDeadline(
                .milliseconds(20), "nobody answered", device: "desktop", late: { wait.finish() },
                {
                    for await _ in waits {}
                    wasCancelled.withLock { $0 = Task.isCancelled }
                    throw HandoffError(.connectionLost, "it was aborted")
                })
        }
        #expect(error?.code == .timedOut && error?.device == "desktop")
        #expect(wasCancelled.withLock { $0 } == false)
    }

    @Test("Who cancels, who does not wait any longer and who is lost are told apart", arguments: Going.allCases)
    func goes(_ how: Going) async throws {
        let loop = EventLoop(name: "node")
        let files = SharedFiles(
            path: "/nonexistent/roots", userHome: nil, on: try BlockingExecutor(name: "files"),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        let offers = Offers(on: loop, files: files) { _ in }
        let (applicationSide, application) = try await connectedPair(on: loop)
        let (deviceSide, device) = try await connectedPair(on: loop)
        let activity = try OfferedActivity(
            .with {
                $0.type = "org.example.note"
                $0.needsSave = true
            }, document: nil)
        var events = try await offers.offer(activity, from: applicationSide).makeAsyncIterator()
        let name = PeerName(id: "d", name: "desktop")

        let asked = try await device.open(
            WireRequest.with { $0.payload.activityID = .init(activity.id.bytes) }.serializedBytes())
        let requests = deviceSide.incoming.makeAsyncIterator()
        let incoming = try #require(await requests.next())
        let claiming = Task { try await offers.claim(activity.id, by: name) }
        let questions = application.incoming.makeAsyncIterator()
        let question = try #require(await questions.next())
        // While the application saves.
        switch how {
        case .cancels: await asked.reset(.cancelled)
        case .waitsNoLonger: await asked.reset(.timeout)
        case .dies: await device.close()
        }
        await incoming.stream.gone()
        try await question.stream.respond(.willSave(.init()))
        await question.stream.finish()
        let (claim, payload) = try await claiming.value
        await #expect(throws: HandoffError.self) {
            try await PeerService.answer(claim, payload, on: incoming.stream, for: name, of: offers)
        }
        #expect(await events.next()?.taken.device == "desktop")
        let failure = try #require(await events.next()?.failed)
        #expect(failure.code == how.code && failure.device == "desktop", "\(failure)")
        #expect(await !offers.holdsClaim("d"))
        for connection in [applicationSide, application, deviceSide, device] { await connection.close() }
    }
}
