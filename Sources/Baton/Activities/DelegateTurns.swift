// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop

/// Serialises the calls of one activity's delegate.
///
/// A call keeps its turn for as long as its answer may take, counted from its beginning, so that a hanging call delays
/// others no longer than that. At most three calls wait: one save for all waiting devices (`nextSave`), one event
/// (``DelegateNews``), and one save of becoming current (`isSaveQueued`).
final class DelegateTurns: Sendable {
    private struct Waiting: Sendable {
        let isForDevices: Bool
        let begin: CheckedContinuation<Void, Never>
    }

    private struct Current: Sendable {
        /// Ends it before its time. `nil` until it has begun.
        var end: (@Sendable () -> Void)?
        /// It is to end as soon as it has begun.
        var isOver = false
    }

    private struct State {
        var current: Current?
        /// A call for devices is first.
        var waiting: [Waiting] = []
    }

    private let state = Lock(State())

    /// Calls `body` in its turn.
    ///
    /// - Parameter limit: how long the answer may take.
    /// - Returns: the answer; `nil` if it does not come in time.
    func call<Answer: Sendable>(
        within limit: Duration, _ body: @escaping @Sendable () async -> Answer
    ) async -> Answer? {
        await begin(isForDevices: false)
        return await run(within: limit, body)
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
            endCurrentForDevices()
        }
        await begin(isForDevices: true)
        overtaking.cancel()
        return await run(within: limit, body)
    }

    /// Waits for a turn.
    private func begin(isForDevices: Bool) async {
        await withCheckedContinuation { begin in
            let isNext = state.withLock { state in
                guard state.current != nil else {
                    state.current = Current()
                    return true
                }
                let place = isForDevices ? state.waiting.firstIndex { !$0.isForDevices } : nil
                let waiting = Waiting(isForDevices: isForDevices, begin: begin)
                state.waiting.insert(waiting, at: place ?? state.waiting.count)
                return false
            }
            if isNext { begin.resume() }
        }
    }

    private func run<Answer: Sendable>(
        within limit: Duration, _ body: @escaping @Sendable () async -> Answer
    ) async -> Answer? {
        let asked = Task { await answer(within: limit, body) }
        let isOver = state.withLock { state in
            state.current?.end = asked.cancel
            return state.current?.isOver == true
        }
        if isOver { asked.cancel() }
        defer { beginNext() }
        return await asked.value
    }

    private func beginNext() {
        let next = state.withLock { state -> Waiting? in
            let next = state.waiting.isEmpty ? nil : state.waiting.removeFirst()
            state.current = next.map { _ in Current() }
            return next
        }
        next?.begin.resume()
    }

    private func endCurrentForDevices() {
        let end = state.withLock { state -> (@Sendable () -> Void)? in
            // Their turn may have come just now.
            guard state.waiting.first?.isForDevices == true else { return nil }
            state.current?.isOver = true
            return state.current?.end
        }
        end?()
    }
}

/// The answer of an application's code; `nil` if it does not come in time, or the task is cancelled.
///
/// Returns at the limit even if the code ignores its cancellation. A late answer is dropped.
func answer<Answer: Sendable>(
    within limit: Duration, _ body: @escaping @Sendable () async -> Answer
) async -> Answer? {
    let (answers, answer) = AsyncStream<Answer?>.makeStream(bufferingPolicy: .bufferingOldest(1))
    let asked = Task { _ = answer.yield(await body()) }
    let timer = Task {
        try? await Task.sleep(for: limit)
        _ = answer.yield(nil)
    }
    defer {
        asked.cancel()
        timer.cancel()
    }
    for await first in answers { return first }
    return nil
}

/// The queue of events for one activity's delegate. Events are delivered in order, and adding one does not wait.
///
/// A hanging delegate delays the events of its own activity only, and neither the node's messages nor other activities.
final class DelegateNews: Sendable {
    /// The number of queued events from which a report of a takeover waits for space.
    static let bound = 64
    /// The most queued events. Beyond it, events that the library itself found are only logged.
    private static let limit = 2 * bound

    private struct State {
        var waiting: [@Sendable () async -> Void] = []
        var telling: Task<Void, Never>?
    }

    private let state = Lock(State())

    /// Calls `body` after all earlier events have been delivered.
    func tell(_ body: @escaping @Sendable () async -> Void) {
        state.withLock { state in
            guard state.waiting.count < Self.limit else { return }
            state.waiting.append(body)
            if state.telling == nil { state.telling = Task { await self.tellAll() } }
        }
    }

    /// Waits until the queue is short enough.
    func room() async {
        await state.withLock { $0.waiting.count < Self.bound ? nil : $0.telling }?.value
    }

    private func tellAll() async {
        while let body = next() { await body() }
    }

    private func next() -> (@Sendable () async -> Void)? {
        state.withLock { state in
            guard state.waiting.isEmpty else { return state.waiting.removeFirst() }
            state.telling = nil
            return nil
        }
    }
}
