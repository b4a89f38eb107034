// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop

/// Serialises the calls of one activity's delegate.
///
/// A call keeps its turn for as long as its answer may take, counted from its beginning, so that a hanging call delays
/// others no longer than that. It delays neither the node's messages nor other activities.
final class DelegateTurns: Sendable {
    /// The number of waiting calls from which a report of a takeover waits for space: 64.
    static let bound = 64
    /// The most waiting calls: 128. Beyond it, events that the library itself found are only logged.
    private static let limit = 2 * bound

    private struct Call: Sendable {
        let isForDevices: Bool
        let run: @Sendable () async -> Void
    }

    private struct State {
        var current: Task<Void, Never>?
        /// A call for devices is first.
        var waiting: [Call] = []
        var running: Task<Void, Never>?
    }

    private let state = Lock(State())

    /// Calls `body` in its turn.
    ///
    /// - Parameters:
    ///   - limit: how long the answer may take.
    ///   - isForDevices: whether its turn is before every call that has not begun.
    /// - Returns: the answer; `nil` if it does not come in time.
    func call<Answer: Sendable>(
        within limit: Duration, isForDevices: Bool = false, _ body: @escaping @Sendable () async -> Answer
    ) async -> Answer? {
        await withCheckedContinuation { done in
            add(Call(isForDevices: isForDevices) { done.resume(returning: await answer(within: limit, body)) })
        }
    }

    /// Calls `body` for devices that wait for the answer, before every call that has not begun.
    ///
    /// - Parameters:
    ///   - limit: how long the answer may take.
    ///   - patience: how long the running call may go on. Its task is cancelled then.
    /// - Returns: the answer; `nil` if it does not come in time.
    func callForDevices<Answer: Sendable>(
        within limit: Duration, endingOthersAfter patience: Duration, _ body: @escaping @Sendable () async -> Answer
    ) async -> Answer? {
        let overtaking = Task {
            guard (try? await Task.sleep(for: patience)) != nil else { return }
            // Their turn may have come just now.
            state.withLock { $0.waiting.first?.isForDevices == true ? $0.current : nil }?.cancel()
        }
        return await call(within: limit, isForDevices: true) {
            overtaking.cancel()
            return await body()
        }
    }

    /// Calls `body` after all earlier calls, without waiting for it.
    func tell(within limit: Duration, _ body: @escaping @Sendable () async -> Void) {
        add(Call(isForDevices: false) { _ = await answer(within: limit, body) }, atMost: Self.limit)
    }

    /// Waits until few enough calls wait.
    func room() async {
        await state.withLock { $0.waiting.count < Self.bound ? nil : $0.running }?.value
    }

    private func add(_ call: Call, atMost limit: Int = .max) {
        state.withLock { state in
            guard state.waiting.count < limit else { return }
            let place = call.isForDevices ? state.waiting.firstIndex { !$0.isForDevices } : nil
            state.waiting.insert(call, at: place ?? state.waiting.count)
            if state.running == nil { state.running = Task { while let call = beginNext() { await call.value } } }
        }
    }

    private func beginNext() -> Task<Void, Never>? {
        state.withLock { state in
            if state.waiting.isEmpty {
                (state.current, state.running) = (nil, nil)
            } else {
                state.current = Task(operation: state.waiting.removeFirst().run)
            }
            return state.current
        }
    }
}

/// The answer of an application's code; `nil` if it does not come in time, or the task is cancelled.
///
/// Returns at the limit even if the code ignores its cancellation. A late answer is dropped.
func answer<Answer: Sendable>(
    within limit: Duration, _ body: @escaping @Sendable () async -> Answer
) async -> Answer? {
    let first = FirstResult<Answer?>()
    let asked = Task { _ = first.decide(await body()) }
    defer { asked.cancel() }
    return await first.value(ifCancelled: .some(nil), within: limit, else: .some(nil))
}
