// SPDX-License-Identifier: Apache-2.0

package import BatonProtocol

/// How far the fetching of a document is, and whether it goes on by itself after it stopped coming.
package struct TransferRetry: Sendable {
    /// How long a device that has gone is waited for, from the first failure after the last byte on: 10 minutes.
    package static let patience = ClaimBounds.patience
    /// How often in a row a transfer may fail before anything of it was sent, with a device that can be reached: 5.
    package static let failureLimit = 5
    /// Failures further apart than this are not in a row: 10 s.
    package static let failureMemory: Duration = .seconds(10)
    /// How often in a row a document may change before more of it was there than ever before: 16.
    package static let changeLimit = 16
    /// How often in a row an attempt may end that has told of older copies before a byte came: 2. The next one does
    /// without copies, because each reads them again.
    package static let tellingLimit = 2
    /// The time between two attempts to reach the device, or to get a place at it: 500 ms.
    package static let pause: Duration = .milliseconds(500)
    /// The first 20 attempts to reach a device that has gone come sooner, each after 100 ms: it may be back at once.
    package static let quickTries = 20
    package static let quickPause: Duration = .milliseconds(100)
    /// The longest time for a document that changes to come to rest, before it is asked what it is: 2 s.
    package static let longestRest: Duration = .seconds(2)
    /// How long nothing may come of a document before it is looked whether both ends of the connection are still where
    /// they were: 500 ms.
    package static let stallPatience: Duration = .milliseconds(500)

    /// What to do about an error.
    package enum Verdict: Sendable, Equatable {
        /// It is final.
        case giveUp
        /// The document is another one now: ask what it is, after a pause.
        case describeAgain(after: Duration)
        /// The device has gone: wait for it.
        case waitForDevice(until: Instant)
        /// The device has no place for the transfer at this moment: ask again, after a pause.
        case waitForPlace(until: Instant)
    }

    /// An attempt that has ended.
    package struct Attempt: Sendable {
        /// How much of the document was there when it ended.
        package var bytes: UInt64
        /// How much of that is kept.
        package var kept: UInt64
        /// Whether the device was told of older copies.
        package var hasTold: Bool

        package init(bytes: UInt64 = 0, kept: UInt64 = 0, hasTold: Bool = false) {
            self.bytes = bytes
            self.kept = kept
            self.hasTold = hasTold
        }
    }

    private var bytes: UInt64 = 0
    /// The most that ever was there, of whichever version.
    private var mostBytes: UInt64 = 0
    /// When it failed for the first time since the last byte, or since the device was told of older copies.
    private var firstFailure: Instant?
    private var lastFailure: Instant?
    /// Failures in a row.
    private var failures = 0
    /// Attempts in a row that have told of older copies and brought no byte.
    private var vainTellings = 0
    private var changes = 0
    /// The end of the last attempt; nil before the first has ended.
    package private(set) var verdict: Verdict?

    package init() {}

    /// Whether the next attempt builds upon older copies.
    package var usesCopies: Bool { vainTellings < Self.tellingLimit }

    /// Whether the origin is asked first what the document is now.
    package var describesAnew: Bool { if case .describeAgain = verdict { true } else { false } }

    /// Takes note of an attempt that has failed, and decides what to do.
    package mutating func note(_ attempt: Attempt, _ setback: Setback, now: Instant) -> Verdict {
        // It may have read older copies for longer than the patience lasts.
        if attempt.hasTold { (vainTellings, firstFailure) = (vainTellings + 1, nil) }
        note(attempt.bytes)
        let verdict = verdict(on: setback, now: now)
        self.verdict = verdict
        return verdict
    }

    private mutating func note(_ bytes: UInt64) {
        guard bytes != self.bytes else { return }
        self.bytes = bytes
        (firstFailure, failures, vainTellings) = (nil, 0, 0)
        // A version of which less is there than of an earlier one has brought it no nearer to its end.
        guard bytes > mostBytes else { return }
        mostBytes = bytes
        changes = 0
    }

    private mutating func verdict(on setback: Setback, now: Instant) -> Verdict {
        let end = (firstFailure ?? now) + Self.patience
        switch setback {
        case .changed:
            changes += 1
            guard changes <= Self.changeLimit else { return .giveUp }
            // A program that writes to it gets the time to finish.
            return .describeAgain(after: min(.milliseconds(250) * (1 << min(changes, 4)), Self.longestRest))
        case .lost, .away, .unclaimed:
            // A device that was away for a while begins anew.
            failures = now - (lastFailure ?? now) < Self.failureMemory ? failures + 1 : 1
            (firstFailure, lastFailure) = (firstFailure ?? now, now)
            return now < end && failures <= Self.failureLimit ? .waitForDevice(until: end) : .giveUp
        case .noPlace:
            // A device that has sent nothing yet has one transfer too many. Else the places are those of transfers
            // that were cut as this one was, and which the device has not given up yet.
            firstFailure = firstFailure ?? now
            return bytes > 0 && now + Self.pause < end ? .waitForPlace(until: end) : .giveUp
        case .unoffered, .final: return .giveUp
        }
    }
}
