/// An application that is installed here and says that it belongs to domains of the web.
public struct AssociatedApplication: Sendable, Hashable {
    /// The team; the site lists `TEAM.IDENTIFIER`.
    public let team: String
    /// The bundle identifier.
    public let identifier: String
    /// The domains, such as `example.org` and `*.example.org`, without the service in front. What is no domain is
    /// passed over.
    public let domains: [String]

    /// Describes an application.
    public init(team: String, identifier: String, domains: [String]) {
        self.team = team
        self.identifier = identifier
        self.domains = domains
    }
}
