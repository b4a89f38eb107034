// SPDX-License-Identifier: Apache-2.0

import Glibc
import SystemPackage

/// The limit of this process's descriptors, and a reserve that no connection gets.
///
/// Dispatch **stops the process** if it cannot open a file: once a second it opens `/proc/self/task/N/stat` of each of
/// its threads, and a failure counts as a crash (libdispatch, `workqueue.c`). A process on Dispatch must therefore
/// never reach its limit. Sockets and listeners of this module leave ``reserve`` descriptors free and report
/// `outOfResources` before the limit. Other code that opens many files should ask ``isNearlyReached`` first.
package enum DescriptorLimit {
    /// The number of descriptors that stay free, for Dispatch (one at a time), interface lists, logs and short-lived
    /// files.
    package static let reserve: Int32 = 32

    /// Raises the soft limit of this process (`RLIMIT_NOFILE`), up to its hard limit.
    ///
    /// The usual 1024 exists for programs that call `select`. Programs that this process starts inherit the limit.
    ///
    /// - Parameter count: the wanted limit, 8192 by default; a higher limit stays.
    package static func raise(to count: UInt = 8192) {
        guard var limit = current() else { return }
        limit.rlim_cur = max(limit.rlim_cur, min(rlim_t(count), limit.rlim_max))
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }

    /// Whether only the reserve is left. Three system calls, about a microsecond.
    package static var isNearlyReached: Bool {
        // The kernel gives out the lowest free number, so a high one means that all below are in use.
        switch SystemCall.once({ dup(0) }) {
        case .success(let lowest):
            let owned = OwnedDescriptor(takingOwnershipOf: lowest)
            return reaches(owned.rawValue)
        case .failure(let error):
            // Without a standard input there is nothing to duplicate. A limit then shows at the next `socket`.
            return error == .tooManyOpenFiles
        }
    }

    /// Whether a descriptor with that number belongs to the reserve.
    static func reaches(_ number: Int32) -> Bool {
        guard let limit = current(), limit.rlim_cur < rlim_t(Int32.max) else { return false }
        return number >= Int32(limit.rlim_cur) - reserve
    }

    private static func current() -> rlimit? {
        var limit = rlimit()
        return getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 ? limit : nil
    }
}
