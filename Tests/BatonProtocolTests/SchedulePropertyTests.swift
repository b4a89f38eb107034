// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import BatonTestSupport
import Testing

/// Documents that always have more to send, on random links in simulated time. They share the link evenly, and small
/// streams overtake them.
@Suite struct SchedulePropertyTests {
    /// The parts of one run.
    private struct Run {
        let pair: EndpointPair
        let documents: [StreamID]
        let bandwidth: Int
        let latency: Duration
        let capacity: Int
        let slice: Int

        init(seed: UInt64) throws {
            var generator = SeededGenerator(seed: seed)
            bandwidth = .random(in: 200_000...2_000_000, using: &generator)
            latency = .microseconds(.random(in: 100...30_000, using: &generator))
            capacity = .random(in: 10_000...60_000, using: &generator)
            slice = .random(in: 500...8000, using: &generator)
            var limits = Limits()
            limits.initialStreamWindow = 8 << 20
            limits.initialConnectionWindow = 64 << 20
            limits.maximumConnectionWindow = 64 << 20
            limits.sliceBytes = slice
            let link = EndpointPair.Link(
                latency: latency, bandwidth: bandwidth, fragments: false, capacity: capacity)
            let pair = EndpointPairFactory.connected(seed: seed, link: link, dialer: limits, acceptor: limits)
            let count = Int.random(in: 2...6, using: &generator)
            pair.outputBytes = .random(in: 4000...20_000, using: &generator)
            documents = try (0..<count).map { _ in try pair.dialer.session.open(Buffer(1), now: pair.now) }
            self.pair = pair
        }

        /// Queues more for each document than the link can take soon.
        func fill() {
            for id in documents where pair.dialer.session.queuedBytes(of: id) < 200_000 {
                pair.dialer.session.send(id, Buffer(repeating: 1, count: 200_000))
            }
        }

        /// Advances simulated time, with full queues of the documents.
        @discardableResult
        func run(for duration: Duration, until condition: () -> Bool = { false }) -> Bool {
            let end = pair.now + duration
            while pair.now < end, !condition() {
                fill()
                pair.run(for: .milliseconds(10), until: condition)
            }
            return condition()
        }

        func arrived(_ id: StreamID) -> Int { pair.acceptor.received[id]?.count ?? 0 }

        /// The longest wait of a stream that has just begun, in time on the link.
        var bound: Duration {
            let waiting = capacity + 2 * pair.outputBytes + (documents.count + 1) * (slice + 9)
            return latency + .nanoseconds(Int64(waiting) * 1_000_000_000 / Int64(bandwidth)) + .milliseconds(1)
        }
    }

    @Test("However many there are, each has the same of the link at any time", arguments: 1...25 as ClosedRange<UInt64>)
    func shares(seed: UInt64) throws {
        let run = try Run(seed: seed)
        run.run(for: .milliseconds(200))
        let start = run.documents.map(run.arrived)
        for _ in 0..<6 {
            run.run(for: .milliseconds(100))
            let counts = zip(run.documents, start).map { run.arrived($0) - $1 }
            let (least, most) = (counts.min() ?? 0, counts.max() ?? 0)
            #expect(most - least <= 2 * run.slice, "\(counts), seed \(seed)")
        }
        // The link is never idle because of it.
        let whole = run.documents.map(run.arrived).reduce(0, +)
        #expect(Double(whole) > Double(run.bandwidth) * 0.6, "\(whole) bytes, seed \(seed)")
    }

    @Test("What weighs eight times as much has eight times as much", arguments: 201...205 as ClosedRange<UInt64>)
    func weights(seed: UInt64) throws {
        let run = try Run(seed: seed)
        let (heavy, light) = (run.documents[0], run.documents[1...])
        run.pair.dialer.session.setWeight(8, of: heavy)
        run.run(for: .milliseconds(200))
        let start = run.documents.map(run.arrived)
        run.run(for: .seconds(2))
        let counts = zip(run.documents, start).map { run.arrived($0) - $1 }
        // The measurement may begin or end within a turn, so each count may differ by one.
        for (_, count) in zip(light, counts[1...]) {
            #expect(abs(counts[0] - 8 * count) <= 2 * 16 * run.slice, "\(counts), slice \(run.slice), seed \(seed)")
        }
    }

    @Test("What is small is there after what the link has taken before", arguments: 101...125 as ClosedRange<UInt64>)
    func smallOnesPass(seed: UInt64) throws {
        let run = try Run(seed: seed)
        var generator = SeededGenerator(seed: seed)
        run.run(for: .milliseconds(200))
        for _ in 0..<8 {
            run.run(for: .milliseconds(Int64.random(in: 1...60, using: &generator)))
            let begun = run.pair.now
            let id = try run.pair.dialer.session.open(Buffer(2), now: begun)
            let size = Int.random(in: 1...run.slice, using: &generator)
            run.pair.dialer.session.send(id, Buffer(repeating: 3, count: size))
            run.pair.dialer.session.finish(id)
            #expect(run.run(for: .seconds(10)) { run.pair.acceptor.events.contains(.finished(id)) }, "seed \(seed)")
            #expect(run.pair.now - begun <= run.bound, "\(run.pair.now - begun) of \(run.bound), seed \(seed)")
        }
    }
}
