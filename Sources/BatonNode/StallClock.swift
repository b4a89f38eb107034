// SPDX-License-Identifier: Apache-2.0

import BatonProtocol

/// When the wait that is under way is over its time: a pure value, told the time.
///
/// Time in which the process stood still, as in a machine that was suspended, counts for no wait: what ends it may lie
/// in the kernel, and had no chance to be read.
struct StallClock: Sendable {
    /// What to do about the wait that is under way.
    enum Verdict: Sendable, Equatable {
        /// Nothing before that time.
        case wait(until: Instant)
        /// It is over its time and may end with less.
        case relent
        case giveUp
    }

    /// How long a wait may take.
    let limit: Duration
    /// How long one may take more after it was asked to end with less, and how late a look at it may be before the
    /// process is taken to have stood still: a thirtieth of ``limit``, and at least 100 ms.
    let grace: Duration
    private let relents: Bool
    private var relented: UInt64?
    /// No wait counts from before.
    private var begin: Instant
    private var next: Instant

    /// - Parameter relents: whether a wait is asked to end with less before it is given up.
    init(limit: Duration, relents: Bool, now: Instant) {
        self.limit = limit
        grace = max(limit / 30, .milliseconds(100))
        self.relents = relents
        begin = now
        next = now
    }

    /// Looks at the wait that is under way.
    ///
    /// - Parameters:
    ///   - number: the wait's own.
    ///   - start: when it began; nil between two waits.
    mutating func verdict(on number: UInt64, since start: Instant?, now: Instant) -> Verdict {
        if now - next > grace { begin = now }
        let due = max(start ?? now, begin) + (relented == number ? grace : limit)
        guard start == nil || due > now else {
            next = now
            return relents && relented != number ? .relent : .giveUp
        }
        next = due
        return .wait(until: due)
    }

    /// Takes note that a wait was asked to end with less.
    mutating func noteRelented(_ number: UInt64, now: Instant) {
        relented = number
        begin = now
        next = now
    }
}
