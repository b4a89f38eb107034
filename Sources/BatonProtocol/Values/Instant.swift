// SPDX-License-Identifier: Apache-2.0

/// A point on the driver's monotonic clock, in nanoseconds from an origin that the driver chooses.
///
/// The protocol core has no clock: every call that needs the time is given an `Instant`. Instants for one `Session`
/// must not go backwards; an earlier one counts as "no time has passed".
package struct Instant: Sendable, Hashable, Comparable {
    /// Nanoseconds since the clock's origin.
    package var nanoseconds: UInt64

    /// Makes an instant from a count of nanoseconds.
    package init(nanoseconds: UInt64) {
        self.nanoseconds = nanoseconds
    }

    /// Whether `left` is the earlier of the two.
    package static func < (left: Instant, right: Instant) -> Bool {
        left.nanoseconds < right.nanoseconds
    }

    /// The instant `duration` after `instant`; saturates at both ends of the scale.
    package static func + (instant: Instant, duration: Duration) -> Instant {
        let shift = duration.wholeNanoseconds
        if shift >= 0 {
            let (sum, overflow) = instant.nanoseconds.addingReportingOverflow(UInt64(shift))
            return Instant(nanoseconds: overflow ? .max : sum)
        }
        let (difference, underflow) = instant.nanoseconds.subtractingReportingOverflow(shift.magnitude)
        return Instant(nanoseconds: underflow ? 0 : difference)
    }

    /// The time from `right` to `left`; negative when `right` is the later one.
    package static func - (left: Instant, right: Instant) -> Duration {
        left >= right
            ? .nanoseconds(Int64(clamping: left.nanoseconds - right.nanoseconds))
            : .nanoseconds(-Int64(clamping: right.nanoseconds - left.nanoseconds))
    }

    /// Nanoseconds from `earlier` to here, 0 if `earlier` is not earlier.
    func nanoseconds(since earlier: Instant) -> UInt64 {
        nanoseconds > earlier.nanoseconds ? nanoseconds - earlier.nanoseconds : 0
    }
}

extension Duration {
    /// The duration in whole nanoseconds, saturating.
    var wholeNanoseconds: Int64 {
        let (seconds, attoseconds) = components
        let (scaled, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        if overflow { return seconds < 0 ? .min : .max }
        let (sum, carried) = scaled.addingReportingOverflow(attoseconds / 1_000_000_000)
        return carried ? (seconds < 0 ? .min : .max) : sum
    }
}
