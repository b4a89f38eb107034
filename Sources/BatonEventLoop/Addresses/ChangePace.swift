// SPDX-License-Identifier: Apache-2.0

/// How often changes that do not end are told: a pure value.
///
/// Whoever roams makes a few in a row, which are told at once. Whoever goes on, such as a stranger who announces ever
/// other networks, is heard at ``interval``s.
struct ChangePace {
    /// Changes in a row that are told at once: 4.
    static let burst = 4
    /// The time between two beyond them, in nanoseconds; after so long without any, one more is told at once.
    static let interval: UInt64 = 5_000_000_000

    /// Until then those that were told would have taken, one each interval.
    private var end: UInt64 = 0

    /// A change is told now.
    mutating func note(at now: UInt64) { end = max(end, now) + Self.interval }

    /// Nanoseconds until the next one may be told.
    func delay(at now: UInt64) -> UInt64 {
        let begin = now + UInt64(Self.burst - 1) * Self.interval
        return end > begin ? end - begin : 0
    }
}
