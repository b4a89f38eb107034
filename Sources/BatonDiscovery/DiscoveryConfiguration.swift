// SPDX-License-Identifier: Apache-2.0

/// How discovery behaves. The defaults are the product; tests shorten the times.
package struct DiscoveryConfiguration: Sendable {
    /// The DNS-SD service type. Default `_baton._tcp`.
    package var serviceType = "_baton._tcp"
    /// How long an instance name is used before ``DiscoveryEvent/rotationDue``. A random tenth is added or taken away,
    /// so that a device cannot be told by its rhythm. Default 15 minutes.
    package var rotationPeriod: Duration = .seconds(900)
    /// How soon an instance has to be seen again after the responder failed, before it counts as gone. Default 10 s.
    package var rediscoveryPeriod: Duration = .seconds(10)

    /// The defaults.
    package init() {}

    /// How long the next name is used: ``rotationPeriod``, plus or minus a random tenth.
    var nextRotation: Duration { rotationPeriod * Double.random(in: 0.9...1.1) }
}
