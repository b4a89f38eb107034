// SPDX-License-Identifier: Apache-2.0

import BatonCore
import BatonProtocol

/// How urgent a change of this device's record is.
package enum RecordChange: Int, Comparable, Sendable {
    /// It says what it said before, for another while.
    case renewal
    /// It says something new.
    case update
    /// It takes back something that other devices still see. It precedes everything else.
    case withdrawal

    package static func < (left: RecordChange, right: RecordChange) -> Bool { left.rawValue < right.rawValue }
}

/// Decides when a changed TXT record may be sent. A value without a clock: the caller says what time it is.
///
/// Each update of a TXT record is multicast to the whole link, so it is rationed as macOS's responder rations it. A few
/// go at once, then one per ``refill``. The first change after quiet goes out at once. Changes that follow it closely
/// are collected, and the latest wins. One credit is never spent on an update, because a withdrawn activity must
/// disappear at once. A withdrawal does not wait for the spacing either. If it waits for a credit, later changes do not
/// make it less urgent.
///
/// RFC 6762, section 8.4: "a host SHOULD NOT update records more frequently than ten times per minute". For faster
/// changes "it may be more appropriate to design a protocol for that specific purpose". Here that protocol is to ask
/// the device, which ``isRationed(now:)`` is for.
struct UpdatePacer {
    /// Updates that may follow each other closely after quiet. One credit more is there for a withdrawal.
    static let burst = 4
    /// The time after which one more is earned.
    static let refill = Duration.seconds(6)
    /// The time between an update and the next one, in which changes are collected.
    static let spacing = Duration.milliseconds(250)

    private var ration = RateLimiter(capacity: burst + 1, interval: refill)
    private var spacingEnd = Instant(nanoseconds: 0)
    private var pending: RecordChange?

    /// Notes that the published record is out of date. The most urgent change stands for all that wait.
    mutating func change(_ change: RecordChange) {
        pending = max(pending ?? change, change)
    }

    /// Notes that nothing waits any more, because a registration carries the latest text.
    mutating func satisfy() {
        pending = nil
    }

    /// Spends a credit if a change waits and may go now, and returns the change. The caller then sends the latest text.
    mutating func takeIfDue(now: Instant) -> RecordChange? {
        guard let due = deadline, due <= now, ration.take(at: now) else { return nil }
        spacingEnd = now + Self.spacing
        defer { pending = nil }
        return pending
    }

    /// When the waiting change may go; nil when none waits. A time that has passed is now.
    var deadline: Instant? {
        switch pending {
        case nil: nil
        case .withdrawal: ration.nextToken()
        case .renewal, .update: max(ration.nextToken(keeping: 1), spacingEnd)
        }
    }

    /// Whether an update that came now would wait for a credit, so that a record sent now may outlive its truth. While
    /// this is false the next change of any kind goes at once.
    func isRationed(now: Instant) -> Bool { ration.nextToken(keeping: 1) > now }
}
