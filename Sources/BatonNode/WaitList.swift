// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop

/// Tasks that wait for something to happen, each under a key and for a time.
@ControlLoop
final class WaitList<Key: Hashable & Sendable> {
    enum Outcome {
        case woken
        /// The time was over, or the task was cancelled.
        case ended
        /// As many tasks wait as may.
        case refused
    }

    private let bound, boundPerKey: Int
    private var waiting: [ObjectIdentifier: (key: Key, outcome: FirstResult<Outcome>)] = [:]

    /// - Parameters:
    ///   - bound: the most tasks that wait at once.
    ///   - boundPerKey: those of them that wait under the same key.
    nonisolated init(bound: Int, boundPerKey: Int) {
        self.bound = bound
        self.boundPerKey = boundPerKey
    }

    /// Waits until ``wake(_:)``.
    @discardableResult
    func wait(for key: Key, atMost limit: Duration) async -> Outcome {
        let there = waiting.values.filter { !$0.outcome.isDecided }
        guard there.count < bound, there.count(where: { $0.key == key }) < boundPerKey else { return .refused }
        let outcome = FirstResult<Outcome>()
        waiting[ObjectIdentifier(outcome)] = (key, outcome)
        defer { waiting[ObjectIdentifier(outcome)] = nil }
        return await outcome.value(ifCancelled: .ended, within: limit, on: ControlLoop.loop, else: .ended)
    }

    /// Ends the waits under a key.
    func wake(_ key: Key) {
        for wait in waiting.values where wait.key == key { wait.outcome.decide(.woken) }
    }
}
