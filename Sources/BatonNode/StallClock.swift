// SPDX-License-Identifier: Apache-2.0

import BatonProtocol

/// When the wait that is under way is over its time: a pure value, told the time.
///
/// Time in which the process stood still, as in a machine that was suspended, counts for no wait. The data that ends
/// the wait may lie in the kernel, and had no chance to be read.
struct StallClock: Sendable {
    /// What to do about the wait that is under way.
    enum Verdict: Sendable, Equatable {
        /// Nothing before that time.
        case wait(until: Instant)
        /// The wait is over its time and may end early with what it has.
        case shorten
        case giveUp
    }

    /// How long a wait may take.
    let limit: Duration
    /// How long a wait may go on after it was asked to end early: a thirtieth of ``limit``, and at least 100 ms. If a
    /// look at the wait is later than that, the process has stood still.
    let grace: Duration
    private let canShorten: Bool
    private var shortened: UInt64?
    /// No wait counts from before.
    private var begin: Instant
    private var next: Instant

    /// - Parameter canShorten: whether a wait is asked to end early before it is given up.
    init(limit: Duration, canShorten: Bool, now: Instant) {
        self.limit = limit
        grace = max(limit / 30, .milliseconds(100))
        self.canShorten = canShorten
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
        let due = max(start ?? now, begin) + (shortened == number ? grace : limit)
        guard start == nil || due > now else {
            next = now
            return canShorten && shortened != number ? .shorten : .giveUp
        }
        next = due
        return .wait(until: due)
    }

    /// Records that a wait was asked to end early.
    mutating func markShortened(_ number: UInt64, now: Instant) {
        shortened = number
        begin = now
        next = now
    }
}
