// SPDX-License-Identifier: Apache-2.0

/// A device as people and logs know it.
package struct PeerName: Sendable, Hashable {
    /// The verified identifier.
    package let id: String
    /// The name that it advertises, or the beginning of its identifier.
    package let name: String

    package init(id: String, name: String) {
        self.id = id
        self.name = name
    }
}
