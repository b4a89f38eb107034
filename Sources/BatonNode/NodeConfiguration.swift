// SPDX-License-Identifier: Apache-2.0

package import BatonDiscovery
package import BatonWeb

/// The settings of a node that a user chooses.
package struct NodeConfiguration: Sendable {
    /// The TCP port that other devices dial; 0, the default, takes any free one, another in each period of its
    /// announcements. Below 1024 none is advertised.
    package var port: UInt16 = 0

    /// Where applications are found (`XDG_DATA_DIRS`, `PATH`), and what those that it launches inherit. Empty by
    /// default: then only registered applications are known, and nothing is found by its name alone.
    package var environment: [String: String] = [:]

    /// Which web hosts may be asked for the applications that belong to them; by default those of the public network.
    package var siteAssociations = SiteAssociationFetcher.Configuration()

    package init() {}
}

/// Limits and times of a node. Every program has the defaults; tests wait less, or fill a limit sooner.
package struct NodeTuning: Sendable {
    /// The limits of what others can make it spend.
    var limits = NodeLimits()
    /// Times and names of discovery.
    package var discovery = DiscoveryConfiguration()
    /// The times that a handoff waits.
    package var handoffs = HandoffDeadlines()

    package init() {}
}
