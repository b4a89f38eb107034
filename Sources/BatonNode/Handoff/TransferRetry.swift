// SPDX-License-Identifier: Apache-2.0

import BatonCore
import BatonMessages
import BatonProtocol

/// Whether a document that stopped coming goes on by itself: a pure value, told the time.
struct TransferRetry: Sendable {
    /// How long a device that has gone is waited for, from the last byte on, or from when it last took what it was told
    /// of older copies: 10 minutes.
    static let patience = ClaimBounds.patience
    /// How often in a row a transfer may fail before anything of it was sent, with a device that can be reached: 5.
    static let failureLimit = 5
    /// Failures further apart than this are not in a row: 10 s.
    static let failureMemory: Duration = .seconds(10)
    /// How often in a row a document may change before more of it was there than ever before: 16.
    static let changeLimit = 16
    /// How often in a row an attempt may end that has told of older copies before a byte came: 2. The next one does
    /// without copies, because each reads them again.
    static let tellingLimit = 2
    /// The time between two attempts to reach the device, at first: 250 ms; it doubles up to ``longestPause``.
    static let shortestPause: Duration = .milliseconds(250)
    /// The longest time between two attempts: 500 ms. A device that announces itself is tried at once.
    static let longestPause: Duration = .milliseconds(500)
    /// The longest time for a document that changes to come to rest, before it is asked what it is: 2 s.
    static let longestRest: Duration = .seconds(2)
    /// The shortest time between two attempts, however often the device announces itself: 100 ms.
    static let shortestGap: Duration = .milliseconds(100)
    /// How long nothing may come of a document before it is looked whether both ends of the connection are still where
    /// they were, and how often: 500 ms.
    static let stallPatience: Duration = .milliseconds(500)

    /// What to do about an error.
    enum Verdict: Sendable, Equatable {
        /// It is final.
        case giveUp
        /// The document is another one now: ask what it is, after a pause.
        case describeAgain(after: Duration)
        /// The device has gone: wait for it.
        case waitForDevice(until: Instant)
        /// The device has no place for the transfer at this moment: ask again, after a pause.
        case waitForPlace(after: Duration, until: Instant)
    }

    /// The pauses of a wait for a device that has gone.
    struct Wait: Sendable {
        private let end: Instant
        private var next = TransferRetry.shortestPause

        init(until end: Instant) {
            self.end = end
        }

        /// How long the next pause is at the most; `nil` where the device has been waited for long enough.
        mutating func pause(now: Instant) -> Duration? {
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

    init(now: Instant) {
        lastProgress = now
    }

    /// Takes note of what is there.
    mutating func note(bytes: UInt64, now: Instant) {
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

    /// Takes note that an attempt has ended in which the device took, at this time last, what it was told of older
    /// copies. Reading them can take longer than the device is waited for, and no byte comes meanwhile.
    ///
    /// Comes before ``note(bytes:now:)`` of the same attempt.
    mutating func note(told time: Instant) {
        lastTold = max(lastTold ?? time, time)
        vainTellings += 1
    }

    /// Whether the next attempt builds upon older copies.
    var usesCopies: Bool { vainTellings < Self.tellingLimit }

    /// Until when the device is waited for.
    private var end: Instant { max(lastProgress, lastTold ?? lastProgress) + Self.patience }

    /// What to do about an error of the transfer.
    mutating func verdict(on error: HandoffError, now: Instant) -> Verdict {
        switch error.code {
        case .documentChanged:
            changes += 1
            guard changes <= Self.changeLimit else { return .giveUp }
            // Whoever writes to it gets the time to finish.
            return .describeAgain(after: min(Self.shortestPause * (1 << min(changes, 4)), Self.longestRest))
        case .connectionLost, .peerUnreachable, .timedOut, .noSuchClaim, .nodeStopping:
            // A device that was away for a while begins anew.
            failures = now - (lastFailure ?? now) < Self.failureMemory ? failures + 1 : 1
            lastFailure = now
            let end = self.end
            return now < end && failures <= Self.failureLimit ? .waitForDevice(until: end) : .giveUp
        case .limitExceeded:
            // Who has nothing yet is one too many. Else the places are those of transfers that were cut as this one
            // was, and which the other device has not given up yet.
            let end = self.end
            return bytes > 0 && now + Self.longestPause < end
                ? .waitForPlace(after: Self.longestPause, until: end) : .giveUp
        case .unspecified, .internal, .unsupported, .invalidRequest, .noSuchActivity, .ambiguousActivity, .claimHeld,
            .streamsUnsupported, .userInfoTooLarge, .documentUnreadable, .destinationExists, .destinationUnwritable,
            .destinationFull, .corrupted, .applicationGone, .versionUnreadable, .applicationNotStarted, .handoffOff,
            .accessRefused, .cancelled, .refused, .notHandled, .UNRECOGNIZED:
            return .giveUp
        }
    }

    /// Whether a failure to reach the device, or to be let in, is a reason to try again.
    static func isAway(_ error: HandoffError) -> Bool {
        switch error.code {
        case .connectionLost, .peerUnreachable, .timedOut, .noSuchClaim, .noSuchActivity, .nodeStopping,
            .limitExceeded:
            true
        case .unspecified, .internal, .unsupported, .invalidRequest, .ambiguousActivity, .claimHeld,
            .streamsUnsupported, .userInfoTooLarge, .documentUnreadable, .documentChanged, .destinationExists,
            .destinationUnwritable, .destinationFull, .corrupted, .applicationGone, .versionUnreadable,
            .applicationNotStarted, .handoffOff, .accessRefused, .cancelled, .refused, .notHandled, .UNRECOGNIZED:
            false
        }
    }
}
