// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import BatonTestSupport
import Testing

@Suite struct GoAwayTests {
    @Test func oldStreamsFinishAndBothSidesDrain() throws {
        let pair = EndpointPairFactory.connected()
        let id = try pair.dialer.session.open(Buffer(1), now: pair.now)
        pair.run { pair.acceptor.events.contains(.opened(id, request: [1])) }
        pair.acceptor.session.goAway()
        #expect(pair.run { pair.dialer.events.contains(.goAwayReceived(.noError, lastStream: id)) })
        #expect(throws: StreamOpenError.goingAway) { try pair.dialer.session.open(Buffer(1), now: pair.now) }
        #expect(throws: StreamOpenError.goingAway) { try pair.acceptor.session.open(Buffer(1), now: pair.now) }
        try pair.acceptor.session.respond(id, Buffer(2))
        pair.acceptor.session.send(id, Buffer(repeating: 1, count: 5 << 20))
        pair.acceptor.session.finish(id)
        #expect(pair.run { pair.dialer.events.contains(.finished(id)) })
        #expect(!pair.dialer.events.contains(.drained))
        pair.dialer.session.finish(id)
        #expect(pair.run { pair.acceptor.events.contains(.drained) && pair.dialer.events.contains(.drained) })
        #expect(pair.dialer.received[id]?.count == 5 << 20)
        #expect(pair.dialer.events.filter { $0 == .drained }.count == 1)
    }

    @Test func drainsAtOnceWhenNothingIsOpen() {
        let lone = Lone()
        lone.session.goAway(code: .goingAway)
        lone.session.goAway()
        #expect(lone.takeEvents() == [.drained])
        #expect(lone.output() == [.goAway(0, 10)])
    }

    @Test func crossingOpenIsRefusedOnBothSides() throws {
        let pair = EndpointPairFactory.connected()
        pair.acceptor.session.goAway()
        let id = try pair.dialer.session.open(Buffer(1), now: pair.now)
        pair.dialer.session.send(id, Buffer(repeating: 1, count: 1 << 20))
        pair.dialer.session.finish(id)
        #expect(pair.run { pair.dialer.events.contains(.drained) })
        pair.settle()
        #expect(
            pair.dialer.events.suffix(4) == [
                .goAwayReceived(.noError, lastStream: 0), .reset(id, .goingAway), .closed(id), .drained,
            ])
        #expect(!pair.acceptor.events.contains(.opened(id, request: [1])))
        #expect(pair.acceptor.failure == nil && pair.dialer.failure == nil)
    }

    @Test func namesTheLastStreamThatIsTaken() throws {
        let lone = Lone(.dialer)
        let ids = try (0..<4).map { _ in try lone.session.open(Buffer(1), now: lone.now) }
        lone.receive(.goAway(3, 10))
        #expect(
            lone.takeEvents() == [
                .goAwayReceived(.goingAway, lastStream: 3), .reset(ids[2], .goingAway), .closed(ids[2]),
                .reset(ids[3], .goingAway), .closed(ids[3]),
            ])
        // A frame that was not written before the refusal is never written.
        #expect(lone.output() == [.open(1, [1]), .open(3, [1])])
    }

    @Test func mayBeRepeatedLowerAndNeverHigher() {
        let lone = Lone()
        lone.receive(.goAway(8), .goAway(8), .goAway(4))
        #expect(lone.error == nil)
        lone.receive(.goAway(6))
        #expect(lone.error == .goAwayRaised)
    }

    @Test func openBehindOnesOwnIsFatal() {
        let lone = Lone()
        lone.receive(.goAway(0), .open(1))
        #expect(lone.error == .openAfterGoAway(1))
    }

    @Test func carriesTheReasonOfAFailure() {
        let lone = Lone()
        lone.receive(.open(5), WireFrame(type: 99))
        #expect(lone.error == .unknownFrame(type: 99))
        #expect(lone.takeEvents() == [.opened(5, request: [7]), .dead(.unknownFrame(type: 99))])
        #expect(lone.output() == [.goAway(5, 4)])
        #expect(!lone.hasOutput)
    }
}
