// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// An event that happens once. It tells the first caller from all others.
final class OneTime: Sendable {
    private let happened = Atomic(false)

    /// Whether the event has happened.
    var hasHappened: Bool { happened.load(ordering: .acquiring) }

    /// Returns `true` for the first caller alone.
    func take() -> Bool { !happened.exchange(true, ordering: .acquiringAndReleasing) }
}
