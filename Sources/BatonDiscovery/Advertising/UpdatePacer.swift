// SPDX-License-Identifier: Apache-2.0

/// Decides when a changed TXT record may be sent. A value without a clock: the caller says what time it is.
///
/// Each update of a TXT record is multicast to the whole link, so it is rationed as macOS's responder rations it:
/// a few at once, then one per ``Limits/refill``. The first change after quiet goes out at once; changes that follow
/// it closely are collected, and the latest wins. One credit is never spent on an update: something that is withdrawn
/// must disappear at once, however busy the application was before. A withdrawal does not wait for the spacing either,
/// and one that waits for a credit stays one whatever comes after it: until then others see what is offered no more.
///
/// RFC 6762, section 8.4: "a host SHOULD NOT update records more frequently than ten times per minute", and for what
/// changes more often "it may be more appropriate to design a protocol for that specific purpose". Here that is to ask
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

    /// What changed.
    enum Change {
        case update
        case withdrawal
    }

    private let limits: Limits
    private var credits: Int
    /// When the credit that is being earned began to be.
    private var earningSince: Duration
    private var lastSent: Duration?
    private var pending: Change?

    /// A full ration.
    init(limits: Limits = Limits(), now: Duration) {
        self.limits = limits
        credits = limits.burst + limits.reserve
        earningSince = now
    }

    /// Notes that what is published is out of date. One change stands for all that wait: a withdrawal if there is one.
    mutating func change(_ change: Change) {
        switch (pending, change) {
        case (.withdrawal, .update): break
        case (nil, _), (.update, _), (.withdrawal, .withdrawal): pending = change
        }
    }

    /// Notes that everything pending has reached the network by another way: a registration carries the latest text.
    mutating func satisfy() {
        pending = nil
    }

    /// Spends a credit when something waits and may go now; the caller then sends the latest text.
    mutating func takeIfDue(now: Duration) -> Bool {
        guard let due = deadline(), due <= now else { return false }
        earn(until: now)
        credits -= 1
        lastSent = now
        pending = nil
        return true
    }

    /// When what waits may go; nil when nothing waits. A time that has passed is now.
    func deadline() -> Duration? {
        switch pending {
        case nil: nil
        case .withdrawal: moment(ofCredits: 1)
        case .update:
            max(moment(ofCredits: 1 + limits.reserve), lastSent.map { $0 + limits.spacing } ?? earningSince)
        }
    }

    /// Whether an update that came now would wait for a credit: who sees what is sent now may see it for longer than it
    /// is true. While this is false the next change of either kind goes at once.
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
