// SPDX-License-Identifier: Apache-2.0

import Crypto

/// Tells teams apart in an announcement without naming them: 8 bytes.
///
/// A label for routing and no secret: anyone who guesses the team can compute it.
package struct TeamTag: Sendable, Hashable {
    /// How many bytes a tag has.
    package static let count = 8

    /// The tag of applications that have no team, which go together.
    package static let none = TeamTag(bytes: [UInt8](repeating: 0, count: count))

    package let bytes: [UInt8]

    /// The tag of a team: the first 8 bytes of SHA-256("baton-team/1" || the team's UTF-8), and 8 zeros of none.
    package init(of team: String) {
        guard !team.isEmpty else {
            self = .none
            return
        }
        var hash = SHA256()
        hash.update(data: Array("baton-team/1".utf8))
        hash.update(data: Array(team.utf8))
        bytes = Array(hash.finalize().prefix(Self.count))
    }

    /// The tag in a message.
    ///
    /// - Parameter bytes: 8; none at all are those of no team.
    /// - Returns: `nil` for any other number of bytes.
    package init?(_ bytes: some Collection<UInt8>) {
        guard !bytes.isEmpty else {
            self = .none
            return
        }
        guard bytes.count == Self.count else { return nil }
        self.bytes = Array(bytes)
    }

    private init(bytes: [UInt8]) {
        self.bytes = bytes
    }
}
