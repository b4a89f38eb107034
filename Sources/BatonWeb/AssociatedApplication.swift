// SPDX-License-Identifier: Apache-2.0

package import BatonApplications

/// An application that is installed here and claims domains of the web.
package struct AssociatedApplication: Sendable, Hashable {
    /// The team; the site lists `TEAM.IDENTIFIER`.
    package let team: String
    /// The bundle identifier.
    package let identifier: String
    /// The domains that it claims.
    package let domains: [AssociatedDomain]

    /// Describes an application.
    package init(team: String, identifier: String, domains: [AssociatedDomain]) {
        self.team = team
        self.identifier = identifier
        self.domains = domains
    }
}
