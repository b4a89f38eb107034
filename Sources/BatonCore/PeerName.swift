// SPDX-License-Identifier: Apache-2.0

/// A device as people and logs know it, and the connection on which it asks for something.
package struct PeerName: Sendable, Hashable {
    /// The verified identifier.
    package let id: String
    /// The name that it advertises, or the beginning of its identifier.
    package let name: String
    /// The number of the connection on which it asks; 0 if it asks for nothing.
    package let connection: UInt

    package init(id: String, name: String, connection: UInt = 0) {
        self.id = id
        self.name = name
        self.connection = connection
    }
}
