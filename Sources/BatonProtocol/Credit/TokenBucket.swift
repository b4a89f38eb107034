// SPDX-License-Identifier: Apache-2.0

/// A budget for frames that cost the sender nothing and the receiver work: a burst, and a rate at which it refills.
package struct Budget: Sendable, Hashable {
    /// The number of frames that are accepted at once.
    package var burst: Int
    /// The number of frames that are accepted each second.
    package var perSecond: Int

    /// Makes a budget.
    package init(burst: Int, perSecond: Int) {
        self.burst = burst
        self.perSecond = perSecond
    }
}

/// The tokens that are left of a `Budget`.
struct TokenBucket {
    private static let unit: UInt64 = 1_000_000_000

    private let budget: Budget
    /// Billionths of a token.
    private var level: UInt64
    private var refilled: Instant

    init(_ budget: Budget, now: Instant) {
        self.budget = budget
        level = UInt64(budget.burst) * Self.unit
        refilled = now
    }

    /// The time of the next token; nil if there will never be one.
    var nextToken: Instant? {
        guard level < Self.unit else { return refilled }
        guard budget.burst > 0, budget.perSecond > 0 else { return nil }
        let wait = (Self.unit - level + UInt64(budget.perSecond) - 1) / UInt64(budget.perSecond)
        return refilled + .nanoseconds(Int64(wait))
    }

    /// Spends one token. Returns false if there is none.
    mutating func spend(now: Instant) -> Bool {
        let full = UInt64(budget.burst) * Self.unit
        let (gain, overflow) = now.nanoseconds(since: refilled)
            .multipliedReportingOverflow(by: UInt64(budget.perSecond))
        level = overflow || gain >= full - level ? full : level + gain
        refilled = max(refilled, now)
        guard level >= Self.unit else { return false }
        level -= Self.unit
        return true
    }

    /// Gives tokens back, for frames that this side caused the peer to send.
    mutating func refund(_ tokens: Int) {
        level = min(level + UInt64(tokens) * Self.unit, UInt64(budget.burst) * Self.unit)
    }
}
