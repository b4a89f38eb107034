// SPDX-License-Identifier: Apache-2.0

import BatonApplications

extension ApplicationManifest {
    /// An application with domains as they are written.
    init(team: String, identifier: String, domains: [String]) throws {
        try self.init(
            identifier: identifier, name: identifier, team: team,
            associatedDomains: domains.map { try AssociatedDomain($0) }, source: .registered(from: nil))
    }
}
