// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonMessages
import BatonProtocol
import BatonTransport

/// Bounds the waits of one transfer, which come one after the other and are many: each has to end in time.
///
/// ``withDeadline(_:_:device:target:late:file:line:_:)`` needs a task and a timer for each wait. Here one task serves
/// all waits. It looks at intervals which wait is under way, and a wait that it sees too often in a row is over its
/// time. Time in which the process stood still, as in a machine that was suspended, counts as one look. The data that
/// ends the wait may lie in the kernel, and had no chance to be read.
final class StallWatch: Sendable {
    private struct State {
        /// Counts the waits; what is watched is always the last one.
        var number: UInt64 = 0
        /// Names what the present wait is for, as an error says it; nil between two waits.
        var what: StaticString?
        /// Why the last wait was given up.
        var failure: HandoffError?
    }

    /// Looks in the time that a wait may take: 30, so a wait may take a thirtieth more than ``limit``.
    private static let looks = 30
    /// How long a wait that was asked to end early has for that, beside the time to the next look: 100 ms.
    private static let grace = Duration.milliseconds(100)

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
            state.what = what
        }
        defer { state.withLock { $0.what = nil } }
        let value: Value
        do {
            value = try await operation()
        } catch {
            throw failure(because: error)
        }
        if let failure = state.withLock({ $0.failure }) { throw failure }
        return value
    }

    /// The failure of a wait, or of the whole operation.
    fileprivate func failure(because error: any Error) -> HandoffError {
        state.withLock { $0.failure } ?? HandoffError(documentCause: error)
    }

    /// Returns when a wait has taken too long.
    ///
    /// - Parameter shortening: called when a wait is over its time, to make it end early with what it has.
    fileprivate func stalled(shortening: (@Sendable () async -> Void)?) async throws {
        var (last, count): (UInt64?, Int) = (nil, 0)
        while true {
            try await Alarm.sleep(for: limit / Self.looks)
            let wait = state.withLock { $0.what == nil ? nil : $0.number }
            count = wait == last ? count + 1 : 0
            last = wait
            guard let wait, count >= Self.looks else { continue }
            if count == Self.looks, let shortening {
                await shortening()
                try await Alarm.sleep(for: Self.grace)
            } else if fail(wait) {
                return
            }
        }
    }

    /// Gives up a wait, unless it has just ended.
    private func fail(_ number: UInt64) -> Bool {
        state.withLock { state in
            guard state.number == number, let what = state.what else { return false }
            state.failure = HandoffError(.timedOut, "\(what) within \(limit.components.seconds) s")
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
///   - shortening: called when a wait is over its time, to make it end early with what it has. A wait that then does
///     not end is given up. By default a wait is given up at once.
func withStallWatch<Value: Sendable>(
    _ limit: Duration, shortening: (@Sendable () async -> Void)? = nil,
    _ operation: @escaping @Sendable (StallWatch) async throws -> Value
) async throws(HandoffError) -> Value {
    let watch = StallWatch(limit: limit)
    do {
        return try await running(
            { try await operation(watch) }, until: { try await watch.stalled(shortening: shortening) })
    } catch {
        throw watch.failure(because: error)
    }
}
