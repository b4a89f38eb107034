// SPDX-License-Identifier: Apache-2.0

package import BatonAccount
package import BatonDiscovery
package import BatonDocuments

/// What the tests of this package change of a node, to see what a defence is good for or to wait less. Nothing that a
/// user, a file or the environment says gets here.
package struct NodeSeams: Sendable {
    /// What others can make it spend.
    var limits = NodeLimits()
    /// What guards its advertisements.
    package var guards = AdvertisementGuards.all
    /// Whether a connection has to show that it is of the account before it is answered.
    package var hasGate = true
    /// Whether it begins another period when an address of the machine comes or goes.
    package var followsNetwork = true
    /// Whether one port serves all periods.
    package var keepsPort = false
    /// What it looks at of what it receives.
    package var checks = ReceivingChecks.all
    /// How long its gate takes no token of the clock.
    package var clockDelay = Gate.clockDelay
    /// Times and names of discovery.
    package var discovery = DiscoveryConfiguration()
    /// How long a handoff waits.
    package var handoffs = HandoffDeadlines()

    /// What every program has.
    package init() {}
}
