// SPDX-License-Identifier: Apache-2.0

import Dispatch

/// Waits on the calling thread for asynchronous work.
///
/// The work does not run on the threads of the concurrency pool, which may all be waiting here.
enum BlockingCall {
    private static let executor = QueueExecutor()

    /// Runs `body` elsewhere and blocks until it has returned.
    static func wait<Value: Sendable>(for body: @escaping @Sendable () async -> Value) -> Value {
        let result = Slot<Value>()
        Task(executorPreference: executor) { result.fill(await body()) }
        return result.take()
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

/// A value that one thread puts and another waits for.
private final class Slot<Value: Sendable>: @unchecked Sendable {  // reason: ordered by the semaphore
    private let isFilled = DispatchSemaphore(value: 0)
    private var value: Value?

    func fill(_ value: Value) {
        self.value = value
        isFilled.signal()
    }

    func take() -> Value {
        isFilled.wait()
        guard let value else { preconditionFailure("the slot is filled before it is signalled") }
        return value
    }
}
