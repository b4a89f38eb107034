// SPDX-License-Identifier: Apache-2.0

/// Why it is not known which applications belong to a host.
package struct SiteAssociationError: Error, Sendable, Hashable, CustomStringConvertible {
    /// One clause that completes "… because", such as `example.org does not answer`.
    package let description: String

    init(_ description: String) {
        self.description = description
    }
}
