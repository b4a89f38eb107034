// SPDX-License-Identifier: Apache-2.0

/// How discovery behaves. The defaults are the product; tests shorten the times.
package struct DiscoveryConfiguration: Sendable {
    /// The DNS-SD service type. Default `_baton._tcp`.
    package var serviceType = "_baton._tcp"
    /// The port in the SRV record, the same for every device and ignored by all: it must tell nothing. Default 9, the
    /// discard service.
    package var port: UInt16 = 9
    /// How long an instance name is used before ``DiscoveryEvent/rotationDue``, give or take a tenth, so that nobody is
    /// known by his rhythm. Default 15 minutes.
    package var rotationPeriod: Duration = .seconds(900)
    /// How long an instance that was known before the responder failed may take to be seen again before it counts as
    /// gone. Default 10 s.
    package var rediscoveryPeriod: Duration = .seconds(10)

    /// How long a query that probes an instance may hold its place when others wait. No program has another: only the
    /// tests of attacks see what turns are good for.
    package var probeTurn = QueryBudget.Limits().turn
    /// How long a responder that has failed is left alone at first. No program has another: only the tests of attacks
    /// see what trying again is good for.
    package var firstRetry = ReconnectBackoff.shortest

    /// The defaults.
    package init() {}

    /// How long a name is used this time: ``rotationPeriod``, give or take a tenth.
    func nextRotation(using generator: inout some RandomNumberGenerator) -> Duration {
        rotationPeriod * Double.random(in: 0.9...1.1, using: &generator)
    }
}
