import BatonEventLoop

/// Lets the calls of one activity's delegate come one after the other.
///
/// A call has its turn for as long as its answer may take, so that one that hangs holds up nobody for longer. Who
/// waits here is bounded by who calls: the node's unanswered requests, one thing that it is told, one save of its own.
final class DelegateTurns: Sendable {
    private struct Turn: Sendable {
        let isOver: Task<Void, Never>
        /// Ends it, and with it all that it still waits for.
        let end: @Sendable () -> Void
    }

    private let last = Lock<Turn?>(nil)

    /// Calls `body` when it is its turn.
    ///
    /// - Parameters:
    ///   - limit: how long the answer may take, the wait for the turn counted.
    ///   - patience: where another device waits for the answer, how long those before it may go on. They end then, and
    ///     `body` has the whole of `limit`.
    /// - Returns: its answer; `nil` where that does not come in time.
    func call<Answer: Sendable>(
        within limit: Duration, endingOthersAfter patience: Duration? = nil,
        _ body: @escaping @Sendable () async -> Answer
    ) async -> Answer? {
        let turn = last.withLock { last in
            let previous = last
            let turn = Task {
                await withTaskCancellationHandler {
                    if let previous, let patience { await Self.wait(for: previous, atMost: patience) }
                    return await Self.answer(after: previous, within: limit, body)
                } onCancel: {
                    previous?.end()
                }
            }
            last = Turn(isOver: Task { _ = await turn.value }, end: turn.cancel)
            return turn
        }
        return await turn.value
    }

    private static func wait(for turn: Turn, atMost patience: Duration) async {
        _ = await Baton.answer(within: patience) { await turn.isOver.value }
        turn.end()
    }

    private static func answer<Answer: Sendable>(
        after previous: Turn?, within limit: Duration, _ body: @escaping @Sendable () async -> Answer
    ) async -> Answer? {
        guard !Task.isCancelled else { return nil }
        let result: Answer?? = await Baton.answer(within: limit) {
            await previous?.isOver.value
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
