// SPDX-License-Identifier: Apache-2.0

import BatonMessages

/// Lets the reads of one document happen one after the other, in the order in which they came.
@ControlLoop
final class ReadQueue {
    /// Reads that wait behind the one that is under way; one more is refused.
    nonisolated static let bound = 8

    private var isTaken = false
    private var waiting: [CheckedContinuation<Void, Never>] = []

    nonisolated init() {}

    /// Reads that wait.
    var count: Int { waiting.count }

    /// Waits for the turn, which ``leave()`` ends.
    ///
    /// A cancellation does not end the wait. The tasks of the local socket end with their streams, and find out when
    /// their turn comes.
    ///
    /// - Throws: `limitExceeded` where ``bound`` wait already.
    func enter() async throws(HandoffError) {
        guard isTaken else {
            isTaken = true
            return
        }
        guard waiting.count < Self.bound else {
            throw HandoffError(.limitExceeded, "\(Self.bound) reads of this document wait already: try again later")
        }
        await withCheckedContinuation { waiting.append($0) }
    }

    /// The turn goes to the next without being free in between.
    func leave() {
        guard waiting.isEmpty else { return waiting.removeFirst().resume() }
        isTaken = false
    }
}
