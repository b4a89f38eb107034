// SPDX-License-Identifier: Apache-2.0

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
        on loop: EventLoop, lapse: Duration = ClaimTable.lapse
    ) throws -> Offers {
        let files = SharedFiles(
            path: "/nonexistent/roots", userHome: nil, on: try BlockingExecutor(name: "files"),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        return Offers(on: loop, files: files, lapse: lapse) { _ in }
    }

    @Test("After a withdrawal others wait for what takes its place, and no longer than a moment")
    func replaced() async throws {
        let loop = EventLoop(name: "offers")
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
            // What takes its place ends the wait for all who wait.
            await offers.withdraw(first.id)
            let asked = (0..<2).map { _ in
                Task {
                    await offers.replaced()
                    return await offers.summaries.map(\.title)
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
        #expect(await offers.summaries.isEmpty)
        await offers.replaced()
        await application.close()
        await node.close()
    }

    @Test("A node that stops says so of what is offered, and takes nothing in its place")
    func stopping() async throws {
        let loop = EventLoop(name: "offers")
        let offers = try Self.offers(on: loop)
        let (node, application) = try await connectedPair(on: loop)
        func activity() throws -> OfferedActivity {
            try OfferedActivity(.with { $0.type = "org.example.note" }, document: nil)
        }
        let events = try await offers.offer(try activity(), from: node)
        await offers.withdrawAll()
        var said: [HandoffError.Code] = []
        for await event in events {
            if case .failed(let failure)? = event.kind { said.append(HandoffError(failure).code) }
        }
        #expect(said == [.nodeStopping])
        let next = try activity()
        let error = await #expect(throws: HandoffError.self) { try await offers.offer(next, from: node) }
        #expect(error?.code == .nodeStopping)
        #expect(await offers.summaries.isEmpty)
        await application.close()
        await node.close()
    }

    @Test("What becomes of an activity that one device takes over twice is told by the claim")
    func twice() async throws {
        let loop = EventLoop(name: "offers")
        let offers = try Self.offers(on: loop)
        let (node, application) = try await connectedPair(on: loop)
        let activity = try OfferedActivity(.with { $0.type = "org.example.note" }, document: nil)
        let events = try await offers.offer(activity, from: node)
        let desktop = PeerName(id: "d", name: "desktop")
        let first = try await offers.claim(activity.id, by: desktop).claim
        let second = try await offers.claim(activity.id, by: desktop).claim
        try await offers.setContinued(second, by: desktop)
        await offers.report(.progress(.init()), of: try offers.claim(first, of: desktop))
        await offers.release(first, by: desktop)
        await offers.withdraw(activity.id)
        var told: [UInt64] = []
        for await event in events { told.append(event.claim) }
        #expect(told == [1, 2, 2, 1, 1, 0])
        await application.close()
        await node.close()
    }

    @Test("What was withdrawn while a device takes it over hears what becomes of that, and ends then")
    func overtaken() async throws {
        let loop = EventLoop(name: "offers")
        let offers = try Self.offers(on: loop)
        let (node, application) = try await connectedPair(on: loop)
        let (desktop, phone) = (PeerName(id: "d", name: "desktop"), PeerName(id: "p", name: "phone"))
        let activity = try OfferedActivity(.with { $0.type = "org.example.note" }, document: nil)
        /// What the application is told until it ends.
        func told(_ events: AsyncStream<WireOfferEvent>) async -> [String] {
            var told: [String] = []
            for await event in events {
                switch event.kind {
                case .taken: told.append("taken")
                case .withdrawn: told.append("withdrawn")
                case .continued(let device): told.append("continued \(device.device)")
                case .failed(let failure): told.append("failed \(failure.device)")
                case .progress, .interrupted, nil: told.append("other")
                }
            }
            return told
        }

        // Nobody takes it over: it ends at once.
        var events = try await offers.offer(activity, from: node)
        await offers.withdraw(activity.id)
        #expect(await told(events) == ["withdrawn"])

        // It ends with the last of two.
        events = try await offers.offer(activity, from: node)
        let first = try await offers.claim(activity.id, by: desktop).claim
        let second = try await offers.claim(activity.id, by: phone).claim
        await offers.withdraw(activity.id)
        // Said twice, told once.
        for _ in 1...2 { try await offers.setContinued(first, by: desktop) }
        #expect(await offers.departed.count == 1)
        await offers.fail(second, by: phone, with: HandoffError(.notHandled, "it was not handled"))
        #expect(await told(events) == ["taken", "taken", "withdrawn", "continued desktop", "failed phone"])
        #expect(await offers.departed.isEmpty)

        // Offered again, it hears of it there.
        events = try await offers.offer(activity, from: node)
        let third = try await offers.claim(activity.id, by: desktop).claim
        await offers.withdraw(activity.id)
        let again = try await offers.offer(activity, from: node)
        #expect(await told(events) == ["taken", "withdrawn"])
        await offers.release(third, by: desktop)
        await offers.withdraw(activity.id)
        #expect(await told(again) == ["failed desktop", "withdrawn"])

        // The application goes first.
        events = try await offers.offer(activity, from: node)
        _ = try await offers.claim(activity.id, by: desktop)
        await offers.withdraw(activity.id)
        await application.close()
        #expect(await told(events) == ["taken", "withdrawn"])
        await node.close()
    }

    @Test("A device that is lost before it has said anything is told of by itself, of what is still offered as well")
    func lost() async throws {
        let loop = EventLoop(name: "offers")
        let offers = try Self.offers(on: loop, lapse: .milliseconds(100))
        let (node, application) = try await connectedPair(on: loop)
        let activity = try OfferedActivity(.with { $0.type = "org.example.note" }, document: nil)
        var events = try await offers.offer(activity, from: node).makeAsyncIterator()
        let claim = try await offers.claim(activity.id, by: PeerName(id: "p", name: "phone")).claim
        _ = try await offers.claim(activity.id, by: PeerName(id: "d", name: "desktop"))
        try await offers.setContinued(claim, by: PeerName(id: "p", name: "phone"))
        for device in ["p", "d"] { await offers.connectionsEnded(of: device) }
        for _ in 1...3 { _ = await events.next() }
        let failure = await events.next()?.failed
        #expect(failure?.code == .connectionLost && failure?.device == "desktop")
        #expect(await offers.count == 1)
        // Who has continued it owes nothing.
        await offers.withdraw(activity.id)
        #expect(await events.next()?.withdrawn == .init())
        await application.close()
        await node.close()
    }

    @Test("A claim that lapses ends by itself what was withdrawn while it was held")
    func lapsed() async throws {
        let loop = EventLoop(name: "offers")
        let offers = try Self.offers(on: loop, lapse: .milliseconds(100))
        let (node, application) = try await connectedPair(on: loop)
        let activity = try OfferedActivity(.with { $0.type = "org.example.note" }, document: nil)
        let events = try await offers.offer(activity, from: node)
        _ = try await offers.claim(activity.id, by: PeerName(id: "d", name: "desktop"))
        await offers.withdraw(activity.id)
        // For as long as the device is there nothing lapses.
        #expect(await offers.departed.count == 1)
        #expect(await offers.lapse == nil)
        let lost = ContinuousClock.now
        await offers.connectionsEnded(of: "d")
        for await _ in events {}
        #expect(ContinuousClock.now - lost >= .milliseconds(100))
        #expect(await offers.departed.isEmpty)
        #expect(await offers.lapse?.isScheduled == false)
        await application.close()
        await node.close()
    }
}
