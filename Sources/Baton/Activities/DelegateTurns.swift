import BatonEventLoop

/// Lets the calls of one activity's delegate come one after the other.
///
/// A call has its turn for as long as its answer may take, so that one that hangs holds up nobody for longer. Who
/// waits here is bounded by who calls: the node's unanswered requests, one thing that it is told, one save of its own.
final class DelegateTurns: Sendable {
    private let last = Lock<Task<Void, Never>?>(nil)

    /// Calls `body` when it is its turn.
    ///
    /// - Returns: its answer; `nil` where that, the wait for the turn counted, does not come in time.
    func call<Answer: Sendable>(
        within limit: Duration, _ body: @escaping @Sendable () async -> Answer
    ) async -> Answer? {
        let (never, isOver) = AsyncStream<Never>.makeStream()
        let turn = Task { for await _ in never {} }
        defer { isOver.finish() }
        let previous = last.withLock { last in
            defer { last = turn }
            return last
        }
        let result: Answer?? = await answer(within: limit) {
            await previous?.value
            // Nobody waits for this any more: it is not begun.
            return Task.isCancelled ? nil : await body()
        }
        return result ?? nil
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
