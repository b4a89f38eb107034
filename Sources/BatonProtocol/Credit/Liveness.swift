// SPDX-License-Identifier: Apache-2.0

/// The one PING that a side may have unanswered, and what it proves.
struct Liveness {
    private var ping: (token: UInt64, asked: Instant)?
    private var lastToken: UInt64 = 0
    /// When the last byte came from the peer.
    private var lastReceived: Instant

    init(now: Instant) {
        lastReceived = now
    }

    mutating func received(now: Instant) {
        lastReceived = max(lastReceived, now)
    }

    /// The deadline of the unanswered PING, or the time for the next one.
    ///
    /// Any byte from the peer defers the deadline, because a PONG may be stuck behind data on a slow link. The hard
    /// deadline stays: a peer that sends data and never answers is broken.
    func nextTimeout(_ limits: Limits) -> Instant? {
        guard let ping else { return limits.idleInterval.map { lastReceived + $0 } }
        return min(max(ping.asked, lastReceived) + limits.pingDeadline, ping.asked + limits.pingHardDeadline)
    }

    /// Whether a PING is under way.
    var isPinging: Bool { ping != nil }

    /// Begins a PING and returns its payload.
    mutating func beginPing(now: Instant) -> UInt64 {
        lastToken &+= 1
        ping = (lastToken, now)
        return lastToken
    }

    /// Handles a PONG. Returns false if it answers no PING.
    mutating func answered(token: UInt64) -> Bool {
        guard ping?.token == token else { return false }
        ping = nil
        return true
    }
}
