// SPDX-License-Identifier: Apache-2.0

// Deadlines.
extension Session {
    /// The time at which `handleTimeout` is to be called next; nil if nothing is due.
    ///
    /// Every received byte moves it later. A driver need not set its timer anew for that: it may let the timer fire,
    /// call `handleTimeout`, which does nothing before the time, and ask again. Only calls that write move it earlier.
    package func nextTimeout() -> Instant? {
        guard let reset = nextReset else { return nextDeadline }
        return nextDeadline.map { min($0, reset) } ?? reset
    }

    /// The time at which the peer has been silent for too long; nil if nothing is expected of it.
    private var nextDeadline: Instant? {
        switch phase {
        case .awaitingHello(let deadline): deadline
        case .established: liveness.nextTimeout(limits)
        case .dead: nil
        }
    }

    /// Does what is due at `now`: fails a connection whose HELLO or PONG did not come, sends a silent peer a PING, and
    /// queues RESETs.
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

    /// Sends a PING, which checks that the peer lives, unless one is unanswered.
    mutating func ping() {
        guard peer != nil, failure == nil, !liveness.isPinging else { return }
        enqueue(.ping(liveness.beginPing(now: present)))
    }
}
