// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import BatonTestSupport
import Testing

@Suite struct StreamTests {
    @Test func requestResponseDataAndEnd() throws {
        let lone = Lone()
        lone.receive(.open(1, [1, 2]), .data(1, [3, 4]), .end(1))
        #expect(lone.takeEvents() == [.opened(1, request: [1, 2]), .finished(1)])
        #expect(lone.delivered[1] == [3, 4])
        lone.session.consumed(1, 2, now: lone.now)
        try lone.session.respond(1, Buffer(5))
        lone.session.send(1, Buffer(6, 7))
        lone.session.finish(1)
        #expect(lone.session.queuedBytes(of: 1) == 2)
        let frames = lone.output()
        #expect(frames == [.response(1, [5]), .data(1, [6, 7]), .end(1)])
        #expect(lone.takeEvents() == [.closed(1)])
        #expect(lone.isIdle)
    }

    /// The session stops before payload while an event waits, so that the driver never sees data of an unknown stream.
    @Test func eventsComeBeforeTheDataBehindThem() throws {
        var session = Session(role: .acceptor, now: Instant(nanoseconds: 1))
        var log: [String] = []
        let bytes = [WireFrame.hello(), .open(1), .data(1, [1]), .open(3), .data(1, [2]), .end(1), .data(3, [3])]
            .flatMap(\.bytes)
        try bytes.withUnsafeBytes { whole in
            var rest = whole
            while !rest.isEmpty {
                let taken = try session.receive(rest, now: Instant(nanoseconds: 2)) { id, payload in
                    log.append("data \(id) \(payload[0])")
                }
                rest = UnsafeRawBufferPointer(rebasing: rest[taken...])
                while let event = session.nextEvent() {
                    switch event {
                    case .opened(let id, _): log.append("opened \(id)")
                    case .finished(let id): log.append("finished \(id)")
                    case .helloReceived: log.append("hello")
                    case .responded, .reset, .stopped, .closed, .goAwayReceived, .drained, .dead:
                        log.append("?")
                    }
                }
            }
        }
        #expect(log == ["hello", "opened 1", "data 1 1", "opened 3", "data 1 2", "finished 1", "data 3 3"])
    }

    @Test func halfCloseInEitherOrder() throws {
        for dialerFirst in [true, false] {
            let pair = EndpointPairFactory.connected()
            let id = try pair.dialer.session.open(Buffer(1), now: pair.now)
            #expect(pair.run { pair.acceptor.events.contains(.opened(id, request: [1])) })
            try pair.acceptor.session.respond(id, Buffer(2))
            let first = dialerFirst ? pair.dialer : pair.acceptor
            let second = dialerFirst ? pair.acceptor : pair.dialer
            first.session.finish(id)
            #expect(pair.run { second.events.contains(.finished(id)) })
            // The other direction is not limited.
            second.session.send(id, Buffer(repeating: 3, count: 3 << 20))
            second.session.finish(id)
            #expect(pair.run { first.events.contains(.closed(id)) && second.events.contains(.closed(id)) })
            #expect(first.received[id]?.count == 3 << 20)
            #expect(second.received[id] == nil)
        }
    }

    @Test func messagesOfAnyAllowedSizeCross() throws {
        let pair = EndpointPairFactory.connected()
        for size in [0, 1, 117, 65_535, 65_536] {
            let message = pair.generator.bytes(size)
            let id = try pair.dialer.session.open(Buffer(copying: message), now: pair.now)
            #expect(pair.run { pair.acceptor.events.contains(.opened(id, request: message)) })
            try pair.acceptor.session.respond(id, Buffer(copying: message))
            #expect(pair.run { pair.dialer.events.contains(.responded(id, message: message)) })
        }
        let tooLong = Buffer(repeating: 0, count: 65_537)
        #expect(throws: StreamOpenError.messageTooLarge) { try pair.dialer.session.open(tooLong, now: pair.now) }
        let id = try pair.dialer.session.open(Buffer(1), now: pair.now)
        pair.run { pair.acceptor.events.contains(.opened(id, request: [1])) }
        #expect(throws: StreamRespondError.messageTooLarge) { try pair.acceptor.session.respond(id, tooLong) }
        try pair.acceptor.session.respond(id, Buffer(2))
    }

    @Test func bytesQueuedBeforeTheAnswerFollowIt() throws {
        let lone = Lone()
        lone.receive(.open(1))
        lone.session.send(1, Buffer(9))
        #expect(lone.output().isEmpty)
        try lone.session.respond(1, Buffer(5))
        #expect(lone.output() == [.response(1, [5]), .data(1, [9])])
    }

    @Test func respondingTwiceOrToNobodyIsAnError() throws {
        let lone = Lone()
        lone.receive(.open(1))
        try lone.session.respond(1, Buffer(5))
        #expect(throws: StreamRespondError.notAwaitingAnswer) { try lone.session.respond(1, Buffer(5)) }
        #expect(throws: StreamRespondError.notAwaitingAnswer) { try lone.session.respond(3, Buffer(5)) }
        let own = try lone.session.open(Buffer(1), now: lone.now)
        #expect(throws: StreamRespondError.notAwaitingAnswer) { try lone.session.respond(own, Buffer(5)) }
    }

    @Test func finishingUnansweredResets() {
        let lone = Lone()
        lone.receive(.open(1))
        lone.session.finish(1)
        #expect(lone.output() == [.reset(1, 3)])
        #expect(lone.takeEvents() == [.opened(1, request: [7]), .closed(1)])
    }

    @Test func whatIsSentAfterFinishIsDropped() throws {
        let lone = Lone(.dialer)
        let id = try lone.session.open(Buffer(1), now: lone.now)
        lone.session.finish(id)
        lone.session.finish(id)
        lone.session.send(id, Buffer(1))
        #expect(lone.session.queuedBytes(of: id) == 0)
        #expect(lone.output() == [.open(1, [1]), .end(1)])
    }

    // MARK: Ids

    @Test(arguments: [UInt32(2), 4, 0xFFFF_FFFE]) func wrongParityIsFatal(id: UInt32) {
        let lone = Lone(.acceptor)
        lone.receive(.open(id))
        #expect(lone.error == .invalidStreamID(StreamID(rawValue: id)))
    }

    @Test func parityOfTheDialersPeerIsEven() {
        let lone = Lone(.dialer)
        lone.receive(.open(2))
        #expect(lone.takeEvents() == [.opened(2, request: [7])])
        lone.receive(.open(3))
        #expect(lone.error == .invalidStreamID(3))
    }

    @Test func idsRiseAndMaySkip() {
        let lone = Lone()
        lone.receive(.open(1), .open(9), .open(0xFFFF_FFFF))
        #expect(lone.error == nil)
        lone.receive(.open(11))
        #expect(lone.error == .invalidStreamID(11))
    }

    @Test func reuseIsFatalEvenAfterTheEnd() {
        let lone = Lone()
        lone.receive(.open(1), .reset(1))
        #expect(lone.isIdle)
        lone.receive(.open(1))
        #expect(lone.error == .invalidStreamID(1))
    }

    @Test func openOnStreamZeroIsMisplaced() {
        let lone = Lone()
        lone.receive(.open(0))
        #expect(lone.error == .frameMisplaced(type: 2, stream: 0))
    }

    @Test(arguments: [WireFrame.data(1, [1]), .end(1), .reset(1), .response(1), .credit(1, 9), .data(2, [1]), .end(2)])
    func framesForIdleStreamsAreFatal(frame: WireFrame) {
        let lone = Lone()
        lone.receive(frame)
        #expect(lone.error == .unknownStream(StreamID(rawValue: frame.stream)))
    }

    // MARK: Stream errors: the stream ends, the connection goes on

    @Test func dataBeforeTheResponse() throws {
        let lone = Lone(.dialer)
        let id = try lone.session.open(Buffer(1), now: lone.now)
        _ = lone.output()
        lone.receive(.data(1, [1, 2, 3]))
        #expect(lone.takeEvents() == [.reset(id, .protocolError), .closed(id)])
        #expect(lone.output() == [.reset(1, 4)])
        #expect(lone.delivered.isEmpty)
        #expect(lone.error == nil)
        _ = try lone.session.open(Buffer(1), now: lone.now)
    }

    @Test func endBeforeTheResponse() throws {
        let lone = Lone(.dialer)
        let id = try lone.session.open(Buffer(1), now: lone.now)
        lone.receive(.end(1))
        #expect(lone.takeEvents() == [.reset(id, .protocolError), .closed(id)])
    }

    @Test func secondResponse() throws {
        let lone = Lone(.dialer)
        let id = try lone.session.open(Buffer(1), now: lone.now)
        lone.receive(.response(1), .response(1))
        #expect(lone.takeEvents() == [.responded(id, message: [8]), .reset(id, .protocolError), .closed(id)])
        #expect(lone.error == nil)
    }

    @Test func responseToTheAsker() {
        let lone = Lone()
        lone.receive(.open(1), .response(1))
        #expect(lone.takeEvents() == [.opened(1, request: [7]), .reset(1, .protocolError), .closed(1)])
    }

    @Test(arguments: [WireFrame.data(1, [1]), .end(1)]) func anythingAfterEnd(frame: WireFrame) {
        let lone = Lone()
        lone.receive(.open(1), .end(1), frame, .open(3))
        #expect(
            lone.takeEvents() == [
                .opened(1, request: [7]), .finished(1), .reset(1, .protocolError), .closed(1),
                .opened(3, request: [7]),
            ])
        #expect(lone.error == nil)
    }

    @Test func closedWaitsForConsumption() throws {
        let lone = Lone()
        lone.receive(.open(1), .data(1, [1, 2, 3]), .end(1))
        try lone.session.respond(1, Buffer(5))
        lone.session.finish(1)
        _ = lone.output()
        #expect(lone.takeEvents() == [.opened(1, request: [7]), .finished(1)])
        lone.session.consumed(1, 2, now: lone.now)
        #expect(lone.takeEvents().isEmpty)
        lone.session.consumed(1, 1, now: lone.now)
        #expect(lone.takeEvents() == [.closed(1)])
    }
}
