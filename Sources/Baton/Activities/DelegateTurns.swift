import BatonEventLoop

/// Lets the calls of one activity's delegate come one after the other.
///
/// A call has its turn for as long as its answer may take, counted from when it begins, so that one that hangs holds up
/// nobody for longer. Who waits here is bounded by who calls: one question of the node, one thing that the delegate is told
/// (``DelegateNews``), one save of becoming current (`isSaveQueued`).
final class DelegateTurns: Sendable {
    private struct Waiting: Sendable {
        let number: UInt64
        /// Another device waits for the answer.
        let isForDevice: Bool
        let begin: CheckedContinuation<Void, Never>
    }

    private struct Current: Sendable {
        let isForDevice: Bool
        /// Ends it before its time. `nil` until it has begun.
        var end: (@Sendable () -> Void)?
        /// It is to end as soon as it has begun.
        var isOvertaken = false
    }

    private struct State {
        var lastNumber: UInt64 = 0
        var current: Current?
        var waiting: [Waiting] = []
    }

    private let state = Lock(State())

    /// Calls `body` when it is its turn.
    ///
    /// - Parameters:
    ///   - limit: how long the answer may take.
    ///   - patience: where another device waits for the answer, how long what the delegate does for its own may go on. Its
    ///     task is cancelled then, and what has not begun comes afterwards.
    /// - Returns: its answer; `nil` where that does not come in time.
    func call<Answer: Sendable>(
        within limit: Duration, overtakingAfter patience: Duration? = nil,
        _ body: @escaping @Sendable () async -> Answer
    ) async -> Answer? {
        let number = state.withLock { state in
            state.lastNumber += 1
            return state.lastNumber
        }
        let overtaking = patience.map { patience in
            Task {
                guard (try? await Task.sleep(for: patience)) != nil else { return }
                overtake(with: number)
            }
        }
        await begin(number, isForDevice: patience != nil)
        overtaking?.cancel()
        let asked = Task { await answer(within: limit, body) }
        let isOvertaken = state.withLock { state in
            state.current?.end = asked.cancel
            return state.current?.isOvertaken == true
        }
        if isOvertaken { asked.cancel() }
        defer { beginNext() }
        return await asked.value
    }

    private func begin(_ number: UInt64, isForDevice: Bool) async {
        await withCheckedContinuation { continuation in
            let isNext = state.withLock { state in
                guard state.current != nil else {
                    state.current = Current(isForDevice: isForDevice)
                    return true
                }
                state.waiting.append(Waiting(number: number, isForDevice: isForDevice, begin: continuation))
                return false
            }
            if isNext { continuation.resume() }
        }
    }

    private func beginNext() {
        let next = state.withLock { state -> Waiting? in
            let next = state.waiting.isEmpty ? nil : state.waiting.removeFirst()
            state.current = next.map { Current(isForDevice: $0.isForDevice) }
            return next
        }
        next?.begin.resume()
    }

    /// Has a turn that waits come before all that are not for a device, and ends one of these that is under way.
    private func overtake(with number: UInt64) {
        let end = state.withLock { state -> (@Sendable () -> Void)? in
            guard let index = state.waiting.firstIndex(where: { $0.number == number }) else { return nil }
            let turn = state.waiting.remove(at: index)
            state.waiting.insert(turn, at: state.waiting.firstIndex { !$0.isForDevice } ?? index)
            guard state.current?.isForDevice == false else { return nil }
            state.current?.isOvertaken = true
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
