// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import BatonTestSupport
import Testing

/// A session never exceeds its peer's budget for RESET, however many of its streams are aborted.
@Suite struct PacedResetTests {
    /// The value of `Limits.sentResets`.
    private static let burst = 128

    /// A dialer with open streams that the peer knows of.
    private func open(_ count: Int, places: Int) throws -> (Lone, [StreamID]) {
        let lone = Lone(.dialer, hello: .hello(streams: UInt32(places), unanswered: UInt32(places)))
        let ids = try (0..<count).map { _ in try lone.session.open(Buffer(1), now: lone.now) }
        #expect(lone.output().count == count)
        return (lone, ids)
    }

    @Test func waitForTheirTurnInOrderAndKeepTheirPlaces() throws {
        let (lone, ids) = try open(160, places: 160)
        for id in ids { lone.session.reset(id, code: .cancelled) }
        #expect(lone.output() == ids.prefix(Self.burst).map { .reset($0.rawValue, 1) })
        #expect(lone.takeEvents() == ids.prefix(Self.burst).map { .closed($0) })
        #expect(!lone.hasOutput)

        // 32 RESETs wait, whose streams count as open: 128 more may be opened.
        for _ in 0..<128 { _ = try lone.session.open(Buffer(2), now: lone.now) }
        #expect(throws: StreamOpenError.tooMuchUnderWay) { try lone.session.open(Buffer(2), now: lone.now) }
        _ = lone.output()

        for (turn, id) in ids.dropFirst(Self.burst).enumerated() {
            let began = lone.now
            lone.timeout()
            let waited = lone.now - began
            #expect((.milliseconds(41)...(.milliseconds(42))).contains(waited), "turn \(turn): \(waited)")
            #expect(lone.output() == [.reset(id.rawValue, 1)])
            #expect(lone.takeEvents() == [.closed(id)])
            // Its place is free.
            _ = try lone.session.open(Buffer(3), now: lone.now)
            _ = lone.output()
        }
        // No RESET waits, so the next timeout is that of liveness.
        #expect(try #require(lone.nextTimeout) > lone.now + .seconds(5))
    }

    @Test func whatWaitsSaysNothingMore() throws {
        let (lone, ids) = try open(Self.burst + 2, places: 200)
        let id = ids[Self.burst]
        lone.receive(.response(id.rawValue))
        lone.session.send(id, Buffer(repeating: 1, count: 100_000))
        lone.session.finish(id)
        for id in ids { lone.session.reset(id, code: .cancelled) }
        #expect(lone.output().allSatisfy { $0.type == 7 })
        _ = lone.takeEvents()

        #expect(lone.isIdle)
        lone.session.send(id, Buffer(repeating: 1, count: 100))
        lone.session.finish(id)
        lone.session.reset(id, code: .refused)
        lone.session.consumed(id, 100, now: lone.now)
        #expect(throws: StreamRespondError.notAwaitingAnswer) { try lone.session.respond(id, Buffer(1)) }
        lone.receive(.credit(id.rawValue, 2 << 20), .credit(0, 4 << 20))
        #expect(!lone.hasOutput && lone.takeEvents().isEmpty)
        lone.timeout()
        #expect(lone.output() == [.reset(id.rawValue, 1)])
    }

    /// Bytes for a stream whose RESET waits are discarded. Their credit returns to the connection and not to the
    /// stream.
    @Test func whatComesMeanwhileIsDiscarded() throws {
        var limits = Limits()
        limits.initialConnectionWindow = 256 << 10
        limits.maximumConnectionWindow = 256 << 10
        limits.sentResets = Budget(burst: 1, perSecond: 1)
        let lone = Lone(limits: limits)
        lone.receive(.open(1), .open(3), .open(5))
        _ = lone.takeEvents()
        let piece = [UInt8](repeating: 1, count: 60_000)
        lone.receive(.data(3, piece), .data(5, Array(piece.prefix(10))))
        // In the middle of a frame.
        let frame = WireFrame.data(3, piece).bytes
        lone.receive(Array(frame.prefix(1000)))
        lone.session.reset(1, code: .refused)
        lone.session.reset(3, code: .cancelled)
        lone.receive(Array(frame.dropFirst(1000)))
        lone.receive(.data(3, piece), .data(3, piece), .end(3))
        #expect(lone.delivered[3]?.count == 60_000 + 990)
        #expect(lone.output() == [.reset(1, 2), .credit(0, UInt64(256 << 10) + 240_000)])
        #expect(lone.takeEvents() == [.closed(1)])
        // The peer may not exceed the stream's credit, even after END.
        lone.receive(.data(3, [1]))
        #expect(lone.error == nil)
        lone.timeout()
        #expect(lone.output().filter { $0.type == 7 } == [.reset(3, 1)])
        #expect(lone.takeEvents() == [.closed(3)])
    }

    @Test func creditOfTheStreamHolds() {
        var limits = Limits()
        limits.initialStreamWindow = 1000
        limits.sentResets = Budget(burst: 0, perSecond: 1)
        let lone = Lone(limits: limits)
        lone.receive(.open(1))
        lone.session.reset(1, code: .cancelled)
        lone.receive(.data(1, Array(repeating: 1, count: 1000)))
        #expect(lone.error == nil)
        lone.receive(.data(1, [1]))
        #expect(lone.error == .creditExceeded(1))
    }

    @Test func theEndOfThePeerSparesThem() throws {
        let (lone, ids) = try open(Self.burst + 3, places: 200)
        let (ended, aborted, last) = (ids[Self.burst], ids[Self.burst + 1], ids[Self.burst + 2])
        lone.session.finish(ended)
        #expect(lone.output() == [.end(ended.rawValue)])
        for id in ids { lone.session.reset(id, code: .cancelled) }
        _ = lone.output()
        _ = lone.takeEvents()
        // Both directions have ended: there is nothing to abort.
        lone.receive(.response(ended.rawValue), .end(ended.rawValue))
        lone.receive(.reset(aborted.rawValue, 2))
        #expect(lone.takeEvents() == [.closed(ended), .closed(aborted)])
        lone.timeout()
        #expect(lone.output() == [.reset(last.rawValue, 1)])
        #expect(lone.takeEvents() == [.closed(last)])
    }

    @Test func aConnectionThatClosesDoesNotWait() throws {
        let (lone, ids) = try open(Self.burst + 3, places: 200)
        for id in ids { lone.session.reset(id, code: .cancelled) }
        _ = lone.output()
        _ = lone.takeEvents()
        lone.session.goAway()
        #expect(lone.takeEvents() == [.drained])

        let (other, streams) = try open(Self.burst + 3, places: 200)
        for id in streams { other.session.reset(id, code: .cancelled) }
        _ = other.output()
        _ = other.takeEvents()
        // The peer accepts the first two of the waiting streams, and never knew the third.
        other.receive(.goAway(streams[Self.burst + 1].rawValue, 10))
        #expect(
            Set(other.takeEvents()) == [
                .goAwayReceived(.goingAway, lastStream: streams[Self.burst + 1]), .closed(streams[Self.burst + 2]),
                .drained,
            ])
    }

    @Test func theEndOfTheConnectionDropsThem() throws {
        let (lone, ids) = try open(Self.burst + 3, places: 200)
        for id in ids { lone.session.reset(id, code: .cancelled) }
        lone.receive(WireFrame(type: 99))
        #expect(lone.output().last?.type == 10)
        #expect(lone.nextTimeout == nil && !lone.hasOutput)
        lone.session.handleTimeout(now: lone.now + .seconds(60))
        #expect(!lone.hasOutput)
    }

    /// An OPEN that is refused because of unread streams is aborted at the same pace.
    @Test func refusedOpensAreAmongThem() {
        var limits = Limits()
        limits.unreadStreams = 0
        limits.emptyFrames = Budget(burst: 1000, perSecond: 0)
        limits.sentResets = Budget(burst: 2, perSecond: 1)
        let lone = Lone(limits: limits)
        for id: UInt32 in [1, 3, 5] { lone.receive(.open(id)) }
        #expect(lone.output() == [.reset(1, 6), .reset(3, 6)])
        lone.timeout()
        #expect(lone.output() == [.reset(5, 6)])
        #expect(lone.takeEvents().isEmpty, "the application never heard of them")
    }

    /// A network that stalls and then delivers everything at once: 128 and 24 a second stay below 1,024 for 37 s.
    @Test(arguments: [37, 39]) func aNetworkThatStoodStill(seconds: Int) throws {
        var limits = Limits()
        // Liveness would have ended it after 25 s.
        limits.idleInterval = nil
        let sender = Lone(.dialer, limits: limits)
        let end = sender.now + .seconds(seconds)
        while sender.now < end {
            while let id = try? sender.session.open(Buffer(1), now: sender.now) {
                _ = sender.outputBytes()
                sender.session.reset(id, code: .cancelled)
                _ = sender.outputBytes()
            }
            sender.now = min(end, try #require(sender.nextTimeout))
            _ = sender.outputBytes()
        }
        let peer = Lone()
        peer.receive(sender.written)
        #expect(peer.error == (seconds == 37 ? nil : .tooManyResets))
    }

    /// Either side opens and aborts thousands of streams as fast as possible, on all kinds of links.
    @Test(arguments: UInt64(1)...24) func aFloodHarmsNobody(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let link = EndpointPair.Link(
            latency: .microseconds(.random(in: 0...20_000, using: &generator)),
            bandwidth: Bool.random(using: &generator)
                ? .random(in: 1_000_000...100_000_000, using: &generator) : nil)
        let pair = EndpointPairFactory.connected(seed: seed, link: link)
        var isAnswering = true
        pair.acceptor.onEvent = { end, event, _ in
            guard case .opened(let id, let request) = event else { return }
            if request == [9] || (isAnswering && id.rawValue % 3 == 0) { try? end.session.respond(id, Buffer(1)) }
            if request != [9], id.rawValue % 5 == 0 { end.session.reset(id, code: .refused) }
        }
        // An unrelated stream in the middle of the flood.
        let other = try pair.dialer.session.open(Buffer(9), now: pair.now)
        pair.dialer.session.send(other, Buffer(repeating: 3, count: 3 << 20))
        pair.dialer.session.finish(other)

        var opened: [StreamID] = []
        let end = pair.now + .seconds(60)
        while opened.count < 3000, pair.now < end {
            while let id = try? pair.dialer.session.open(Buffer(1), now: pair.now) {
                opened.append(id)
                if Bool.random(using: &generator) {
                    pair.dialer.session.send(id, Buffer(repeating: 1, count: .random(in: 1...2000, using: &generator)))
                }
            }
            isAnswering = Bool.random(using: &generator)
            pair.run(for: .microseconds(.random(in: 0...40_000, using: &generator)))
            for id in opened.suffix(200) where Bool.random(using: &generator) {
                pair.dialer.session.reset(id, code: .cancelled)
            }
        }
        for id in opened.suffix(300) { pair.dialer.session.reset(id, code: .cancelled) }
        pair.run(for: .seconds(60))
        #expect(pair.dialer.failure == nil && pair.acceptor.failure == nil, "seed \(seed)")
        #expect(opened.count >= 1000, "seed \(seed)")
        #expect(pair.acceptor.received[other]?.count == 3 << 20, "seed \(seed)")
        let closed = pair.dialer.events.reduce(into: [:] as [StreamID: Int]) { counts, event in
            if case .closed(let id) = event { counts[id, default: 0] += 1 }
        }
        #expect(opened.allSatisfy { closed[$0] == 1 }, "seed \(seed)")
        #expect(throws: Never.self, "seed \(seed)") { try pair.dialer.session.open(Buffer(1), now: pair.now) }
    }
}
