// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop

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
