// SPDX-License-Identifier: Apache-2.0

import BatonApplications

@testable import BatonWeb

extension AssociatedApplication {
    /// An application with domains as they are written.
    init(team: String, identifier: String, domains: [String]) {
        self.init(team: team, identifier: identifier, domains: domains.compactMap { try? AssociatedDomain($0) })
    }
}
