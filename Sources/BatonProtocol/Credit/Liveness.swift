// SPDX-License-Identifier: Apache-2.0

/// The one PING that a side may have unanswered, what it proves, and the round trip that it measures.
struct Liveness {
    /// While data arrives, the round trip is measured again after this time.
    private static let probeInterval: UInt64 = 1_000_000_000

    private enum Ping {
        case none
        /// Waits in the control queue since `asked`.
        case queued(token: UInt64, asked: Instant)
        case sent(token: UInt64, asked: Instant, written: Instant)
    }

    private var ping = Ping.none
    private var lastToken: UInt64 = 0
    private var lastAsked: Instant?
    /// When the last byte came from the peer.
    private(set) var lastReceived: Instant
    /// The shortest round trip so far in nanoseconds, nil before the first PONG.
    ///
    /// A PONG also waits behind data that is queued in sockets on the way. The shortest sample contains least of that,
    /// so windows do not grow because of their own queue.
    private(set) var roundTrip: UInt64?

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
        switch ping {
        case .none:
            limits.idleInterval.map { lastReceived + $0 }
        case .queued(_, let asked), .sent(_, let asked, _):
            min(max(asked, lastReceived) + limits.pingDeadline, asked + limits.pingHardDeadline)
        }
    }

    /// Whether a PING is under way.
    var isPinging: Bool {
        switch ping {
        case .none: false
        case .queued, .sent: true
        }
    }

    /// Whether arriving data should be used to measure the round trip.
    func isProbeDue(now: Instant) -> Bool {
        guard !isPinging else { return false }
        return lastAsked.map { now.nanoseconds(since: $0) >= Self.probeInterval } ?? true
    }

    /// Begins a PING and returns its payload.
    mutating func beginPing(now: Instant) -> UInt64 {
        lastToken &+= 1
        lastAsked = now
        ping = .queued(token: lastToken, asked: now)
        return lastToken
    }

    /// The PING went into the output.
    mutating func written(now: Instant) {
        switch ping {
        case .none, .sent: break
        case .queued(let token, let asked): ping = .sent(token: token, asked: asked, written: now)
        }
    }

    /// Handles a PONG. Returns false if it answers no PING.
    mutating func answered(token: UInt64, now: Instant) -> Bool {
        switch ping {
        case .none, .queued:
            return false
        case .sent(let expected, _, let written):
            guard token == expected else { return false }
            ping = .none
            let sample = now.nanoseconds(since: written)
            roundTrip = roundTrip.map { min($0, sample) } ?? sample
            return true
        }
    }
}
