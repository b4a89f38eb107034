// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import BatonTestSupport
import Testing

/// For any input, a session ends in a typed error or continues; it never traps.
@Suite struct FuzzTests {
    /// Feeds bytes in random pieces and lets a random application act between them.
    private func feed(_ bytes: [UInt8], to lone: Lone, _ generator: inout SeededGenerator) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let size = min(rest.count, Int.random(in: 1...5000, using: &generator))
            lone.receive(Array(rest.prefix(size)))
            rest = rest.dropFirst(size)
            act(on: lone, upTo: 40, &generator)
        }
    }

    /// One random act of an application, of its clock or of its socket.
    private func act(on lone: Lone, upTo highest: UInt32, _ generator: inout SeededGenerator) {
        let id = StreamID(rawValue: .random(in: 0...highest, using: &generator))
        switch Int.random(in: 0..<10, using: &generator) {
        case 0: lone.session.consumed(id, .random(in: -5...100_000, using: &generator), now: lone.now)
        case 1: if Int.random(in: 0..<4, using: &generator) == 0 { lone.session.reset(id, code: .cancelled) }
        case 2: try? lone.session.respond(id, Buffer(1, 2))
        case 3: lone.session.finish(id)
        case 4: lone.session.send(id, Buffer(repeating: 1, count: 10_000))
        case 5: if let own = try? lone.session.open(Buffer(1), now: lone.now) { lone.opened.append(own) }
        case 6: _ = lone.outputBytes(room: .random(in: 128...5000, using: &generator))
        case 7: lone.wait(.milliseconds(.random(in: 0...500, using: &generator)))
        case 8: if Int.random(in: 0..<200, using: &generator) == 0 { lone.session.goAway() }
        default: lone.session.handleTimeout(now: lone.now)
        }
        lone.drain()
    }

    /// After any input: nothing follows `dead`, and what the session wrote is whole frames.
    private func check(_ lone: Lone, seed: UInt64) {
        _ = lone.output()
        let frames = WireFrame.parse(lone.written)
        #expect(frames != nil, "torn frames, seed \(seed)")
        if lone.session.failure != nil {
            #expect(frames?.last?.type == 10, "seed \(seed)")
            let events = lone.takeEvents()
            if let dead = events.firstIndex(where: { if case .dead = $0 { true } else { false } }) {
                #expect(dead == events.count - 1, "seed \(seed)")
            }
            lone.receive(Array(repeating: 1, count: 100))
            #expect(lone.error == lone.session.failure, "seed \(seed)")
            #expect(!lone.hasOutput, "seed \(seed)")
            #expect(throws: StreamOpenError.self) { try lone.session.open(Buffer(1), now: lone.now) }
        }
    }

    @Test(arguments: UInt64(1)...200) func noise(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let lone = Lone(Bool.random(using: &generator) ? .dialer : .acceptor, hello: nil)
        if Bool.random(using: &generator) { lone.receive(.hello()) }
        feed(generator.bytes(20_000), to: lone, &generator)
        check(lone, seed: seed)
    }

    /// Frames of existing streams, in any order and any state. They reach far deeper than noise.
    @Test(arguments: UInt64(1)...300) func plausibleFrames(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        var limits = Limits()
        // Wide budgets, or most runs would end at one of them.
        let wide = Budget(burst: 10_000, perSecond: 1000)
        limits.resets = wide
        limits.emptyFrames = wide
        limits.unknownFrames = wide
        limits.credits = wide
        limits.pings = wide
        limits.openStreams = 1000
        limits.unansweredRequests = 1000
        let lone = Lone(Bool.random(using: &generator) ? .dialer : .acceptor, limits: limits)
        let isAcceptor = lone.session.role == .acceptor
        var heard: [UInt32] = []
        var handled = 0
        var isMutated = false
        while handled < 500, lone.session.failure == nil {
            handled += 1
            let known = Array(heard.suffix(6)) + lone.opened.suffix(6).map(\.rawValue)
            var frame: WireFrame
            let kind = Int.random(in: 0..<20, using: &generator)
            if kind < 3 || known.isEmpty {
                heard.append((heard.last ?? (isAcceptor ? 0xFFFF_FFFF : 0)) &+ 2)
                frame = .open(heard[heard.count - 1], generator.bytes(.random(in: 0...300, using: &generator)))
            } else {
                let stream = known[Int.random(in: 0..<known.count, using: &generator)]
                switch kind {
                case 3...9: frame = .data(stream, generator.bytes(.random(in: 0...3000, using: &generator)))
                case 10...11: frame = .response(stream)
                case 12...13: frame = .credit(stream, .random(in: 0...(1 << 24), using: &generator))
                case 14: frame = .credit(0, .random(in: 0...(1 << 24), using: &generator))
                case 15: frame = .end(stream)
                case 16: frame = .reset(stream, .random(in: 0...20, using: &generator))
                case 17: frame = .pong(.random(in: 0...3, using: &generator))
                case 18: frame = WireFrame(type: 0x50, flags: 0x80, stream: stream, payload: [1, 2, 3])
                default:
                    _ = lone.output()  // at most one PING is unanswered
                    frame = .ping(1)
                }
            }
            if Int.random(in: 0..<2000, using: &generator) == 0 {
                frame.type = .random(in: 0...255, using: &generator)
                isMutated = true
            }
            var rest = frame.bytes[...]
            while !rest.isEmpty {
                let size = min(rest.count, Int.random(in: 1...1500, using: &generator))
                lone.receive(Array(rest.prefix(size)))
                rest = rest.dropFirst(size)
                act(on: lone, upTo: max(known.max() ?? 1, 1), &generator)
            }
        }
        // None of these frames is an error of the connection.
        if !isMutated { #expect(lone.session.failure == nil, "seed \(seed)") }
        check(lone, seed: seed)
    }

    /// A valid conversation with a few changed bytes.
    @Test(arguments: UInt64(1)...200) func mutatedConversation(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var bytes = WireFrame.hello().bytes
        for id: UInt32 in stride(from: 1, to: 40, by: 2) {
            bytes += WireFrame.open(id).bytes + WireFrame.data(id, generator.bytes(500)).bytes
            bytes += WireFrame.credit(0, UInt64(id) << 22).bytes + WireFrame.end(id).bytes
        }
        for _ in 0..<Int.random(in: 1...4, using: &generator) {
            let position = Int.random(in: 0..<bytes.count, using: &generator)
            switch Int.random(in: 0..<3, using: &generator) {
            case 0: bytes[position] = .random(in: 0...255, using: &generator)
            case 1: bytes.remove(at: position)
            default: bytes.insert(.random(in: 0...255, using: &generator), at: position)
            }
        }
        let lone = Lone(.acceptor, hello: nil)
        feed(bytes, to: lone, &generator)
        check(lone, seed: seed)
    }

    /// The result does not depend on the pieces in which bytes come.
    @Test(arguments: UInt64(1)...60) func piecesMakeNoDifference(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var bytes: [UInt8] = []
        var id: UInt32 = 1
        for _ in 0..<40 {
            bytes += WireFrame.open(id, generator.bytes(.random(in: 0...5000, using: &generator))).bytes
            bytes += WireFrame.data(id, generator.bytes(.random(in: 1...9000, using: &generator))).bytes
            bytes += WireFrame(type: 0x99, flags: 0x80, payload: generator.bytes(33)).bytes
            if Bool.random(using: &generator) { bytes += WireFrame.end(id).bytes }
            bytes += WireFrame.reset(id).bytes
            id += 2
        }
        if Bool.random(using: &generator) { bytes += generator.bytes(1000) }
        let whole = Lone()
        whole.receive(bytes)
        let pieces = Lone()
        var rest = bytes[...]
        while !rest.isEmpty {
            let size = Int.random(in: 1...40, using: &generator)
            pieces.receive(Array(rest.prefix(size)))
            rest = rest.dropFirst(size)
        }
        #expect(whole.takeEvents() == pieces.takeEvents(), "seed \(seed)")
        #expect(whole.delivered == pieces.delivered, "seed \(seed)")
        #expect(whole.session.failure == pieces.session.failure, "seed \(seed)")
    }
}
