// SPDX-License-Identifier: Apache-2.0

/// Sleep for the tasks of a program that waits for days.
///
/// `Task.sleep` wakes a thread of Dispatch's global pool, and from then on that pool wakes the process once a second
/// (see ``GlobalPool``).
package enum Alarm {
    private static let loop = EventLoop(name: "alarms")

    /// Suspends the task, as `Task.sleep(for:)` does. Callable from anywhere.
    ///
    /// - Parameter duration: negative is zero; at most a millisecond more passes.
    /// - Throws: as soon as the task is cancelled.
    package static func sleep(for duration: Duration) async throws(CancellationError) {
        let sleep = Sleep()
        let timer = Timer(on: loop) { sleep.end() }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                if sleep.begin(continuation) { timer.schedule(after: duration) }
            }
        } onCancel: {
            sleep.end()
        }
        withExtendedLifetime(timer) {}
        if Task.isCancelled { throw CancellationError() }
    }
}

/// One sleep, which the timer or a cancellation ends, whichever comes first.
private final class Sleep: Sendable {
    private enum State {
        case new
        case asleep(CheckedContinuation<Void, Never>)
        case over
    }

    private let state = Lock(State.new)

    /// Returns false if the sleep is over already; then the continuation is resumed.
    func begin(_ continuation: CheckedContinuation<Void, Never>) -> Bool {
        let isOver = state.withLock { state in
            if case .over = state { return true }
            state = .asleep(continuation)
            return false
        }
        if isOver { continuation.resume() }
        return !isOver
    }

    func end() {
        let before = state.withLock { state in
            defer { state = .over }
            return state
        }
        if case .asleep(let continuation) = before { continuation.resume() }
    }
}
