// SPDX-License-Identifier: Apache-2.0

package import BatonProtocol

/// The present, as the driver's clocks show it.
package struct Moment: Sendable, Hashable {
    /// The monotonic clock: it measures all waiting.
    package let instant: Instant
    /// Seconds since 1970. The user can set this clock, so it is only compared with times that people gave.
    package let unixTime: Double

    package init(instant: Instant, unixTime: Double) {
        self.instant = instant
        self.unixTime = unixTime
    }
}
