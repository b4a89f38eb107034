// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop

/// What one activity's delegate is told, each thing after the one before, without anybody waiting who tells it.
///
/// A delegate that hangs delays what is told of its own activity, and neither what the node says meanwhile nor other
/// activities.
final class DelegateNews: Sendable {
    /// How many things wait to be told until who tells of takeovers waits for room.
    static let bound = 64
    /// How many wait at the most; what the library has found by itself is only logged then.
    private static let limit = 2 * bound

    private struct State {
        var waiting: [@Sendable () async -> Void] = []
        var telling: Task<Void, Never>?
    }

    private let state = Lock(State())

    /// Calls `body` when all that was to be told before has been.
    func tell(_ body: @escaping @Sendable () async -> Void) {
        state.withLock { state in
            guard state.waiting.count < Self.limit else { return }
            state.waiting.append(body)
            if state.telling == nil { state.telling = Task { await self.tellAll() } }
        }
    }

    /// Waits until all has been told where too much waits.
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
