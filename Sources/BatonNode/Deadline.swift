// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonMessages
import BatonTransport

/// Runs an operation that has to end in time. If it does not, it is cancelled, and the error is `timedOut`.
///
/// An operation that obeys its cancellation has ended when this returns. Another one, such as a call to a disk that
/// hangs, is abandoned after ``AbandonedOperations/grace``: it goes on without its caller.
///
/// - Parameters:
///   - duration: how long it may take.
///   - what: completes the sentence "… did not … in N s", such as "the application did not answer".
///   - device: the name of the device that did not answer; empty where it is an application of this device.
///   - target: what the operation waits for, such as a folder; empty where all operations of a call wait for the same.
///   - late: called before the operation is cancelled, such as to tell the other side why. Every result of the
///     operation counts as late from then on.
///   - file: with `line`, the call. While ``AbandonedOperations/bound`` of its operations on a target are abandoned, it
///     fails at once.
func withDeadline<Value: Sendable>(
    _ duration: Duration, _ what: String, device: String = "", target: String = "",
    late: @escaping @Sendable () async -> Void = {}, file: String = #fileID, line: UInt = #line,
    _ operation: @escaping @Sendable () async throws -> Value
) async throws(HandoffError) -> Value {
    let failure = HandoffError(.timedOut, "\(what) within \(duration.components.seconds) s", device: device)
    let (call, abandoned) = ("\(file):\(line) \(target)", AbandonedOperations.shared)
    guard abandoned.hasRoom(for: call) else { throw failure }
    let (outcome, hasEnded) = (FirstResult<Result<Value, any Error>?>(), FirstResult<Bool>())
    // A task of its own inherits no executor.
    let executor = withUnsafeCurrentTask { $0?.unownedTaskExecutor?.asTaskExecutor() }
    let running = Task(executorPreference: executor) {
        do {
            outcome.decide(.success(try await operation()))
        } catch {
            outcome.decide(.failure(error))
        }
        if !hasEnded.decide(true) { abandoned.count(-1, of: call) }
    }
    let inTime = await withTaskCancellationHandler {
        await outcome.value(within: duration, else: .some(nil))
    } onCancel: {
        running.cancel()
    }
    if let inTime {
        do {
            return try inTime.get()
        } catch {
            throw HandoffError(wrapping: error)
        }
    }
    await late()
    running.cancel()
    if await !hasEnded.value(within: AbandonedOperations.grace, else: false) { abandoned.count(1, of: call) }
    throw failure
}

/// Runs an operation until it ends. If `end` returns first, the operation is cancelled, and still says how it ended.
///
/// - Throws: what the operation or `end` throws.
func running<Value: Sendable>(
    _ operation: @escaping @Sendable () async throws -> Value, until end: @escaping @Sendable () async throws -> Void
) async throws -> Value {
    try await withThrowingTaskGroup(of: Value?.self) { group in
        group.addTask { try await operation() }
        group.addTask {
            try await end()
            return nil
        }
        defer { group.cancelAll() }
        while let result = try await group.next() {
            if let result { return result }
            group.cancelAll()
        }
        throw _Concurrency.CancellationError()
    }
}

/// Counts the operations that go on after their deadline.
///
/// Each call of ``withDeadline(_:_:device:target:late:file:line:_:)`` in the source has a count of its own for each
/// target. So a shared folder that hangs stops only the operations that need it.
final class AbandonedOperations: Sendable {
    /// Abandoned operations of one call from which on no further one is begun. Each keeps what it has captured until it
    /// ends. Default 32.
    static let bound = 32
    /// How long an operation has to obey its cancellation. Default 100 ms.
    static let grace = Duration.milliseconds(100)

    static let shared = AbandonedOperations()

    /// By file and line of the call, and target. The end of an operation may be counted before its abandonment.
    private let counts = Lock<[String: Int]>([:])

    /// The number of operations of all calls that go on now.
    var count: Int { counts.withLock { $0.values.reduce(0, +) } }

    fileprivate func hasRoom(for call: String) -> Bool { counts.withLock { $0[call, default: 0] < Self.bound } }

    fileprivate func count(_ difference: Int, of call: String) {
        counts.withLock { counts in
            let count = counts[call, default: 0] + difference
            counts[call] = count == 0 ? nil : count
        }
    }
}

extension Task where Failure == any Error {
    /// The task's value, as ``value``, except that a cancelled wait ends at once; the task itself goes on.
    var valueUnlessCancelled: Success {
        get async throws {
            let result = FirstResult<Result<Success, any Error>>()
            Task<Void, Never> { result.decide(await self.result) }
            return try await result.value(ifCancelled: .failure(_Concurrency.CancellationError())).get()
        }
    }
}
