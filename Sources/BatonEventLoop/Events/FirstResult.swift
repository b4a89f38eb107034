// SPDX-License-Identifier: Apache-2.0

/// A result for which one task waits. Several sources may offer one, from any thread, and the first one counts.
package final class FirstResult<Value: Sendable>: Sendable {
    private struct State {
        var value: Value?
        var waiter: CheckedContinuation<Void, Never>?
    }

    private let state = Lock(State())

    /// Makes an open result.
    package init() {}

    /// Whether there is a result.
    package var isDecided: Bool { state.withLock { $0.value != nil } }

    /// Offers a result.
    ///
    /// - Returns: whether it counts: false if there is one.
    @discardableResult
    package func decide(_ value: Value) -> Bool {
        let (counts, waiter) = state.withLock { state -> (Bool, CheckedContinuation<Void, Never>?) in
            guard state.value == nil else { return (false, nil) }
            state.value = value
            return (true, state.waiter.take())
        }
        waiter?.resume()
        return counts
    }

    /// Waits for the result. One task at a time.
    ///
    /// - Parameters:
    ///   - cancelled: the result if the task is cancelled before; nil goes on waiting.
    ///   - time: the longest wait; nil, the default, is without end.
    ///   - loop: the loop of the timer.
    ///   - late: the result after that time.
    package func value(
        ifCancelled cancelled: Value? = nil, within time: Duration? = nil, on loop: EventLoop = Alarm.loop,
        else late: Value? = nil
    ) async -> Value {
        let timer = time.flatMap { time -> Timer? in
            guard !isDecided, let late else { return nil }
            let timer = Timer(on: loop) { [weak self] in self?.decide(late) }
            timer.schedule(after: time)
            return timer
        }
        defer { timer?.cancel() }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isDecided = state.withLock { state in
                    if state.value == nil { state.waiter = continuation }
                    return state.value != nil
                }
                if isDecided { continuation.resume() }
            }
        } onCancel: {
            if let cancelled { decide(cancelled) }
        }
        // The result goes through the lock and not through the continuation, because the thread sanitizer does not see
        // the latter as a hand-over.
        guard let value = state.withLock({ $0.value }) else { preconditionFailure("resumed without a result") }
        return value
    }
}
