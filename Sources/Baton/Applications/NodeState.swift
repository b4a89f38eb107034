// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop

/// Whether an application has its node.
public enum NodeState: Sendable, Hashable {
    /// The application was not started, or was closed.
    case idle
    /// There is no node, or it has no room for the application, for this reason; it is tried again.
    case missing(reason: String)
    /// The node knows the application.
    case connected
}

/// The state of the connection to the node, for all its watchers.
final class NodeStateBoard: Sendable {
    /// Watchers at a time; the stream of one more ends at once.
    static let bound = 64

    private struct State {
        var current = NodeState.idle
        var watchers: [UInt64: AsyncStream<NodeState>.Continuation] = [:]
        var count: UInt64 = 0
    }

    private let state = Lock(State())

    deinit {
        for watcher in state.withLock({ Array($0.watchers.values) }) { watcher.finish() }
    }

    var current: NodeState { state.withLock { $0.current } }

    /// Tells all watchers of a new state. An unchanged state is not repeated.
    func set(_ new: NodeState) {
        let watchers = state.withLock { state in
            guard state.current != new else { return [AsyncStream<NodeState>.Continuation]() }
            state.current = new
            return Array(state.watchers.values)
        }
        for watcher in watchers { watcher.yield(new) }
    }

    /// The current state and each later one. A slow reader misses those between.
    func watch() -> AsyncStream<NodeState> {
        let (states, watcher) = AsyncStream<NodeState>.makeStream(bufferingPolicy: .bufferingNewest(1))
        let number = state.withLock { state -> UInt64? in
            guard state.watchers.count < Self.bound else { return nil }
            state.count += 1
            state.watchers[state.count] = watcher
            watcher.yield(state.current)
            return state.count
        }
        guard let number else {
            watcher.finish()
            return states
        }
        watcher.onTermination = { [weak self] _ in _ = self?.state.withLock { $0.watchers.removeValue(forKey: number) }
        }
        return states
    }
}
