// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The time of this machine that never jumps and counts sleep: `CLOCK_BOOTTIME`.
///
/// `CLOCK_MONOTONIC` stops while a laptop is suspended. By it, an advertisement from the evening would be a second old
/// in the morning, and a connection that the peer dropped eight hours ago would be fresh. Every age and deadline of
/// Baton is about the outside world, so its clock counts the night. ``Timer`` runs on the same clock: a deadline that
/// passed during a suspend fires right after it.
package enum MonotonicClock {
    /// Nanoseconds since the start of the machine, sleep included. One vDSO call, about 50 ns, callable from anywhere.
    package static func nanoseconds() -> UInt64 {
        var time = timespec()
        // It cannot fail for a known clock (CLOCK_BOOTTIME: Linux 2.6.39) and a valid pointer.
        clock_gettime(CLOCK_BOOTTIME, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }

    /// The reading of the clock after `delay` from now; nil if that is more than 100 years away, which means never.
    package static func deadline(after delay: Duration) -> UInt64? {
        let (seconds, attoseconds) = delay.components
        guard seconds < 100 * 366 * 86_400 else { return nil }
        let now = nanoseconds()
        guard seconds >= 0, attoseconds >= 0 else { return now }
        return now + UInt64(seconds) * 1_000_000_000 + UInt64(attoseconds / 1_000_000_000)
    }

    /// The time left until `deadline`, at least zero.
    static func remaining(until deadline: UInt64) -> Duration {
        let now = nanoseconds()
        return deadline > now ? .nanoseconds(Int64(clamping: deadline - now)) : .zero
    }
}
