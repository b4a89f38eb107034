// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import BatonTestSupport
import Testing

@Suite struct LivenessTests {
    @Test func silenceIsAskedAndThenFatal() {
        let lone = Lone()
        #expect(lone.session.nextTimeout() == lone.now + .seconds(15))
        lone.wait(.seconds(15) - .nanoseconds(1))
        lone.session.handleTimeout(now: lone.now)
        #expect(!lone.hasOutput)
        lone.wait(.nanoseconds(1))
        lone.session.handleTimeout(now: lone.now)
        #expect(lone.output().map(\.type) == [8])
        #expect(lone.session.nextTimeout() == lone.now + .seconds(10))
        lone.wait(.seconds(10) - .nanoseconds(1))
        lone.session.handleTimeout(now: lone.now)
        #expect(lone.session.failure == nil)
        lone.wait(.nanoseconds(1))
        lone.session.handleTimeout(now: lone.now)
        #expect(lone.takeEvents() == [.dead(.pingTimeout)])
        #expect(lone.output() == [.goAway(0, 9)])
    }

    @Test func aPongIsLife() throws {
        let lone = Lone()
        lone.timeout()
        let ping = try #require(lone.output().first)
        lone.wait(.milliseconds(30))
        lone.receive(.pong(ping.number))
        #expect(lone.session.nextTimeout() == lone.now + .seconds(15))
    }

    /// A PING that cannot even be written (the socket takes nothing) has the same deadline.
    @Test func anUnwrittenPingCounts() {
        let lone = Lone()
        lone.timeout()
        lone.wait(.seconds(10))
        lone.session.handleTimeout(now: lone.now)
        #expect(lone.session.failure == .pingTimeout)
    }

    @Test func otherBytesDeferTheDeadlineButNotForEver() {
        let lone = Lone()
        lone.timeout()
        let asked = lone.now
        _ = lone.output()
        for _ in 0..<11 {
            lone.wait(.seconds(5))
            lone.receive(.credit(0, 1 << 30 + (lone.now.nanoseconds)))
            lone.session.handleTimeout(now: lone.now)
            #expect(lone.session.failure == nil)
        }
        #expect(lone.session.nextTimeout() == asked + .seconds(60))
        lone.timeout()
        #expect(lone.session.failure == .pingTimeout)
    }

    @Test func canBeTurnedOff() {
        var limits = Limits()
        limits.idleInterval = nil
        let lone = Lone(limits: limits)
        #expect(lone.session.nextTimeout() == nil)
        lone.session.handleTimeout(now: lone.now + .seconds(100_000))
        #expect(lone.session.failure == nil)
    }

    @Test func idlePairsStayAliveAndCutOnesDoNot() {
        let pair = EndpointPairFactory.connected(link: .init(latency: .milliseconds(200)))
        pair.run(for: .seconds(3600))
        #expect(pair.dialer.failure == nil && pair.acceptor.failure == nil)
        #expect(pair.dialer.session.failure == nil && pair.acceptor.session.failure == nil)
        let cutAt = pair.now
        pair.cut()
        pair.run(for: .seconds(60)) { pair.dialer.session.failure != nil && pair.acceptor.session.failure != nil }
        #expect(pair.dialer.events.last == .dead(.pingTimeout))
        #expect(pair.acceptor.events.last == .dead(.pingTimeout))
        #expect(pair.now - cutAt <= .seconds(25.5))
    }

    @Test func pingsAreAnsweredWithTheirPayload() {
        let lone = Lone()
        lone.receive(.ping(0x0102_0304_0506_0708))
        #expect(lone.output() == [.pong(0x0102_0304_0506_0708)])
    }

    @Test func aSecondPingBeforeTheAnswerIsFatal() {
        let lone = Lone()
        lone.receive(.ping(1), .ping(2))
        #expect(lone.error == .tooManyPings)
    }
}
