// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop

/// Tasks that wait for something to happen, each under a key and for a time.
@ControlLoop
final class WaitList<Key: Hashable & Sendable> {
    enum Outcome {
        case woken
        /// The time was over, the task was cancelled, or the list was stopped.
        case ended
        /// As many tasks wait as may.
        case refused
    }

    private let bound, boundPerKey: Int
    private var waiting: [UInt64: (key: Key, continuation: CheckedContinuation<Outcome, Never>)] = [:]
    private var lastNumber: UInt64 = 0

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
        lastNumber += 1
        let number = lastNumber
        let timer = BatonEventLoop.Timer { [weak self] in self?.end(number, .ended) }
        defer { timer.cancel() }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                guard !Task.isCancelled else { return continuation.resume(returning: .ended) }
                guard waiting.count < bound, waiting.values.count(where: { $0.key == key }) < boundPerKey else {
                    return continuation.resume(returning: .refused)
                }
                waiting[number] = (key, continuation)
                timer.schedule(after: limit)
            }
        } onCancel: {
            ControlLoop.execute { [weak self] in self?.end(number, .ended) }
        }
    }

    /// Ends the waits under a key.
    func wake(_ key: Key) {
        for (number, wait) in waiting where wait.key == key { end(number, .woken) }
    }

    /// Ends every wait.
    func stop() {
        for number in waiting.keys { end(number, .ended) }
    }

    private func end(_ number: UInt64, _ outcome: Outcome) {
        waiting.removeValue(forKey: number)?.continuation.resume(returning: outcome)
    }
}
