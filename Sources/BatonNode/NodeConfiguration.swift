public import BatonWeb

/// What a user may set of a node.
public struct NodeConfiguration: Sendable {
    /// The TCP port that other devices dial; 0, the default, takes any free one, another in each period of its
    /// announcements. Below 1024 none is advertised.
    public var port: UInt16 = 0

    /// Where applications are found (`XDG_DATA_DIRS`, `PATH`), and what those that it launches inherit. Empty by default:
    /// then only registered applications are known, and nothing is found by its name alone.
    public var environment: [String: String] = [:]

    /// Which web hosts may be asked for the applications that belong to them; by default those of the public network.
    public var siteAssociations = SiteAssociationFetcher.Configuration()

    /// The defaults.
    public init() {}
}
