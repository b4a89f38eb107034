// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
package import BatonProtocol

extension Instant {
    /// The time of this machine's monotonic clock, which all drivers of a session use.
    package static var now: Instant { Instant(nanoseconds: MonotonicClock.nanoseconds()) }
}
