// SPDX-License-Identifier: Apache-2.0

// What happens when nothing happens.
extension Session {
    /// When `handleTimeout` wants to be called next; nil when nothing is due.
    ///
    /// Every received byte moves it later. A driver need not set its timer anew for that: it may let the timer fire,
    /// call `handleTimeout` (which does nothing before the time) and ask again. It moves earlier only by calls that
    /// write.
    package func nextTimeout() -> Instant? {
        guard let reset = nextReset else { return nextDeadline }
        return nextDeadline.map { min($0, reset) } ?? reset
    }

    /// When the peer has said nothing for too long; nil when nothing is expected of it.
    private var nextDeadline: Instant? {
        switch phase {
        case .awaitingHello(let deadline): deadline
        case .established: liveness.nextTimeout(limits)
        case .dead: nil
        }
    }

    /// Does what is due at `now`: fails the connection whose HELLO or PONG did not come, asks a silent peer for life,
    /// queues RESETs whose turn has come.
    package mutating func handleTimeout(now: Instant) {
        advance(to: now)
        sendDueResets()
        guard let due = nextDeadline, due <= now else { return }
        switch phase {
        case .awaitingHello: fail(.helloTimeout)
        case .established: if liveness.isPinging { fail(.pingTimeout) } else { ping() }
        case .dead: break
        }
    }

    /// Asks the peer for life and measures the round trip, unless a PING is under way.
    package mutating func ping() {
        guard peer != nil, failure == nil, !liveness.isPinging else { return }
        enqueue(.ping(liveness.ask(now: present)))
    }
}
