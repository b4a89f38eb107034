// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop

/// Streams of the same events for any number of watchers, each in the order of the calls.
final class Watchers<Event: Sendable>: Sendable {
    private struct State {
        /// The event that a new watcher gets first.
        var latest: Event?
        var watchers: [UInt64: AsyncStream<Event>.Continuation] = [:]
        var count: UInt64 = 0
        var hasEnded = false
    }

    private let state: Lock<State>
    /// The most events that wait for a slow watcher. A further one drops the oldest.
    private let waitingBound: Int
    /// Watchers at a time. The stream of one more ends at once.
    private let bound: Int

    /// - Parameter latest: what each new watcher gets first, until a later call of ``tell(_:isLatest:)`` replaces it.
    init(waitingBound: Int, bound: Int = .max, latest: Event? = nil) {
        self.waitingBound = waitingBound
        self.bound = bound
        state = Lock(State(latest: latest))
    }

    deinit { end() }

    var latest: Event? { state.withLock { $0.latest } }

    /// Tells all watchers.
    ///
    /// - Parameter isLatest: whether watchers that come later get it as well. If it is unchanged, nobody gets it again.
    func tell(_ event: Event, isLatest: Bool = false) where Event: Equatable {
        state.withLock { state in
            guard !isLatest || state.latest != event else { return }
            if isLatest { state.latest = event }
            for watcher in state.watchers.values { watcher.yield(event) }
        }
    }

    /// Ends every watch, after a last event.
    func end(_ last: Event? = nil) {
        let watchers = state.withLock { state in
            defer { state.watchers = [:] }
            state.hasEnded = true
            if let last { for watcher in state.watchers.values { watcher.yield(last) } }
            return Array(state.watchers.values)
        }
        // Not under the lock, which the end of a watch takes.
        for watcher in watchers { watcher.finish() }
    }

    func watch() -> AsyncStream<Event> {
        let (events, watcher) = AsyncStream<Event>.makeStream(bufferingPolicy: .bufferingNewest(waitingBound))
        let number = state.withLock { state -> UInt64? in
            guard !state.hasEnded, state.watchers.count < bound else { return nil }
            state.count += 1
            state.watchers[state.count] = watcher
            if let latest = state.latest { watcher.yield(latest) }
            return state.count
        }
        guard let number else {
            watcher.finish()
            return events
        }
        watcher.onTermination = { [weak self] _ in _ = self?.state.withLock { $0.watchers.removeValue(forKey: number) }
        }
        return events
    }
}
