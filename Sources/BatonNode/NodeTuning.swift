// SPDX-License-Identifier: Apache-2.0

import BatonAccount
package import BatonDiscovery

/// Limits and times of a node. Every program has the defaults; tests wait less, or fill a limit sooner.
package struct NodeTuning: Sendable {
    /// The limits of what others can make it spend.
    var limits = NodeLimits()
    /// The time in which its gate takes no token of the clock.
    package var clockDelay = Gate.clockDelay
    /// Times and names of discovery.
    package var discovery = DiscoveryConfiguration()
    /// The times that a handoff waits.
    package var handoffs = HandoffDeadlines()

    /// The defaults.
    package init() {}
}
