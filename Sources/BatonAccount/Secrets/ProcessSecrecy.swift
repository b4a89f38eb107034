// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc

/// Keeps the memory of a process that holds secrets from the other programs of its user, and off the disk.
package enum ProcessSecrecy {
    /// Makes no core of this process possible, and its memory and environment readable by root alone: not by other
    /// users, who could not before, and not by other programs of this user (`ptrace`, `/proc/PID/mem`) either.
    ///
    /// Where it crashes it says no more than the system does: the Swift runtime would print its registers, and the
    /// memory that they point to, wherever its errors go.
    ///
    /// To be called before the first secret is read. It cannot fail where it matters: Linux refuses neither. The limit
    /// on cores is inherited by programs that are started later, the rest is not.
    package static func protect() {
        _ = baton_forbid_dumping()
        // Where /proc/sys/kernel/core_pattern is a file, this alone would do; where it is a pipe, the line above does.
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
