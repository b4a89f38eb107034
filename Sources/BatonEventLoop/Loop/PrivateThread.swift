// SPDX-License-Identifier: Apache-2.0

import Dispatch
package import SystemPackage

/// A thread that runs closures while the caller waits, for work that restricts its own thread.
///
/// Landlock binds a thread and every thread that it makes. Dispatch makes pool threads on whatever thread hands it
/// work, and the concurrency runtime hands it work at every resumption. So a restricted thread that used either would
/// spread its restriction over the process. This thread uses neither: a closure runs from beginning to end without
/// `await`, and the answer goes back through a semaphore.
///
/// The closure must not use Dispatch, start tasks or resume continuations. The caller blocks meanwhile, so it runs on a
/// ``BlockingExecutor``. The thread ends with the last reference.
package final class PrivateThread: Sendable {
    private let worker: WorkerThread

    /// Starts the thread.
    ///
    /// - Parameter name: its first 15 bytes name the thread.
    /// - Throws: `Errno.resourceTemporarilyUnavailable` if the system has no thread to give.
    package init(name: String) throws(Errno) {
        worker = try WorkerThread(name: name)
    }

    deinit {
        worker.finish()
    }

    /// Whether the caller is this thread.
    package var isCurrent: Bool { worker.isCurrent }

    /// Runs `work` on the thread, after earlier work, and waits for it. Not from the thread itself.
    ///
    /// - Returns: the result of `work`.
    /// - Throws: the error of `work`.
    package func perform<Value: Sendable, Failure: Error>(
        _ work: @escaping @Sendable () throws(Failure) -> Value
    ) throws(Failure) -> Value {
        precondition(!isCurrent, "a private thread cannot wait for itself")
        let done = DispatchSemaphore(value: 0)
        let answer = Answer<Value, Failure>()
        worker.append {
            do throws(Failure) {
                let value = try work()
                answer.result.withLock { $0 = .success(value) }
            } catch {
                answer.result.withLock { $0 = .failure(error) }
            }
            done.signal()
        }
        while true {
            done.wait()
            if let result = answer.result.withLock({ $0 }) { return try result.get() }
        }
    }

    /// Runs `work` on the thread, after earlier work, and does not wait. Callable from anywhere.
    package func submit(_ work: @escaping @Sendable () -> Void) {
        worker.append(work)
    }

    private final class Answer<Value: Sendable, Failure: Error>: Sendable {
        let result = Lock<Result<Value, Failure>?>(nil)
    }
}
