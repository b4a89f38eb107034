// SPDX-License-Identifier: Apache-2.0

// Whose `struct timespec` is seen depends on what else is compiled: hence both.
import CoreFoundation
import Glibc

/// The processor time of the calling thread, without that of other threads.
enum ThreadTime {
    /// Seconds by now.
    static var now: Double {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    /// The thread's processor time for a piece of work, in seconds.
    static func cost(_ work: () throws -> Void) rethrows -> Double {
        let start = now
        try work()
        return now - start
    }
}
