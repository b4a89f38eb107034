// SPDX-License-Identifier: Apache-2.0

package import BatonProtocol

/// Whether a document that stopped coming goes on by itself: a pure value, told the time.
package struct TransferRetry: Sendable {
    /// How long a device that has gone is waited for, from the last byte on, or from when it last took what it was told
    /// of older copies: 10 minutes.
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
    /// The time between two attempts to reach the device, at first: 250 ms; it doubles up to ``longestPause``.
    package static let shortestPause: Duration = .milliseconds(250)
    /// The longest time between two attempts: 500 ms. A device that announces itself is tried at once.
    package static let longestPause: Duration = .milliseconds(500)
    /// The longest time for a document that changes to come to rest, before it is asked what it is: 2 s.
    package static let longestRest: Duration = .seconds(2)
    /// The shortest time between two attempts, however often the device announces itself: 100 ms.
    package static let shortestGap: Duration = .milliseconds(100)
    /// How long nothing may come of a document before it is looked whether both ends of the connection are still where
    /// they were, and how often: 500 ms.
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
        case waitForPlace(after: Duration, until: Instant)

        var waitsForPlace: Bool { if case .waitForPlace = self { true } else { false } }

        /// How long the device is waited for at the most; nil if the transfer is given up.
        func waits(now: Instant) -> Duration? {
            switch self {
            case .giveUp: nil
            case .describeAgain: .zero
            case .waitForDevice(let end), .waitForPlace(_, let end): end - now
            }
        }
    }

    /// An attempt that has ended.
    package struct Attempt: Sendable {
        /// How much of the document was there when it ended.
        package var bytes: UInt64
        /// How much of that is kept.
        package var kept: UInt64
        /// When the device last took what it was told of older copies; nil if it was told of none.
        package var told: Instant?

        package init(bytes: UInt64 = 0, kept: UInt64 = 0, told: Instant? = nil) {
            self.bytes = bytes
            self.kept = kept
            self.told = told
        }
    }

    /// The pauses of a wait for a device that has gone.
    package struct Wait: Sendable {
        private let end: Instant
        private var next = TransferRetry.shortestPause

        package init(until end: Instant) {
            self.end = end
        }

        /// How long the next pause is at the most; `nil` where the device has been waited for long enough.
        package mutating func pause(now: Instant) -> Duration? {
            guard now + next < end else { return nil }
            defer { next = min(next * 2, TransferRetry.longestPause) }
            return next
        }
    }

    private var bytes: UInt64 = 0
    /// The most that ever was there, of whichever version.
    private var mostBytes: UInt64 = 0
    private var lastProgress: Instant
    /// When the device last took what it was told before the first byte.
    private var lastTold: Instant?
    /// Attempts in a row that have told of older copies and brought no byte.
    private var vainTellings = 0
    private var changes = 0
    private var failures = 0
    private var lastFailure: Instant?

    package init(now: Instant) {
        lastProgress = now
    }

    /// Takes note of an attempt that has ended.
    package mutating func note(_ attempt: Attempt, now: Instant) {
        if let time = attempt.told {
            // Reading older copies can take longer than the device is waited for, and no byte comes meanwhile.
            lastTold = max(lastTold ?? time, time)
            vainTellings += 1
        }
        let bytes = attempt.bytes
        guard bytes != self.bytes else { return }
        self.bytes = bytes
        lastProgress = now
        failures = 0
        vainTellings = 0
        // A version of which less is there than of an earlier one has brought it no nearer to its end.
        guard bytes > mostBytes else { return }
        mostBytes = bytes
        changes = 0
    }

    /// Whether the next attempt builds upon older copies.
    package var usesCopies: Bool { vainTellings < Self.tellingLimit }

    /// Until when the device is waited for.
    private var end: Instant { max(lastProgress, lastTold ?? lastProgress) + Self.patience }

    /// What to do about a failure of the transfer.
    package mutating func verdict(on setback: Setback, now: Instant) -> Verdict {
        switch setback {
        case .changed:
            changes += 1
            guard changes <= Self.changeLimit else { return .giveUp }
            // A program that writes to it gets the time to finish.
            return .describeAgain(after: min(Self.shortestPause * (1 << min(changes, 4)), Self.longestRest))
        case .lost, .away, .unclaimed:
            // A device that was away for a while begins anew.
            failures = now - (lastFailure ?? now) < Self.failureMemory ? failures + 1 : 1
            lastFailure = now
            let end = self.end
            return now < end && failures <= Self.failureLimit ? .waitForDevice(until: end) : .giveUp
        case .noPlace:
            // A device that has sent nothing yet has one transfer too many. Else the places are those of transfers
            // that were cut as this one was, and which the device has not given up yet.
            let end = self.end
            return bytes > 0 && now + Self.longestPause < end
                ? .waitForPlace(after: Self.longestPause, until: end) : .giveUp
        case .unoffered, .final: return .giveUp
        }
    }
}
