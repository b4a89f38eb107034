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
package final class GlobalPool: @unchecked Sendable {  // reason: every mutable member is used under `mutex`
    private static let shared = GlobalPool()

    private let bound = max(2, sysconf(Int32(_SC_NPROCESSORS_ONLN)))
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private var jobs: [UnsafeMutableRawPointer] = []
    /// How many of ``jobs`` were taken.
    private var taken = 0
    private var workers: [WorkerThread] = []
    private var idle = 0

    /// Takes the place of Dispatch's pool. To be called before the program's first task leaves the main thread.
    package static func install() {
        baton_install_executor()
    }

    private init() {
        pthread_mutex_init(mutex, nil)
        pthread_cond_init(condition, nil)
    }

    fileprivate static func enqueue(_ job: UnsafeMutableRawPointer) { shared.append(job) }

    private func append(_ job: UnsafeMutableRawPointer) {
        pthread_mutex_lock(mutex)
        jobs.append(job)
        if jobs.count - taken > idle, workers.count < bound, let worker = try? WorkerThread(name: "baton-pool") {
            workers.append(worker)
            worker.append { self.run() }
        }
        precondition(!workers.isEmpty, "this machine has no thread to give")
        pthread_cond_signal(condition)
        pthread_mutex_unlock(mutex)
    }

    private func run() {
        while true {
            pthread_mutex_lock(mutex)
            while taken == jobs.count {
                idle += 1
                pthread_cond_wait(condition, mutex)
                idle -= 1
            }
            let job = jobs[taken]
            taken += 1
            if taken == jobs.count || taken >= 1024 {
                jobs.removeFirst(taken)
                taken = 0
            }
            pthread_mutex_unlock(mutex)
            baton_run_job(job)
        }
    }
}

@_cdecl("baton_pool_enqueue")
func poolEnqueue(_ job: UnsafeMutableRawPointer) {
    GlobalPool.enqueue(job)
}
