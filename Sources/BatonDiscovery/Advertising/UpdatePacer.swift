// SPDX-License-Identifier: Apache-2.0

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
/// go at once, then one per ``Limits/refill``. The first change after quiet goes out at once. Changes that follow it
/// closely are collected, and the latest wins. One credit is never spent on an update, because a withdrawn activity
/// must disappear at once. A withdrawal does not wait for the spacing either. If it waits for a credit, later changes
/// do not make it less urgent.
///
/// RFC 6762, section 8.4: "a host SHOULD NOT update records more frequently than ten times per minute". For faster
/// changes "it may be more appropriate to design a protocol for that specific purpose". Here that protocol is to ask
/// the device, which ``isRationed(now:)`` is for.
///
/// Times are durations since any fixed moment, and must not go back.
struct UpdatePacer {
    /// The ration.
    struct Limits {
        /// Updates that may follow each other closely after quiet.
        var burst = 4
        /// The time after which one more is earned.
        var refill: Duration = .seconds(6)
        /// The time between an update and the next one, in which changes are collected.
        var spacing: Duration = .milliseconds(250)
        /// Credits that only a withdrawal may take.
        var reserve = 1
    }

    private let limits: Limits
    private var credits: Int
    /// When the credit that is being earned began to be.
    private var earningSince: Duration
    private var lastSent: Duration?
    private var pending: RecordChange?

    /// A full ration.
    init(limits: Limits = Limits(), now: Duration) {
        self.limits = limits
        credits = limits.burst + limits.reserve
        earningSince = now
    }

    /// Notes that the published record is out of date. The most urgent change stands for all that wait.
    mutating func change(_ change: RecordChange) {
        pending = max(pending ?? change, change)
    }

    /// Notes that nothing waits any more, because a registration carries the latest text.
    mutating func satisfy() {
        pending = nil
    }

    /// Spends a credit if a change waits and may go now, and returns the change. The caller then sends the latest text.
    mutating func takeIfDue(now: Duration) -> RecordChange? {
        guard let due = deadline(), due <= now else { return nil }
        earn(until: now)
        credits -= 1
        lastSent = now
        defer { pending = nil }
        return pending
    }

    /// When the waiting change may go; nil when none waits. A time that has passed is now.
    func deadline() -> Duration? {
        switch pending {
        case nil: nil
        case .withdrawal: moment(ofCredits: 1)
        case .renewal, .update:
            max(moment(ofCredits: 1 + limits.reserve), lastSent.map { $0 + limits.spacing } ?? earningSince)
        }
    }

    /// Whether an update that came now would wait for a credit, so that a record sent now may outlive its truth. While
    /// this is false the next change of any kind goes at once.
    func isRationed(now: Duration) -> Bool { moment(ofCredits: 1 + limits.reserve) > now }

    private func moment(ofCredits wanted: Int) -> Duration {
        earningSince + limits.refill * max(0, wanted - credits)
    }

    private mutating func earn(until now: Duration) {
        let capacity = limits.burst + limits.reserve
        while credits < capacity, earningSince + limits.refill <= now {
            credits += 1
            earningSince += limits.refill
        }
        // A full ration earns nothing: the next credit begins with the next spending.
        if credits == capacity { earningSince = now }
    }
}
