// SPDX-License-Identifier: Apache-2.0

package import SystemPackage

/// A serial executor with a thread of its own, for work that blocks: files and D-Bus.
///
/// An actor whose `unownedExecutor` is such an executor may call blocking functions in its methods without holding up
/// others.
///
/// It uses a thread and not a Dispatch queue. Dispatch makes new threads by the number of running ones, which a thread
/// that blocks for minutes distorts. The work also stays on one thread, which has a name.
///
/// The thread must not be restricted (Landlock, a changed user). Each `await` and each resumed task hands work to
/// Dispatch, which may make a thread for its pool on the calling thread, and a new thread inherits the restriction for
/// good. Restricted work runs on a ``PrivateThread``.
///
/// The thread ends when the last reference to the executor is gone and all its work is done; a pending job holds the
/// executor. Nobody waits for the thread, so the last reference may be dropped on the thread itself. All signals are
/// blocked on it, so a handler never interrupts its system calls.
///
/// The queue has no bound of its own: a job of an actor is a suspended task, and the creator of tasks bounds them.
package final class BlockingExecutor: SerialExecutor {
    /// The name of the executor. Its first 15 bytes are the name of the thread.
    package let name: String

    private let worker: WorkerThreads

    /// Starts the thread.
    ///
    /// - Throws: `Errno.resourceTemporarilyUnavailable` if the system has no thread to give.
    package init(name: String) throws(Errno) {
        self.name = name
        worker = try WorkerThreads(name: name)
    }

    deinit {
        worker.finish()
    }

    /// Whether the caller runs on this executor's thread.
    package var isCurrent: Bool { worker.isCurrent }

    /// Runs `work` on the thread, later, in order with other work. Callable from anywhere.
    package func submit(_ work: @escaping @Sendable () -> Void) {
        worker.append {
            work()
            // Keeps the executor, and so the thread, until the work is done.
            withExtendedLifetime(self) {}
        }
    }

    // MARK: - SerialExecutor

    /// Puts a job of an actor onto the thread. Called by the concurrency runtime.
    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        worker.append { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
    }

    /// Stops the process unless the caller runs on the executor's thread. Called by the concurrency runtime.
    package func checkIsolated() {
        precondition(isCurrent, "not on the thread of the blocking executor \(name)")
    }

    /// Tells the concurrency runtime whether the caller runs on the executor's thread.
    package func isIsolatingCurrentContext() -> Bool? {
        isCurrent
    }
}
