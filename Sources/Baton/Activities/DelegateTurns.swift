// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop

/// Lets the calls of one activity's delegate come one after the other.
///
/// A call has its turn for as long as its answer may take, counted from when it begins, so that one that hangs holds up
/// nobody for longer. Three wait at the most: one save for all devices that wait (`nextSave`), one thing that the
/// delegate is told (``DelegateNews``), and one save of becoming current (`isSaveQueued`).
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
        /// One that is for devices is the first.
        var waiting: [Waiting] = []
    }

    private let state = Lock(State())

    /// Calls `body` when it is its turn.
    ///
    /// - Parameter limit: how long the answer may take.
    /// - Returns: its answer; `nil` where that does not come in time.
    func call<Answer: Sendable>(
        within limit: Duration, _ body: @escaping @Sendable () async -> Answer
    ) async -> Answer? {
        await begin(isForDevices: false)
        return await run(within: limit, body)
    }

    /// Calls `body` for devices that wait for the answer, before all that has not begun.
    ///
    /// - Parameters:
    ///   - limit: how long the answer may take.
    ///   - patience: how long what is under way may go on. Its task is cancelled then.
    /// - Returns: its answer; `nil` where that does not come in time.
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

/// The answer of code that is not the library's own; `nil` where it does not come in time, or the task is cancelled.
///
/// It returns at the limit even where the code ignores that it is cancelled then; a late answer is dropped.
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
