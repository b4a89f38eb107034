// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import CLinux
import Glibc
import SystemPackage

extension SystemCalls {
    /// The status of an open file, once whatever is written to the file from now on changes what it says.
    ///
    /// By itself that is so of who begins to write. Two do not begin: a store to a mapped page that is not on disk yet
    /// touches no time, and a long write touches it at its start only. So mapped pages are write-protected, and a write
    /// under way is waited for; both cost something only where something has the file open for writing. An edit within
    /// the tick of the clock in which the file was changed has the same time, so the tick is waited for: 4 ms as a
    /// rule. That comes first: a write that begins, or a page that is stored to, before the tick is over would have its
    /// time for good. What is changed meanwhile is another state than the document was described in, which is for the
    /// caller to notice.
    ///
    /// Not seen are a store to a mapped file of a file system without a disk (tmpfs), or without pages of its own
    /// (overlays); a write past the page cache (`O_DIRECT`) that was under way; and an edit within a tick of a file
    /// system that keeps coarser times (FAT: 2 s): a documented residue.
    ///
    /// - Parameter sleep: waits so many microseconds; of its own where a test does something meanwhile.
    static func settledStatus(
        of file: borrowing OwnedDescriptor, sleep: (useconds_t) -> Void = { usleep($0) }
    ) throws(Errno) -> stat {
        if let tick = FileClock.tick(of: FileIdentity(try status(of: file)).changed) { sleep(tick) }
        let number = file.rawValue
        if baton_may_have_writer(number) != 0 {
            // Most file systems let nobody write meanwhile. Where one does not answer there is nothing to wait for.
            _ = baton_next_data(number, 0)
            _ = baton_protect_mapped(number)
        }
        return try status(of: file)
    }
}

/// The clock of which the kernel takes the times of files: it goes on with a tick, a few milliseconds at a time.
private enum FileClock {
    /// How long the tick lasts, in microseconds, if it is the one of this time; nil of any other. (Newer kernels have
    /// times within the tick, and tell two edits apart by them where somebody looked between.)
    static func tick(of time: FileIdentity.Time) -> useconds_t? {
        var (now, resolution) = (timespec(), timespec())
        guard
            clock_gettime(CLOCK_REALTIME_COARSE, &now) == 0, clock_getres(CLOCK_REALTIME_COARSE, &resolution) == 0
        else { return nil }
        let seconds = time.seconds &- Int64(now.tv_sec)
        // A time further ahead is of a clock that was set back since. No edit has it.
        guard seconds == 0 || seconds == 1 else { return nil }
        let ahead = seconds * 1_000_000_000 + time.nanoseconds - Int64(now.tv_nsec)
        guard ahead >= 0, ahead <= Int64(resolution.tv_nsec) else { return nil }
        return useconds_t(resolution.tv_nsec / 1000 + 1)
    }
}
