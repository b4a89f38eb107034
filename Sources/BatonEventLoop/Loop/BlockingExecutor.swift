// SPDX-License-Identifier: Apache-2.0

package import SystemPackage

/// A serial executor with a thread of its own, for work that blocks: files and D-Bus.
///
/// An actor whose `unownedExecutor` is one of these may call blocking functions in its methods; nobody else waits for
/// them.
///
/// A real thread rather than a Dispatch queue: Dispatch counts the threads that run and makes new ones by it, and a
/// thread that blocks for minutes in its pool distorts that. It also gives the work one thread, with a name.
///
/// The thread must not be restricted (Landlock, a changed user): whoever hands work to Dispatch, as each `await` and
/// each resumed task does, may be the one that makes a new thread for the pool, and a new thread inherits the
/// restriction for ever. Restricted work runs on a ``PrivateThread``.
///
/// The thread starts with the executor and ends when the last reference to the executor is gone and the work that was
/// put there is done; a pending job holds the executor. Nobody waits for the thread, so the last reference may be
/// dropped on the thread itself. All signals are blocked on it, so that a handler never interrupts its system calls.
///
/// The queue has no bound of its own: an actor's job is a suspended task, and who makes tasks bounds them.
package final class BlockingExecutor: SerialExecutor {
    /// What the executor is called. Its first 15 bytes are the name of the thread.
    package let name: String

    private let worker: WorkerThread

    /// Starts the thread.
    ///
    /// - Throws: `Errno.resourceTemporarilyUnavailable` where the machine has no thread to give.
    package init(name: String) throws(Errno) {
        self.name = name
        worker = try WorkerThread(name: name)
    }

    deinit {
        worker.finish()
    }

    /// Whether the caller runs on this executor's thread.
    package var isCurrent: Bool { worker.isCurrent }

    /// Runs `work` on the thread, later, in order with everything else that is put there. Callable from anywhere.
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
