// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import BatonTestSupport
import Testing

@Suite struct CreditTests {
    private func limits(stream: Int, connection: Int) -> Limits {
        var limits = Limits()
        limits.initialStreamWindow = stream
        limits.initialConnectionWindow = connection
        limits.maximumConnectionWindow = connection
        return limits
    }

    @Test func ofAStreamIsABound() {
        let lone = Lone(limits: limits(stream: 1000, connection: 10_000))
        lone.receive(.open(1), .data(1, Array(repeating: 0, count: 999)), .data(1, [0]))
        #expect(lone.error == nil)
        lone.receive(.data(1, [0]))
        #expect(lone.error == .creditExceeded(1))
        #expect(lone.output().last == .goAway(1, 5))
    }

    @Test func ofTheConnectionIsABound() {
        let lone = Lone(limits: limits(stream: 1000, connection: 1500))
        lone.receive(.open(1), .open(3), .data(1, Array(repeating: 0, count: 1000)))
        lone.receive(.data(3, Array(repeating: 0, count: 500)))
        #expect(lone.error == nil)
        lone.receive(.data(3, [0]))
        #expect(lone.error == .creditExceeded(.connection))
    }

    @Test func isJudgedByTheHeaderAlone() {
        let lone = Lone(limits: limits(stream: 1000, connection: 10_000))
        lone.receive(.open(1))
        lone.receive(Array(WireFrame.data(1, Array(repeating: 0, count: 1001)).bytes.prefix(10)))
        #expect(lone.error == .creditExceeded(1))
        #expect(lone.delivered.isEmpty)
    }

    @Test func overflowIsRefused() {
        let lone = Lone()
        lone.receive(.credit(0, 1 << 62))
        #expect(lone.error == nil)
        lone.receive(.credit(0, 1 << 62 + 1))
        #expect(lone.error == .creditOverflow(0))
    }

    @Test func isGrantedOnConsumptionOnly() {
        let lone = Lone(limits: limits(stream: 1000, connection: 4000))
        lone.receive(.open(1), .data(1, Array(repeating: 0, count: 1000)))
        #expect(!lone.output().contains { $0.type == 5 })
        lone.session.consumed(1, 249, now: lone.now)
        #expect(!lone.hasOutput)
        lone.session.consumed(1, 1, now: lone.now)
        #expect(lone.output() == [.credit(1, 1250), .credit(0, 4250)])
        // Consuming more than was delivered gives no more credit.
        lone.session.consumed(1, 1_000_000, now: lone.now)
        #expect(lone.output() == [.credit(1, 2000), .credit(0, 5000)])
        lone.session.consumed(1, 1, now: lone.now)
        lone.session.consumed(99, 1, now: lone.now)
        #expect(!lone.hasOutput)
    }

    @Test func isGrantedOnceForManyConsumptions() {
        let lone = Lone(limits: limits(stream: 1000, connection: 40_000))
        lone.receive(.open(1), .data(1, Array(repeating: 0, count: 1000)))
        _ = lone.output()
        for _ in 0..<1000 { lone.session.consumed(1, 1, now: lone.now) }
        #expect(lone.output() == [.credit(1, 2000)])
    }

    @Test func isNotGrantedToAStreamAtItsEnd() {
        let lone = Lone(limits: limits(stream: 1000, connection: 4000))
        lone.receive(.open(1), .data(1, Array(repeating: 0, count: 1000)), .end(1))
        _ = lone.output()
        lone.session.consumed(1, 1000, now: lone.now)
        #expect(lone.output() == [.credit(0, 5000)])
    }

    @Test func heldBackBytesGoOutWhenItArrives() throws {
        let lone = Lone(.dialer, hello: .hello(connection: 150, stream: 100))
        let first = try lone.session.open(Buffer(1), now: lone.now)
        let second = try lone.session.open(Buffer(1), now: lone.now)
        for id in [first, second] { lone.session.send(id, Buffer(repeating: 1, count: 300)) }
        func sent() -> [Int] {
            let frames = lone.output().filter { $0.type == 4 }
            return [first, second].map { id in
                frames.filter { $0.stream == id.rawValue }.reduce(0) { $0 + $1.payload.count }
            }
        }
        #expect(sent() == [100, 50])
        #expect(lone.session.queuedBytes(of: first) == 200)
        #expect(!lone.hasOutput)
        lone.receive(.credit(1, 200))
        #expect(!lone.hasOutput)  // the connection holds it back
        lone.receive(.credit(0, 1000))
        #expect(sent() == [100, 50])
        lone.receive(.credit(1, 1000), .credit(3, 1000))
        #expect(sent() == [100, 200])
    }

    // MARK: Growth

    /// Runs a transfer. Returns the receiver's window, and the share of the link's rate that was reached.
    private func transfer(
        latency: Duration, bandwidth: Int, bytes: Int, limits: Limits = Limits()
    ) throws -> (window: Int, share: Double) {
        let link = EndpointPair.Link(latency: latency, bandwidth: bandwidth, fragments: false)
        let pair = EndpointPairFactory.connected(link: link, dialer: limits)
        pair.dialer.keepsReceived = false
        let chunk = Buffer(repeating: 1, count: 1 << 20)
        pair.acceptor.onEvent = { end, event, _ in
            guard case .opened(let id, _) = event else { return }
            try? end.session.respond(id, Buffer())
            for _ in 0..<bytes >> 20 { end.session.send(id, chunk) }
        }
        let id = try pair.dialer.session.open(Buffer(1), now: pair.now)
        let start = pair.now
        #expect(pair.run(for: .seconds(600)) { pair.dialer.deliveredBytes >= bytes })
        let seconds = (pair.now - start) / .seconds(1)
        return (pair.dialer.session.window(of: id), Double(bytes) / seconds / Double(bandwidth))
    }

    @Test func aWindowThatGrowsWithUseFillsALongLink() throws {
        // 60 MB/s at 40 ms: a product of 2.4 MB, more than the first window of 1 MiB.
        var limits = Limits()
        limits.activeStreamWindow = 4 << 20
        let result = try transfer(
            latency: .milliseconds(20), bandwidth: 60_000_000, bytes: 120 << 20, limits: limits)
        #expect(result.window == 4 << 20)
        #expect(result.share > 0.85)
    }

    @Test func withoutGrowthTheSameLinkStaysIdle() throws {
        let result = try transfer(latency: .milliseconds(20), bandwidth: 60_000_000, bytes: 40 << 20)
        #expect(result.window == 1 << 20)
        #expect(result.share < 0.5)
    }

    @Test func aFastLocalLinkNeedsNoGrowth() throws {
        let result = try transfer(latency: .microseconds(20), bandwidth: 1_000_000_000, bytes: 200 << 20)
        #expect(result.window == 1 << 20)
        #expect(result.share > 0.9)
    }

    /// A sixteenth of the 16 MiB is not always granted, and a quarter is kept for new streams.
    @Test func growthEndsAtHalfOfWhatIsLeft() throws {
        var limits = Limits()
        limits.activeStreamWindow = 16 << 20
        let result = try transfer(latency: .milliseconds(150), bandwidth: 100_000_000, bytes: 200 << 20, limits: limits)
        #expect(result.window == (15 - 4) << 19)
    }

    /// A consumer that is slower than the link limits the peer, so its window does not grow.
    @Test func aSlowConsumerKeepsTheWindowSmall() throws {
        let pair = EndpointPairFactory.connected(link: .init(latency: .milliseconds(5), fragments: false))
        pair.dialer.keepsReceived = false
        pair.dialer.consumesAtOnce = false
        pair.acceptor.onEvent = { end, event, _ in
            if case .opened(let id, _) = event {
                try? end.session.respond(id, Buffer())
                end.session.send(id, Buffer(repeating: 1, count: 64 << 20))
            }
        }
        let id = try pair.dialer.session.open(Buffer(1), now: pair.now)
        for _ in 0..<500 {
            pair.run(for: .milliseconds(10))
            pair.dialer.consume(id, 100_000, now: pair.now)
            #expect((pair.dialer.unconsumed[id] ?? 0) <= 1 << 20)
        }
        #expect(pair.dialer.session.window(of: id) == 1 << 20)
        #expect(pair.dialer.deliveredBytes >= 49_000_000)
    }
}
