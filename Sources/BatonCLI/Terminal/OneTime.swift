// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Something that happens once: tells the first caller from all others.
final class OneTime: Sendable {
    private let happened = Atomic(false)

    /// Whether it has happened.
    var hasHappened: Bool { happened.load(ordering: .acquiring) }

    /// `true` for the first caller alone.
    func take() -> Bool { !happened.exchange(true, ordering: .acquiringAndReleasing) }
}
