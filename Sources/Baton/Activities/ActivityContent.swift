// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials

/// The content of an activity, as its application set it.
package struct ActivityContent: Sendable, Hashable {
    package var title: String?
    package var userInfo = UserInfo()
    package var requiredUserInfoKeys: Set<String> = []
    package var webpageURL: URL?
    package var referrerURL: URL?
    package var expirationDate: Date?
    package var targetContentIdentifier: String?
    package var persistentIdentifier: String?
    package var isEligibleForHandoff = true
    package var supportsContinuationStreams = false
    package var version: UInt32 = 0
    package var isExclusive = false
    package var document: URL?

    /// The required keys that the user info lacks, in order.
    var missingKeys: [String] {
        requiredUserInfoKeys.filter { userInfo[$0] == nil }.sorted()
    }
}

/// Names an activity for as long as it lives: 16 random bytes.
struct ActivityIdentifier: Sendable, Hashable {
    static let size = 16

    let bytes: [UInt8]

    init() {
        var generator = SystemRandomNumberGenerator()
        bytes = (0..<Self.size).map { _ in .random(in: 0...255, using: &generator) }
    }

    /// The one that a message names.
    init(bytes: [UInt8]) {
        self.bytes = bytes
    }
}
