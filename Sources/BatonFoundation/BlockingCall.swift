// SPDX-License-Identifier: Apache-2.0

import Dispatch

/// Waits on the calling thread for asynchronous work.
///
/// The work does not run on the threads of the concurrency pool, which may all be waiting here.
enum BlockingCall {
    private static let executor = QueueExecutor()

    /// Runs `body` elsewhere and blocks until it has returned.
    static func wait<Value: Sendable>(for body: @escaping @Sendable () async -> Value) -> Value {
        let isDone = DispatchSemaphore(value: 0)
        nonisolated(unsafe) var result: Value?  // reason: ordered by the semaphore
        Task(executorPreference: executor) {
            result = await body()
            isDone.signal()
        }
        isDone.wait()
        guard let result else { preconditionFailure("there is a result when the work is done") }
        return result
    }
}

/// Runs tasks on threads of Dispatch, which makes as many as are needed.
private final class QueueExecutor: TaskExecutor {
    private let queue = DispatchQueue(label: "baton.blocking-streams", attributes: .concurrent)

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}
