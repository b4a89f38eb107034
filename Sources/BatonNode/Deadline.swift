// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonMessages
import BatonTransport

/// Runs an operation that has to end in time; when it does not, it is cancelled and the error is `timedOut`.
///
/// It returns when the operation has: one that ignores its cancellation is waited for.
///
/// - Parameters:
///   - duration: how long it may take.
///   - what: completes the sentence "… did not … in N s", such as "the application did not answer".
///   - device: the name of the device that did not answer; empty where it is an application of this device.
///   - late: what is done before the operation is cancelled, such as to tell the other side why; what the operation
///     throws because of that counts as late.
func withDeadline<Value: Sendable>(
    _ duration: Duration, _ what: String, device: String = "", late: @escaping @Sendable () async -> Void = {},
    _ operation: @escaping @Sendable () async throws -> Value
) async throws(HandoffError) -> Value {
    let failure = HandoffError(.timedOut, "\(what) within \(duration.components.seconds) s", device: device)
    let isLate = Lock(false)
    do {
        return try await withThrowingTaskGroup(of: Value.self) { group in
            group.addTask(operation: operation)
            group.addTask { @Sendable in
                try await Task.sleep(for: duration)
                isLate.withLock { $0 = true }
                await late()
                throw failure
            }
            defer { group.cancelAll() }
            guard let value = try await group.next() else { throw CancellationError() }
            return value
        }
    } catch {
        throw isLate.withLock { $0 } ? failure : HandoffError(wrapping: error)
    }
}

extension Task where Failure == any Error {
    /// The task's value, as ``value``, except that a cancelled wait ends at once; the task itself goes on.
    var valueUnlessCancelled: Success {
        get async throws {
            let (results, result) = AsyncStream<Result<Success, any Error>>.makeStream(
                bufferingPolicy: .bufferingOldest(1))
            Task<Void, Never> {
                result.yield(await self.result)
                result.finish()
            }
            for await result in results { return try result.get() }
            throw _Concurrency.CancellationError()
        }
    }
}
