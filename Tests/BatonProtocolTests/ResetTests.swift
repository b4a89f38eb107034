// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import BatonTestSupport
import Testing

@Suite struct ResetTests {
    @Test func abortsBothDirectionsWithItsCode() throws {
        let pair = EndpointPairFactory.connected()
        let id = try pair.dialer.session.open(Buffer(1), now: pair.now)
        #expect(pair.run { pair.acceptor.events.contains(.opened(id, request: [1])) })
        pair.acceptor.session.reset(id, code: ApplicationErrorCode(rawValue: 0xDEAD_BEEF))
        #expect(pair.run { pair.dialer.events.contains(.closed(id)) })
        #expect(
            pair.dialer.events.suffix(2) == [.reset(id, ApplicationErrorCode(rawValue: 0xDEAD_BEEF)), .closed(id)])
        #expect(pair.acceptor.events.last == .closed(id))
    }

    @Test func crossingOnesAreHarmless() throws {
        let pair = EndpointPairFactory.connected()
        for _ in 0..<200 {
            let id = try pair.dialer.session.open(Buffer(1), now: pair.now)
            pair.run { pair.acceptor.events.contains(.opened(id, request: [1])) }
            pair.dialer.session.reset(id, code: .cancelled)
            pair.acceptor.session.reset(id, code: .refused)
            // No faster than RESETs may leave.
            pair.run(for: .milliseconds(50))
        }
        #expect(pair.dialer.failure == nil && pair.acceptor.failure == nil)
        #expect(pair.dialer.isIdle && pair.acceptor.isIdle)
        // Each side reports its own end of the stream, and not the other's RESET.
        #expect(!pair.dialer.events.contains { if case .reset = $0 { true } else { false } })
    }

    @Test(arguments: [ApplicationErrorCode.noError, .programFailed(status: 1), .programFailed(status: 255)])
    func withACodeThatKeepsInputLeavesWhatCame(code: ApplicationErrorCode) throws {
        let lone = Lone()
        lone.receive([.open(1)])
        try lone.session.respond(1, Buffer(9))
        lone.session.send(1, Buffer(repeating: 7, count: 4 << 20))
        _ = lone.output()
        lone.receive([.data(1, [1, 2, 3]), .reset(1, code.rawValue)])
        #expect(lone.events.last == .stopped(1, code))
        #expect(lone.session.queuedBytes(of: 1) == 0 && lone.session.holds(1))
        lone.session.send(1, Buffer(8))
        lone.session.finish(1)
        #expect(lone.output().filter { $0.type != 5 }.isEmpty)
        lone.session.consumed(1, 3, now: lone.now)
        let isHeld = lone.session.holds(1)
        #expect(!isHeld)
    }

    @Test func inPlaceOfAnAnswerKeepsNothing() throws {
        let lone = Lone(.dialer)
        let id = try lone.session.open(Buffer(1), now: lone.now)
        _ = lone.output()
        lone.receive([.reset(id.rawValue, 257)])
        #expect(lone.events.suffix(2) == [.reset(id, .programFailed(status: 1)), .closed(id)])
    }

    @Test func dropsWhatIsQueued() throws {
        let lone = Lone(.dialer)
        let id = try lone.session.open(Buffer(1), now: lone.now)
        _ = lone.output()
        lone.session.send(id, Buffer(repeating: 1, count: 4 << 20))
        lone.session.finish(id)
        lone.session.reset(id, code: .cancelled)
        #expect(lone.session.queuedBytes(of: id) == 0)
        #expect(lone.output() == [.reset(1, 1)])
        #expect(!lone.hasOutput)
    }

    @Test func ofAnUnwrittenOpenSaysNothing() throws {
        let lone = Lone(.dialer)
        let id = try lone.session.open(Buffer(1), now: lone.now)
        lone.session.reset(id, code: .cancelled)
        #expect(lone.output().isEmpty)
        _ = try lone.session.open(Buffer(2), now: lone.now)
        #expect(lone.output() == [.open(3, [2])])
    }

    @Test func ofAHalfWrittenOpenFollowsIt() throws {
        let lone = Lone(.dialer)
        let message = [UInt8](repeating: 5, count: 1000)
        let id = try lone.session.open(Buffer(copying: message), now: lone.now)
        let first = lone.outputBytes(room: 200)
        lone.session.reset(id, code: .cancelled)
        let frames = WireFrame.parse(first + lone.outputBytes())
        #expect(frames == [.open(1, message), .reset(1, 1)])
    }

    /// Bytes of a stream that nobody will read return their credit, wherever the RESET meets them.
    @Test func discardedBytesReturnConnectionCredit() throws {
        var limits = Limits()
        limits.initialConnectionWindow = 1 << 20
        limits.initialStreamWindow = 1 << 20
        let lone = Lone(limits: limits)
        let megabyte = (0..<16).map { _ in WireFrame.data(1, Array(repeating: 1, count: 65_536)) }
        lone.receive([.open(1)] + megabyte.dropLast())
        #expect(lone.output().filter { $0.type == 5 }.isEmpty)
        // In the middle of the last frame: the rest of it is discarded as well.
        let last = megabyte[0].bytes
        lone.receive(Array(last.prefix(1000)))
        lone.session.reset(1, code: .cancelled)
        #expect(lone.output() == [.reset(1, 1), .credit(0, 2 << 20)])
        let before = lone.delivered[1]?.count
        lone.receive(Array(last.dropFirst(1000)))
        #expect(lone.delivered[1]?.count == before)
        // Frames may be on their way before the peer knows of the RESET.
        lone.receive(megabyte)
        #expect(lone.output() == [.credit(0, 3 << 20)])
        #expect(lone.error == nil)
        lone.session.consumed(1, 1 << 20, now: lone.now)
        #expect(!lone.hasOutput)
    }

    @Test func byThePeerReturnsConnectionCreditToo() {
        var limits = Limits()
        limits.initialConnectionWindow = 65_536
        let lone = Lone(limits: limits)
        lone.receive(.open(1), .data(1, Array(repeating: 1, count: 65_536)), .reset(1, 1))
        #expect(lone.takeEvents() == [.opened(1, request: [7]), .reset(1, .cancelled), .closed(1)])
        #expect(lone.output().filter { $0.type == 5 } == [.credit(0, 131_072)])
    }

    @Test func lateFramesForForgottenStreamsAreIgnored() {
        let lone = Lone()
        lone.receive(.open(1))
        lone.session.reset(1, code: .cancelled)
        lone.receive(.data(1, [1]), .credit(1, 2 << 20), .end(1), .reset(1))
        #expect(lone.error == nil)
        #expect(lone.takeEvents() == [.opened(1, request: [7]), .closed(1)])
    }

    /// Frames that a peer sent before it could know of a RESET are not charged to it, however often that happens.
    @Test func crossingFramesAreNotChargedToThePeer() {
        var limits = Limits()
        limits.emptyFrames = Budget(burst: 4, perSecond: 0)
        let lone = Lone(limits: limits)
        for index in 0..<200 {
            let id = UInt32(2 * index + 1)
            lone.receive(.open(id))
            lone.session.reset(StreamID(rawValue: id), code: .cancelled)
            lone.receive(.data(id, [1]), .credit(id, 2 << 20), .end(id), .reset(id))
            _ = lone.output()
        }
        #expect(lone.error == nil)
        lone.receive(.reset(1), .reset(1), .reset(1))
        #expect(lone.error == .tooManyEmptyFrames)
    }

    /// An answer that waited when the asker gave up must not stay in memory.
    @Test func dropsAnAnswerThatWaits() throws {
        let lone = Lone()
        weak var response: Buffer?
        try {
            let buffer = Buffer(repeating: 1, count: 65_536)
            response = buffer
            lone.receive(.open(1))
            try lone.session.respond(1, buffer)
        }()
        #expect(response != nil)
        lone.receive(.reset(1))
        #expect(response == nil)
        #expect(lone.output().isEmpty)
    }
}
