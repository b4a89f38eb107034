// SPDX-License-Identifier: Apache-2.0

/// A limit on how often changes are reported: a pure value.
///
/// A machine that roams makes a few changes in a row, which are reported at once. Endless changes are reported once
/// each ``interval``, for example if a stranger on the link announces one network after the other.
struct ChangeRateLimit {
    /// The number of changes in a row that are reported at once: 4.
    static let burst = 4
    /// The time between two reports beyond the burst, in nanoseconds. The burst refills by one in the same time.
    static let interval: UInt64 = 5_000_000_000

    /// The time at which the burst is full again.
    private var end: UInt64 = 0

    /// Records that a change is reported now.
    mutating func record(at now: UInt64) { end = max(end, now) + Self.interval }

    /// Nanoseconds until the next change may be reported.
    func delay(at now: UInt64) -> UInt64 {
        let begin = now + UInt64(Self.burst - 1) * Self.interval
        return end > begin ? end - begin : 0
    }
}
