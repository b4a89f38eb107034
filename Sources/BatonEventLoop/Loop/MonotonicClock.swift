// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The time of this machine that never jumps and counts sleep: `CLOCK_BOOTTIME`.
///
/// `CLOCK_MONOTONIC` stands still while a laptop is suspended; to it, an advertisement received before a night's sleep
/// is a second old in the morning, and a connection that the peer gave up eight hours ago was heard from just now.
/// Every age and deadline of Baton is about the world outside, so its clock counts the night. ``Timer`` runs on the
/// same clock: what came due during a suspend fires right after it.
package enum MonotonicClock {
    /// Nanoseconds since the machine was started, sleep included. One vDSO call, about 50 ns, callable from anywhere.
    package static func nanoseconds() -> UInt64 {
        var time = timespec()
        // Cannot fail for a clock that the kernel knows (CLOCK_BOOTTIME: Linux 2.6.39) and a valid pointer.
        clock_gettime(CLOCK_BOOTTIME, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }

    /// The reading of the clock after `delay` from now; nil when that is more than 100 years away, which is never.
    package static func deadline(after delay: Duration) -> UInt64? {
        let (seconds, attoseconds) = delay.components
        guard seconds < 100 * 366 * 86_400 else { return nil }
        let now = nanoseconds()
        guard seconds >= 0, attoseconds >= 0 else { return now }
        return now + UInt64(seconds) * 1_000_000_000 + UInt64(attoseconds / 1_000_000_000)
    }

    /// What is left of the time until `deadline`, at least zero.
    static func remaining(until deadline: UInt64) -> Duration {
        let now = nanoseconds()
        return deadline > now ? .nanoseconds(Int64(clamping: deadline - now)) : .zero
    }
}
