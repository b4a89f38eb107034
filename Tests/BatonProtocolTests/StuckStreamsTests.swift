// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import BatonTestSupport
import Testing

/// Streams whose bytes an application does not consume, beside one whose bytes it does.
@Suite struct StuckStreamsTests {
    private static let bytes = 300_000

    private static func limits(
        first: Int, leastOfConnection least: Int, connection: Int, _ generator: inout SeededGenerator
    ) -> Limits {
        var limits = Limits()
        limits.initialStreamWindow = first
        limits.activeStreamWindow = .random(in: 0...connection, using: &generator)
        limits.maximumConnectionWindow = connection
        limits.initialConnectionWindow = .random(in: least...connection, using: &generator)
        return limits
    }

    /// Their windows have grown to the maximum, by a call or by earlier consumption.
    @Test(
        "However far the windows of streams have grown that nobody consumes any more, another has all that it is sent",
        arguments: UInt64(1)...60)
    func another(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let (first, few) = (Int.random(in: 100...20_000, using: &generator), Bool.random(using: &generator))
        let stuck = Int.random(in: 1...(few ? 3 : 15), using: &generator)
        let window = Int.random(in: few ? 4...60 : 64...200, using: &generator) * first
        let limits = Self.limits(
            first: first, leastOfConnection: (few ? 4 : 16) * first, connection: window, &generator)
        let link = EndpointPair.Link(
            latency: .microseconds(.random(in: 0...20_000, using: &generator)), bandwidth: 50_000_000)
        let pair = EndpointPair(seed: seed, link: link, dialerLimits: limits)
        pair.run { pair.dialer.session.peer != nil && pair.acceptor.session.peer != nil }
        pair.dialer.keepsReceived = false
        pair.dialer.consumesAtOnce = false
        pair.acceptor.onEvent = { end, event, _ in
            guard case .opened(let id, _) = event else { return }
            try? end.session.respond(id, Buffer(1))
            for _ in 0..<64 { end.session.send(id, Buffer(repeating: 1, count: 100_000)) }
        }
        for _ in 0..<stuck {
            let id = try pair.dialer.session.open(Buffer(1), now: pair.now)
            if Bool.random(using: &generator) {
                pair.dialer.session.widenWindow(of: id, to: .random(in: 1...2_000_000, using: &generator))
            } else {
                var left = Int.random(in: 0...400_000, using: &generator)
                pair.run(for: .seconds(5)) {
                    left -= pair.dialer.consume(id, now: pair.now)
                    return left <= 0
                }
            }
        }
        pair.run(for: .seconds(5)) { false }
        let id = try pair.dialer.session.open(Buffer(1), now: pair.now)
        var count = 0
        let isWhole = pair.run(for: .seconds(20)) {
            count += pair.dialer.consume(id, now: pair.now)
            return count >= Self.bytes
        }
        #expect(isWhole, "seed \(seed): \(count) bytes beside \(stuck) stuck streams, with \(limits)")
        #expect(pair.dialer.failure == nil && pair.acceptor.failure == nil, "seed \(seed)")
    }

    @Test("A window that is widened before its stream is answered is told behind OPEN, in one frame")
    func widened() throws {
        let lone = Lone(.dialer, limits: Limits(), hello: .hello(connection: 1 << 20, stream: 1 << 20))
        _ = lone.output()
        let id = try lone.session.open(Buffer(1), now: lone.now)
        lone.session.widenWindow(of: id, to: 3 << 20)
        lone.session.widenWindow(of: id, to: 1 << 20)
        #expect(lone.session.window(of: id) == 3 << 20)
        let frames = lone.output()
        #expect(frames.map(\.type) == [2, 5, 5], "OPEN, and credit of the stream and of the connection")
        #expect(frames.dropFirst().contains(.credit(id.rawValue, 3 << 20)))
        // Twice the promised bytes, so that another stream gets as much.
        #expect(frames.dropFirst().contains(.credit(0, 6 << 20)))
        // This stream is gone.
        lone.session.widenWindow(of: 99, to: 1 << 20)
        #expect(!lone.hasOutput)
    }

    @Test("A window becomes the active one with the first byte that is consumed")
    func active() {
        var limits = Limits()
        limits.initialStreamWindow = 1000
        limits.activeStreamWindow = 50_000
        let lone = Lone(limits: limits)
        lone.receive(.open(1), .data(1, Array(repeating: 0, count: 1000)))
        _ = lone.output()
        lone.session.consumed(1, 1, now: lone.now)
        #expect(lone.output() == [.credit(1, 50_001)])
        #expect(lone.session.window(of: 1) == 50_000)
    }
}
