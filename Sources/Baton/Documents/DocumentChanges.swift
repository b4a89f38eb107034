// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop

/// The events of a document, for all its watchers.
final class DocumentChanges: Sendable {
    /// The most events that wait for a slow watcher; a further one drops the oldest. The application bounds the number
    /// of watchers: each is a stream that it asked for.
    static let waitingBound = 32

    private struct State {
        var watchers: [UInt64: AsyncStream<Document.Change>.Continuation] = [:]
        var count: UInt64 = 0
        var hasEnded = false
    }

    private let state = Lock(State())

    deinit {
        for watcher in state.withLock({ Array($0.watchers.values) }) { watcher.finish() }
    }

    /// Tells all watchers, each in the order of the calls.
    func tell(_ change: Document.Change) {
        state.withLock { for watcher in $0.watchers.values { watcher.yield(change) } }
    }

    /// Tells the last change, and ends every watch.
    func end() {
        let watchers = state.withLock { state in
            defer { state.watchers = [:] }
            state.hasEnded = true
            for watcher in state.watchers.values { watcher.yield(.closed) }
            return Array(state.watchers.values)
        }
        // Not under the lock, which the end of a watch takes.
        for watcher in watchers { watcher.finish() }
    }

    func watch() -> AsyncStream<Document.Change> {
        let (changes, watcher) = AsyncStream<Document.Change>.makeStream(
            bufferingPolicy: .bufferingNewest(Self.waitingBound))
        let number = state.withLock { state -> UInt64? in
            guard !state.hasEnded else { return nil }
            state.count += 1
            state.watchers[state.count] = watcher
            return state.count
        }
        guard let number else {
            watcher.finish()
            return changes
        }
        watcher.onTermination = { [weak self] _ in _ = self?.state.withLock { $0.watchers.removeValue(forKey: number) }
        }
        return changes
    }
}
