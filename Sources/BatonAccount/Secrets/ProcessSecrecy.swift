// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc

/// Keeps the memory of a process that holds secrets from the other programs of its user, and off the disk.
package enum ProcessSecrecy {
    /// Keeps this process from dumping core, and its memory and environment from every reader but root.
    ///
    /// Other programs of the same user are shut out as well (`ptrace`, `/proc/PID/mem`). After a crash the Swift
    /// runtime would print registers, and the memory that they point to; this switches that off.
    ///
    /// Call it before the first secret is read. It has no failure to report, since Linux refuses neither request. The
    /// limit on cores is inherited by programs that are started later; the rest is not.
    package static func protect() {
        _ = baton_forbid_dumping()
        // This is enough if /proc/sys/kernel/core_pattern names a file; the line above is enough if it names a pipe.
        var none = rlimit(rlim_cur: 0, rlim_max: 0)
        _ = setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &none)
        // Those that the runtime's backtracer handles (swift/docs/Backtracing.rst).
        for crash in [SIGQUIT, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP] { signal(crash, SIG_DFL) }
    }

    /// Whether this process is protected.
    package static var isProtected: Bool {
        var limit = rlimit()
        return baton_is_dumpable() == 0
            && getrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &limit) == 0 && limit.rlim_cur == 0
    }
}
