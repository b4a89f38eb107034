import BatonEventLoop
import BatonMessages
import BatonTestSupport
import BatonTransport
import Logging
import SwiftProtobuf
import SystemPackage
import Testing

@testable import BatonNode

/// Bounds of activities and documents, each reached.
@Suite("Limits of activities and documents", .timeLimit(.minutes(1)))
struct DocumentLimitsTests {
    private let desktop = PeerName(id: "desktop", name: "desktop")
    private let phone = PeerName(id: "phone", name: "phone")

    @Test("So many documents sent to one device")
    func transfers() async throws {
        let bound = NodeLimits().transfersPerDevice
        let limit = TransferLimit(perDevice: bound)
        for _ in 0..<bound { try await limit.begin(for: desktop) }
        let error = await #expect(throws: HandoffError.self) { try await limit.begin(for: desktop) }
        #expect(error?.code == .limitExceeded)
        // Another device is sent its own, and the same one again when one has ended.
        try await limit.begin(for: phone)
        await limit.end(for: desktop)
        try await limit.begin(for: desktop)
        await #expect(throws: HandoffError.self) { try await limit.begin(for: desktop) }
    }

    @Test("So many activities offered")
    func offers() async throws {
        let loop = EventLoop(name: "offers")
        let files = SharedFiles(
            path: "/nonexistent/roots", userHome: nil, on: try BlockingExecutor(name: "files"),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        let bound = NodeLimits().offers
        let offers = Offers(on: loop, files: files, bound: bound) { _ in }
        let (node, application) = try await connectedPair(on: loop)
        func offer() async throws {
            let activity = try OfferedActivity(.with { $0.type = "org.example.note" }, document: nil)
            _ = try await offers.offer(activity, from: node)
        }
        for _ in 0..<bound { try await offer() }
        let error = await #expect(throws: HandoffError.self) { try await offer() }
        #expect(error?.code == .limitExceeded)
        #expect(await offers.count == bound)
        await offers.withdrawAll()
        try await offer()
        await offers.withdrawAll()
        await application.close()
        await node.close()
    }

    @Test("So many documents that a rule has accepted wait, and so many are fetched")
    func accepted() {
        let bound = NodeLimits().acceptedWaiting
        var queue = AcceptanceQueue<Int>(concurrency: AutomaticAcceptance.concurrency, bound: bound)
        func enter(_ number: Int) -> Bool { queue.enter(number) }
        func begin() -> Int? { queue.begin() }
        for number in 0..<bound { #expect(enter(number)) }
        #expect(!enter(bound))
        for number in 0..<AutomaticAcceptance.concurrency { #expect(begin() == number) }
        #expect(begin() == nil)
        // Those that are fetched have made room for as many.
        for number in 0..<AutomaticAcceptance.concurrency { #expect(enter(bound + number)) }
        #expect(!enter(0))
        queue.end()
        #expect(begin() == AutomaticAcceptance.concurrency && begin() == nil)
        queue.removeAll()
        queue.end()
        #expect(begin() == nil)
    }
}
