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

/// The moment in which one activity takes another one's place: who asks then hears of the new one.
@Suite("Activities that are replaced", .timeLimit(.minutes(5)))
struct ReplacementTests {
    /// Offers of a node that shares no folder.
    private static func offers(
        on loop: EventLoop, lease: Duration = ClaimBounds.lease
    ) throws -> Offers {
        let files = SharedFiles(
            path: "/nonexistent/roots", on: try BlockingExecutor(name: "files"),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        return Offers(files: files, lease: lease) {}
    }

    @Test("After a withdrawal others wait for what takes its place, and no longer than a moment")
    func replaced() async throws {
        let loop = ControlLoop.loop
        let offers = try Self.offers(on: loop)
        let (node, application) = try await connectedPair(on: loop)
        func activity(_ title: String) throws -> OfferedActivity {
            try OfferedActivity(
                .with {
                    $0.type = "org.example.note"
                    $0.title = title
                }, document: nil)
        }
        let (first, second) = (try activity("First"), try activity("Second"))
        // Nothing was withdrawn: at once.
        await offers.replaced()
        _ = try await offers.offer(first, from: node)
        await offers.replaced()

        let clock = ContinuousClock()
        for number in 1...2 {
            // Its replacement ends the wait for all devices that wait.
            await offers.withdraw(first.id)
            let asked = (0..<2).map { _ in
                Task {
                    await offers.replaced()
                    return await offers.visible.map(\.title)
                }
            }
            let offered = try activity("In its place \(number)")
            _ = try await offers.offer(offered, from: node)
            for answer in asked { #expect(await answer.value == [offered.title]) }
            await offers.withdraw(offered.id)
            _ = try await offers.offer(first, from: node)
        }

        // Nothing takes its place: others wait 100 ms from the first withdrawal on, however many follow.
        _ = try await offers.offer(second, from: node)
        let start = clock.now
        await offers.withdraw(first.id)
        await offers.withdraw(second.id)
        await offers.replaced()
        #expect(clock.now - start > .milliseconds(90))
        #expect(await offers.visible.isEmpty)
        await offers.replaced()
        await application.close()
        await node.close()
    }

    @Test("A node that stops says so of what is offered, and takes nothing in its place")
    func stopping() async throws {
        let loop = ControlLoop.loop
        let offers = try Self.offers(on: loop)
        let (node, application) = try await connectedPair(on: loop)
        func activity() throws -> OfferedActivity {
            try OfferedActivity(.with { $0.type = "org.example.note" }, document: nil)
        }
        let events = try await offers.offer(try activity(), from: node)
        await offers.decide { $0.stop() }
        var said: [HandoffError.Code] = []
        for await event in events {
            if case .failed(let failure)? = event.kind { said.append(HandoffError(failure).code) }
        }
        #expect(said == [.nodeStopping])
        let next = try activity()
        let error = await #expect(throws: HandoffError.self) { try await offers.offer(next, from: node) }
        #expect(error?.code == .nodeStopping)
        #expect(await offers.visible.isEmpty)
        await application.close()
        await node.close()
    }

    @Test("A claim that lapses ends by itself what was withdrawn while it was held")
    func lapsed() async throws {
        let loop = ControlLoop.loop
        let offers = try Self.offers(on: loop, lease: .milliseconds(100))
        let (node, application) = try await connectedPair(on: loop)
        let activity = try OfferedActivity(.with { $0.type = "org.example.note" }, document: nil)
        let events = try await offers.offer(activity, from: node)
        _ = try await offers.claim(activity.id, by: PeerName(id: "d", name: "desktop"))
        await offers.withdraw(activity.id)
        let lost = ContinuousClock.now
        await offers.decide { $0.connectionEnded(of: PeerName(id: "d", name: "desktop")) }
        for await _ in events {}
        #expect(ContinuousClock.now - lost >= .milliseconds(100))
        #expect(await offers.core.claims.isEmpty)
        #expect(await offers.core.nextDeadline == nil)
        await application.close()
        await node.close()
    }
}
