// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc

/// Threads that run the tasks of a program that no other executor runs.
///
/// The concurrency runtime gives such tasks to Dispatch's global pool. On Linux, Dispatch watches that pool with a
/// timer that wakes the process once a second from the first task on until the process ends. A program that waits for
/// days, as a node does, installs this pool instead, and sleeps by ``Alarm``.
///
/// It has as many threads as the machine has cores, at least two, made when they are needed. A task that blocks keeps a
/// thread from all others.
package enum GlobalPool {
    private static let threads = WorkerThreads(name: "baton-pool", bound: max(2, sysconf(Int32(_SC_NPROCESSORS_ONLN))))

    /// Takes the place of Dispatch's pool. To be called before the program's first task leaves the main thread.
    package static func install() {
        baton_install_executor()
    }

    fileprivate static func enqueue(_ job: UnsafeMutableRawPointer) {
        nonisolated(unsafe) let job = job  // reason: one thread runs it, once
        threads.append { baton_run_job(job) }
    }
}

@_cdecl("baton_pool_enqueue")
func poolEnqueue(_ job: UnsafeMutableRawPointer) {
    GlobalPool.enqueue(job)
}
