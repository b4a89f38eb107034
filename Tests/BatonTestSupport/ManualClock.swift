// SPDX-License-Identifier: Apache-2.0

package import BatonProtocol

/// Time that stands still until a test moves it.
package struct ManualClock: Sendable {
    /// The present. Starts at one second, so that "before the start" can be said as well.
    package private(set) var now = Instant(nanoseconds: 1_000_000_000)

    /// A clock that shows one second.
    package init() {}

    /// Moves the clock forward by `duration`.
    package mutating func advance(by duration: Duration) {
        now = now + duration
    }

    /// Moves the clock forward to `instant`; never back.
    package mutating func advance(to instant: Instant) {
        now = max(now, instant)
    }
}
