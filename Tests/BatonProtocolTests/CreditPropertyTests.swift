// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import BatonTestSupport
import Testing

/// Random applications on random links: credit is never exceeded, bytes arrive in order, and no stream is stuck.
@Suite struct CreditPropertyTests {
    /// One stream, followed from both ends.
    private struct Flow {
        var sent: [Role: [UInt8]] = [.dialer: [], .acceptor: []]
        var left: [Role: Int]
        var isFinished: [Role: Bool] = [.dialer: false, .acceptor: false]
        var wasReset = false
    }

    @Test(arguments: UInt64(1)...40) func everythingArrives(seed: UInt64) throws {
        try run(seed: seed, withResets: false)
    }

    @Test(arguments: UInt64(1001)...1040) func resetsLoseNoCredit(seed: UInt64) throws {
        try run(seed: seed, withResets: true)
    }

    private func randomLimits(_ generator: inout SeededGenerator) -> Limits {
        var limits = Limits()
        limits.initialStreamWindow = .random(in: 500...100_000, using: &generator)
        limits.activeStreamWindow = .random(in: 0...400_000, using: &generator)
        limits.initialConnectionWindow = .random(in: 500...200_000, using: &generator)
        limits.maximumConnectionWindow = .random(in: 500...800_000, using: &generator)
        limits.dataFrameBytes = .random(in: 16_384...100_000, using: &generator)
        limits.sliceBytes = .random(in: 100...100_000, using: &generator)
        limits.resets = Budget(burst: 10_000, perSecond: 1000)
        limits.emptyFrames = Budget(burst: 10_000, perSecond: 1000)
        limits.credits = Budget(burst: 10_000, perSecond: 1000)
        limits.sentResets = Budget(
            burst: .random(in: 1...4, using: &generator), perSecond: .random(in: 1...200, using: &generator))
        return limits
    }

    private func run(seed: UInt64, withResets: Bool) throws {
        var generator = SeededGenerator(seed: seed)
        let link = EndpointPair.Link(
            latency: .microseconds(.random(in: 0...5000, using: &generator)),
            bandwidth: Bool.random(using: &generator) ? .random(in: 1_000_000...1_000_000_000, using: &generator) : nil)
        let pair = EndpointPair(
            seed: seed, link: link, dialerLimits: randomLimits(&generator), acceptorLimits: randomLimits(&generator))
        pair.outputBytes = .random(in: 128...300_000, using: &generator)
        var ends: [Role: Endpoint] = [.dialer: pair.dialer, .acceptor: pair.acceptor]
        for end in ends.values { end.consumesAtOnce = Bool.random(using: &generator) }
        var flows: [StreamID: Flow] = [:]
        var toOpen = Int.random(in: 1...12, using: &generator)

        // Streams that the accepting side knows of.
        var heard: Set<StreamID> = []
        for (_, end) in ends {
            end.onEvent = { end, event, _ in
                if case .opened(let id, _) = event {
                    heard.insert(id)
                    try? end.session.respond(id, Buffer(1))
                }
            }
        }

        var rounds = 0
        func isDone() -> Bool {
            toOpen == 0 && pair.dialer.isIdle && pair.acceptor.isIdle
        }
        while !isDone() {
            rounds += 1
            try #require(rounds < 100_000, "stuck, seed \(seed)")
            let role: Role = Bool.random(using: &generator) ? .dialer : .acceptor
            let end = try #require(ends[role])
            if toOpen > 0, Int.random(in: 0..<4, using: &generator) == 0,
                let id = try? end.session.open(Buffer(1), now: pair.now)
            {
                toOpen -= 1
                flows[id] = Flow(left: [
                    .dialer: .random(in: 0...100_000, using: &generator),
                    .acceptor: .random(in: 0...100_000, using: &generator),
                ])
            }
            for id in flows.keys.sorted() {
                let isOpener = id.rawValue % 2 == (role == .dialer ? 1 : 0)
                guard isOpener || heard.contains(id) else { continue }
                let left = flows[id]?.left[role] ?? 0
                if left > 0, end.session.queuedBytes(of: id) < 100_000 {
                    let bytes = generator.bytes(.random(in: 1...min(left, 50_000), using: &generator))
                    end.session.send(id, Buffer(copying: bytes))
                    flows[id]?.sent[role]? += bytes
                    flows[id]?.left[role] = left - bytes.count
                } else if left == 0, flows[id]?.isFinished[role] == false {
                    end.session.finish(id)
                    flows[id]?.isFinished[role] = true
                }
                if withResets, Int.random(in: 0..<60, using: &generator) == 0 {
                    end.session.reset(id, code: .cancelled)
                    flows[id]?.wasReset = true
                }
                if !end.consumesAtOnce {
                    end.consume(id, .random(in: 0...80_000, using: &generator), now: pair.now)
                }
            }
            pair.run(for: .microseconds(.random(in: 0...3000, using: &generator)))
        }
        // Waiting RESETs are sent meanwhile.
        if withResets { pair.run(for: .seconds(30)) }
        pair.settle()
        ends.removeAll()

        #expect(pair.dialer.failure == nil && pair.acceptor.failure == nil, "seed \(seed)")
        for (id, flow) in flows {
            for (sender, receiver) in [(Role.dialer, pair.acceptor), (.acceptor, pair.dialer)] {
                let sent = flow.sent[sender] ?? []
                let received = receiver.received[id] ?? []
                if flow.wasReset {
                    #expect(sent.starts(with: received), "stream \(id), seed \(seed)")
                } else {
                    #expect(sent == received, "stream \(id), seed \(seed)")
                    #expect(receiver.events.contains(.finished(id)), "stream \(id), seed \(seed)")
                }
            }
            let opener = id.rawValue % 2 == 1 ? pair.dialer : pair.acceptor
            for end in [pair.dialer, pair.acceptor] {
                let closed = end.events.filter { $0 == .closed(id) }.count
                #expect(closed == (end === opener || heard.contains(id) ? 1 : 0), "stream \(id), seed \(seed)")
            }
        }
        // Conservation: at the end the connection still carries a full load in both directions.
        try exchange(100_000, over: pair, seed: seed)
    }

    /// Moves `count` bytes each way on a new stream. It is stuck if credit of the connection was lost.
    private func exchange(_ count: Int, over pair: EndpointPair, seed: UInt64) throws {
        pair.dialer.consumesAtOnce = true
        pair.acceptor.consumesAtOnce = true
        for (id, _) in pair.dialer.unconsumed { pair.dialer.consume(id, now: pair.now) }
        for (id, _) in pair.acceptor.unconsumed { pair.acceptor.consume(id, now: pair.now) }
        let id = try pair.dialer.session.open(Buffer(1), now: pair.now)
        pair.dialer.session.send(id, Buffer(repeating: 1, count: count))
        pair.dialer.session.finish(id)
        #expect(pair.run(for: .seconds(3000)) { pair.acceptor.events.contains(.opened(id, request: [1])) })
        pair.acceptor.session.send(id, Buffer(repeating: 2, count: count))
        pair.acceptor.session.finish(id)
        let isWhole = pair.run(for: .seconds(3000)) {
            pair.dialer.events.contains(.closed(id)) && pair.acceptor.events.contains(.closed(id))
        }
        #expect(isWhole, "credit was lost, seed \(seed)")
        #expect(pair.dialer.received[id]?.count == count, "seed \(seed)")
        #expect(pair.acceptor.received[id]?.count == count, "seed \(seed)")
    }
}
