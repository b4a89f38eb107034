// SPDX-License-Identifier: Apache-2.0

import BatonCore
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

/// The origin's application hears of a device that asked for its activity and did not take the answer.
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
        let isCancelled = Lock(false)
        let wasCancelled = Lock<Bool?>(nil)
        let error = await #expect(throws: HandoffError.self) {
            try await withDeadline(
                .milliseconds(20), "nobody answered", device: "desktop",
                late: {
                    let already = isCancelled.withLock { $0 }
                    wasCancelled.withLock { $0 = already }
                    wait.finish()
                },
                {
                    await withTaskCancellationHandler {
                        for await _ in waits {}
                    } onCancel: {
                        isCancelled.withLock { $0 = true }
                    }
                    throw HandoffError(.connectionLost, "it was aborted")
                })
        }
        #expect(error?.code == .timedOut && error?.device == "desktop")
        #expect(wasCancelled.withLock { $0 } == false)
    }

    @Test("A cancelling, an impatient and a lost device are told apart", arguments: Going.allCases)
    func goes(_ how: Going) async throws {
        let scene = try await Scene()
        let claiming = Task { try await scene.offers.claim(scene.activity.id, by: scene.name) }
        let question = try await scene.question()
        // While the application saves, and nobody sees it.
        await scene.go(how)
        await scene.incoming.stream.untilClosedOrCancelled()
        try await question.stream.respond(.willSave(.init()))
        await question.stream.finish()
        let (claim, payload) = try await claiming.value
        await #expect(throws: HandoffError.self) {
            try await PeerService.answer(
                claim, payload, on: scene.incoming.stream, for: scene.name, of: scene.offers)
        }
        var events = scene.events.makeAsyncIterator()
        #expect(await events.next()?.taken.device == "desktop")
        let failure = try #require(await events.next()?.failed)
        #expect(failure.code == how.code && failure.device == "desktop", "\(failure)")
        #expect(await !scene.offers.core.holdsClaim("d"))
        await scene.end()
    }

    @Test("Who goes while the application saves has no claim from then on, and it says why", arguments: Going.allCases)
    func goesBefore(_ how: Going) async throws {
        let scene = try await Scene()
        let giving = Task { () -> HandoffError.Code? in
            do throws(HandoffError) {
                try await PeerService.give(
                    scene.activity.id, to: scene.name, on: scene.incoming.stream, of: scene.offers)
                return nil
            } catch {
                return error.code
            }
        }
        let question = try await scene.question()
        await scene.go(how)
        // The application has not answered, and does not.
        var events = scene.events.makeAsyncIterator()
        let failure = try #require(await events.next()?.failed)
        #expect(failure.code == how.code && failure.device == "desktop", "\(failure)")
        #expect(await giving.value == how.code)
        #expect(await !scene.offers.core.holdsClaim("d"))
        withExtendedLifetime(question) {}
        await scene.end()
    }

    /// An application whose activity a device asks for.
    private struct Scene {
        let offers: Offers
        let activity: OfferedActivity
        let events: AsyncStream<WireOfferEvent>
        let name = PeerName(id: "d", name: "desktop")
        /// The device's request, as it asks and as it is asked.
        let asked: BatonTransport.Stream
        let incoming: IncomingStream
        private let application: Connection
        private let device: Connection
        private let others: [Connection]

        init() async throws {
            let loop = ControlLoop.loop
            let files = SharedFiles(
                path: "/nonexistent/roots", on: try BlockingExecutor(name: "files"),
                logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
            offers = Offers(files: files, saveDeadline: .seconds(60)) {}
            let (applicationSide, application) = try await connectedPair(on: loop)
            let (deviceSide, device) = try await connectedPair(on: loop)
            activity = try OfferedActivity(
                .with {
                    $0.type = "org.example.note"
                    $0.needsSave = true
                }, document: nil)
            events = try await offers.offer(activity, from: applicationSide)
            var request = WireRequest()
            request.payload.activityID = .init(activity.id.bytes)
            asked = try await device.open(request.serializedBytes())
            let requests = deviceSide.incoming.makeAsyncIterator()
            incoming = try #require(await requests.next())
            (self.application, self.device, others) = (application, device, [applicationSide, deviceSide])
        }

        /// The question to the application.
        func question() async throws -> IncomingStream {
            let questions = application.incoming.makeAsyncIterator()
            return try #require(await questions.next())
        }

        func go(_ how: Going) async {
            switch how {
            case .cancels: await asked.reset(.cancelled)
            case .waitsNoLonger: await asked.reset(.timeout)
            case .dies: await device.close()
            }
        }

        func end() async {
            for connection in [application, device] + others { await connection.close() }
        }
    }
}
