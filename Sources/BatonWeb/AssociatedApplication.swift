// SPDX-License-Identifier: Apache-2.0

/// An application that is installed here and claims domains of the web.
package struct AssociatedApplication: Sendable, Hashable {
    /// The team; the site lists `TEAM.IDENTIFIER`.
    package let team: String
    /// The bundle identifier.
    package let identifier: String
    /// The domains, such as `example.org` and `*.example.org`, without the service in front. Other texts are skipped.
    package let domains: [String]

    /// Describes an application.
    package init(team: String, identifier: String, domains: [String]) {
        self.team = team
        self.identifier = identifier
        self.domains = domains
    }
}
