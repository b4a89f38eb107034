// SPDX-License-Identifier: Apache-2.0

extension InfoPropertyList {
    /// The keys of an `Info.plist` that Baton reads. Other keys may have any type.
    struct Content: Decodable, Sendable {
        let identifier: String?
        let displayName: String?
        let name: String?
        let activityTypes: [String]?
        let documentTypes: [Document]?
        let versions: [String: String]?
        let team: String?
        let command: Command?
        let needsTerminal: Bool?

        private enum CodingKeys: String, CodingKey {
            case identifier = "CFBundleIdentifier"
            case displayName = "CFBundleDisplayName"
            case name = "CFBundleName"
            case activityTypes = "NSUserActivityTypes"
            case documentTypes = "CFBundleDocumentTypes"
            case versions = "BatonActivityVersions"
            case team = "BatonTeam"
            case command = "BatonCommand"
            case needsTerminal = "BatonTerminal"
        }
    }

    /// An entry of `CFBundleDocumentTypes`.
    struct Document: Decodable, Sendable {
        let activityType: String?
        let fileExtensions: [String]?
        let contentTypes: [String]?

        private enum CodingKeys: String, CodingKey {
            case activityType = "NSUbiquitousDocumentUserActivityType"
            case fileExtensions = "CFBundleTypeExtensions"
            case contentTypes = "LSItemContentTypes"
        }
    }

    /// The command that starts an application.
    enum Command: Decodable, Sendable {
        case line(String)
        case words([String])

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            if let line = try? container.decode(String.self) {
                self = .line(line)
            } else {
                self = .words(try container.decode([String].self))
            }
        }
    }

    /// The keys of the entitlements that Baton reads.
    struct Entitlements: Decodable, Sendable {
        let associatedDomains: [String]?
        let team: String?

        private enum CodingKeys: String, CodingKey {
            case associatedDomains = "com.apple.developer.associated-domains"
            case team = "com.apple.developer.team-identifier"
        }
    }
}
