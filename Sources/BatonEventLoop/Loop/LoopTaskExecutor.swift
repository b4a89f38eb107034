// SPDX-License-Identifier: Apache-2.0

/// Runs the parts of tasks that belong to no actor on a loop: see ``EventLoop/taskExecutor``.
package final class LoopTaskExecutor: TaskExecutor {
    private let work: LoopWork

    init(_ work: LoopWork) {
        self.work = work
    }

    /// Puts a part of a task onto the loop. Called by the concurrency runtime.
    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        // The closure holds the executor, which must outlive each job.
        work.append { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}

/// Runs work on threads of the pool, whatever executor the task prefers. For work that would keep a loop from its
/// descriptors for too long.
package func offLoop<Value, Failure: Error>(
    isolation: isolated (any Actor)? = #isolation, _ work: () async throws(Failure) -> Value
) async throws(Failure) -> Value {
    try await withTaskExecutorPreference(globalConcurrentExecutor, isolation: isolation, operation: work)
}
