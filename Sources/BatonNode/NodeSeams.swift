package import BatonAccount
package import BatonDiscovery

/// What the tests of this package change of a node, to see what a defence is good for or to wait less. Nothing that a
/// user, a file or the environment says gets here.
package struct NodeSeams: Sendable {
    /// What others can make it spend.
    var limits = NodeLimits()
    /// What guards its advertisements.
    package var guards = AdvertisementGuards.all
    /// Times and names of discovery.
    package var discovery = DiscoveryConfiguration()

    /// What every program has.
    package init() {}
}
