// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonMessages
import BatonProtocol
import BatonTransport

/// Bounds the waits of one transfer, which come one after the other and are many: each has to end in time.
///
/// ``withDeadline(_:_:device:_:)`` needs two tasks for each wait. Here one task serves all waits: it sleeps until the
/// wait under way would be late, and looks then whether that wait still goes on.
final class StallWatch: Sendable {
    private struct State {
        /// Counts the waits; what is watched is always the last one.
        var number: UInt64 = 0
        /// When the wait that is under way began, and what did not happen if it does not end; nil between two.
        var wait: (start: Instant, what: StaticString)?
        /// Why the last wait was given up.
        var failure: HandoffError?
    }

    /// How long a wait may take.
    let limit: Duration
    private let state = Lock(State())

    fileprivate init(limit: Duration) {
        self.limit = limit
    }

    /// Runs an operation that waits.
    ///
    /// - Parameter what: completes the sentence "… within N s".
    /// - Throws: `timedOut` when it took too long and was cancelled, whatever it ended with then, or what the operation
    ///   throws.
    nonisolated(nonsending) func bound<Value>(
        _ what: StaticString, _ operation: nonisolated(nonsending) () async throws -> Value
    ) async throws(HandoffError) -> Value {
        state.withLock { state in
            state.number += 1
            state.wait = (.now, what)
        }
        let result: Result<Value, any Error>
        do {
            result = .success(try await operation())
        } catch {
            result = .failure(error)
        }
        let failure = state.withLock { state in
            state.wait = nil
            return state.failure
        }
        // Also of one that has ended since: the operation is cancelled already.
        if let failure { throw failure }
        do {
            return try result.get()
        } catch {
            throw HandoffError(documentCause: error)
        }
    }

    /// Returns when a wait has taken too long.
    ///
    /// - Parameter shortening: called when a wait is over its time, to make it end early with what it has.
    fileprivate func stalled(shortening: (@Sendable () async -> Void)?) async throws {
        var clock = StallClock(limit: limit, canShorten: shortening != nil, now: .now)
        while true {
            let (number, start) = state.withLock { ($0.number, $0.wait?.start) }
            let now = Instant.now
            switch clock.verdict(on: number, since: start, now: now) {
            case .wait(let end):
                try await Alarm.sleep(for: end - now)
            case .shorten:
                await shortening?()
                clock.markShortened(number, now: .now)
            case .giveUp:
                if fail(number) { return }
            }
        }
    }

    /// Gives up a wait, unless it has just ended.
    private func fail(_ number: UInt64) -> Bool {
        state.withLock { state in
            guard state.number == number, let wait = state.wait else { return false }
            state.failure = HandoffError(.timedOut, "\(wait.what) within \(limit.components.seconds) s")
            return true
        }
    }
}

/// Runs an operation whose waits are bounded (``StallWatch/bound(_:_:)``): when one takes too long, the operation is
/// cancelled.
///
/// It returns when the operation has: one that ignores its cancellation is waited for.
///
/// - Parameters:
///   - limit: how long each wait may take.
///   - shortening: called when a wait is over its time, to make it end early with what it has. If that does not help
///     within ``StallClock/grace``, the wait is given up. By default a wait is given up at once.
func withStallWatch<Value: Sendable>(
    _ limit: Duration, shortening: (@Sendable () async -> Void)? = nil,
    _ operation: @escaping @Sendable (StallWatch) async throws -> Value
) async throws(HandoffError) -> Value {
    let watch = StallWatch(limit: limit)
    do {
        // A wait that was given up says so itself.
        return try await running(
            { try await operation(watch) }, until: { try await watch.stalled(shortening: shortening) })
    } catch {
        throw HandoffError(documentCause: error)
    }
}
