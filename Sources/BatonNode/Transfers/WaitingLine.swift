// SPDX-License-Identifier: Apache-2.0

import BatonMessages

/// A number of places, which are taken in the order in which callers came.
@ControlLoop
final class WaitingLine {
    private let places: Int
    private let bound: Int
    private var taken = 0
    private(set) var waiting: [CheckedContinuation<Void, Never>] = []

    /// - Parameter bound: how many wait for a place at the most.
    nonisolated init(places: Int, waiting bound: Int) {
        (self.places, self.bound) = (places, bound)
    }

    /// Whether nobody has a place.
    var isIdle: Bool { taken == 0 }

    /// Takes a place, which ``leave()`` gives back; waits for one where there is none.
    ///
    /// A cancellation does not end the wait. The tasks of the local socket end with their streams, and find out when
    /// their turn comes.
    ///
    /// - Returns: whether it has a place: not where too many wait already.
    func enter() async -> Bool {
        if taken < places {
            taken += 1
            return true
        }
        guard waiting.count < bound else { return false }
        await withCheckedContinuation { waiting.append($0) }
        return true
    }

    /// The place goes to the next without being free in between.
    func leave() {
        guard waiting.isEmpty else { return waiting.removeFirst().resume() }
        taken -= 1
    }
}
