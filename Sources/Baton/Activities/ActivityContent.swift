import FoundationEssentials

/// What an application says of an activity.
struct ActivityContent: Sendable, Hashable {
    var title: String?
    var userInfo = UserInfo()
    var requiredUserInfoKeys: Set<String> = []
    var webpageURL: URL?
    var referrerURL: URL?
    var expirationDate: Date?
    var targetContentIdentifier: String?
    var persistentIdentifier: String?
    var isEligibleForHandoff = true
    var supportsContinuationStreams = false
    var version: UInt32 = 0
    var isExclusive = false
    var document: URL?

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
