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
///   - late: called before the operation is cancelled, such as to tell the other side why. Every result of the
///     operation counts as late from then on.
///   - file: with `line`, the call. While ``AbandonedOperations/bound`` operations of it are abandoned, it fails at
///     once.
func withDeadline<Value: Sendable>(
    _ duration: Duration, _ what: String, device: String = "", late: @escaping @Sendable () async -> Void = {},
    file: String = #fileID, line: UInt = #line, _ operation: @escaping @Sendable () async throws -> Value
) async throws(HandoffError) -> Value {
    let failure = HandoffError(.timedOut, "\(what) within \(duration.components.seconds) s", device: device)
    let race = DeadlineRace<Value>(call: AbandonedOperations.Call(file: file, line: line))
    guard AbandonedOperations.shared.hasRoom(for: race.call) else { throw failure }
    // A task of its own inherits no executor.
    let executor = currentTaskExecutor()
    let running = Task(executorPreference: executor) {
        do {
            race.end(with: .success(try await operation()))
        } catch {
            race.end(with: .failure(error))
        }
    }
    let clock = Task(executorPreference: executor) {
        guard (try? await Alarm.sleep(for: duration)) != nil else { return }
        race.setLate()
        await late()
        running.cancel()
        guard (try? await Alarm.sleep(for: AbandonedOperations.grace)) != nil else { return }
        race.abandon(because: failure)
    }
    defer { clock.cancel() }
    let outcome = await withTaskCancellationHandler {
        await race.outcome()
    } onCancel: {
        running.cancel()
    }
    // An operation that obeys its cancellation may return a value all the same.
    guard !outcome.isLate else { throw failure }
    do {
        return try outcome.result.get()
    } catch {
        throw HandoffError(wrapping: error)
    }
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

private func currentTaskExecutor() -> (any TaskExecutor)? {
    withUnsafeCurrentTask { $0?.unownedTaskExecutor?.asTaskExecutor() }
}

/// Counts the operations that go on after their deadline.
///
/// Each call of ``withDeadline(_:_:device:late:file:line:_:)`` in the source has a count of its own. So a shared folder
/// that hangs stops only the operations that need it.
final class AbandonedOperations: Sendable {
    /// A call of ``withDeadline(_:_:device:late:file:line:_:)``.
    struct Call: Hashable, Sendable {
        let file: String
        let line: UInt
    }

    /// Abandoned operations of one call from which on no further one is begun. Each keeps what it has captured until it
    /// ends. Default 32.
    static let bound = 32
    /// How long an operation has to obey its cancellation. Default 100 ms.
    static let grace = Duration.milliseconds(100)

    static let shared = AbandonedOperations()

    private let counts = Lock<[Call: Int]>([:])

    /// The number of operations of all calls that go on now.
    var count: Int { counts.withLock { $0.values.reduce(0, +) } }

    fileprivate func hasRoom(for call: Call) -> Bool { counts.withLock { $0[call, default: 0] < Self.bound } }

    fileprivate func add(_ call: Call) { counts.withLock { $0[call, default: 0] += 1 } }

    fileprivate func remove(_ call: Call) {
        counts.withLock { counts in
            guard let count = counts[call] else { return }
            counts[call] = count > 1 ? count - 1 : nil
        }
    }
}

/// An operation and its deadline: the first of the two to end decides.
private final class DeadlineRace<Value: Sendable>: Sendable {
    struct Outcome: Sendable {
        let result: Result<Value, any Error>
        let isLate: Bool
    }

    private typealias Waiter = CheckedContinuation<Outcome, Never>

    private enum State {
        case running(isLate: Bool, waiter: Waiter?)
        case over(Outcome)
        case abandoned(Outcome)
    }

    let call: AbandonedOperations.Call
    private let state = Lock(State.running(isLate: false, waiter: nil))

    init(call: AbandonedOperations.Call) {
        self.call = call
    }

    /// Waits for the outcome. Called once; no cancellation ends the wait.
    func outcome() async -> Outcome {
        await withCheckedContinuation { continuation in
            let outcome: Outcome? = state.withLock { state in
                switch state {
                case .running(let isLate, _):
                    state = .running(isLate: isLate, waiter: continuation)
                    return nil
                case .over(let outcome), .abandoned(let outcome): return outcome
                }
            }
            if let outcome { continuation.resume(returning: outcome) }
        }
    }

    func setLate() {
        state.withLock { state in
            guard case .running(_, let waiter) = state else { return }
            state = .running(isLate: true, waiter: waiter)
        }
    }

    /// The operation has ended, perhaps after it was abandoned.
    func end(with result: Result<Value, any Error>) {
        let (waiter, isLate, wasAbandoned): (Waiter?, Bool, Bool) = state.withLock { state in
            switch state {
            case .running(let isLate, let waiter):
                state = .over(Outcome(result: result, isLate: isLate))
                return (waiter, isLate, false)
            case .over: return (nil, false, false)
            case .abandoned: return (nil, false, true)
            }
        }
        if wasAbandoned { AbandonedOperations.shared.remove(call) }
        waiter?.resume(returning: Outcome(result: result, isLate: isLate))
    }

    func abandon(because failure: HandoffError) {
        let outcome = Outcome(result: .failure(failure), isLate: true)
        let waiter: Waiter? = state.withLock { state in
            guard case .running(_, let waiter) = state else { return nil }
            // Counted before the operation can end.
            AbandonedOperations.shared.add(call)
            state = .abandoned(outcome)
            return waiter
        }
        waiter?.resume(returning: outcome)
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
