// SPDX-License-Identifier: Apache-2.0

import Baton
import FoundationEssentials

/// One property of an activity that the program sets, by the name that it has in ``UserActivity``.
enum BridgeField: Equatable, Sendable {
    case title(String?)
    case userInfo(UserInfo)
    case addUserInfoEntries(UserInfo)
    case requiredUserInfoKeys(Set<String>)
    case webpageURL(URL?)
    case referrerURL(URL?)
    case expirationDate(Date?)
    case targetContentIdentifier(String?)
    case persistentIdentifier(String?)
    case document(URL?)
    case version(UInt32)
    case needsSave(Bool)
    case isEligibleForHandoff(Bool)
    case supportsContinuationStreams(Bool)
    case isExclusive(Bool)

    func apply(to content: inout ActivityContent) {
        switch self {
        case .title(let title): content.title = title
        case .userInfo(let info): content.userInfo = info
        case .addUserInfoEntries(let info): content.userInfo.entries.merge(info.entries) { _, new in new }
        case .requiredUserInfoKeys(let keys): content.requiredUserInfoKeys = keys
        case .webpageURL(let url): content.webpageURL = url
        case .referrerURL(let url): content.referrerURL = url
        case .expirationDate(let date): content.expirationDate = date
        case .targetContentIdentifier(let identifier): content.targetContentIdentifier = identifier
        case .persistentIdentifier(let identifier): content.persistentIdentifier = identifier
        case .document(let file): content.document = file
        case .version(let version): content.version = version
        // This belongs to the activity, and not to its content.
        case .needsSave: break
        case .isEligibleForHandoff(let isEligible): content.isEligibleForHandoff = isEligible
        case .supportsContinuationStreams(let supports): content.supportsContinuationStreams = supports
        case .isExclusive(let isExclusive): content.isExclusive = isExclusive
        }
    }
}

extension BridgeField {
    /// The name of a field, which is that of its case.
    enum Name: String, CaseIterable {
        case title, userInfo, addUserInfoEntries, requiredUserInfoKeys, webpageURL, referrerURL, expirationDate
        case targetContentIdentifier, persistentIdentifier, document, version, needsSave, isEligibleForHandoff
        case supportsContinuationStreams, isExclusive
    }
}

extension BridgeMembers {
    /// Reads all fields of a message. `null` removes an optional value.
    mutating func fields() throws(BridgeProblem) -> [BridgeField] {
        var fields: [BridgeField] = []
        for name in BridgeField.Name.allCases {
            if let value = take(name.rawValue) { fields.append(try field(name, value)) }
        }
        return fields
    }

    private func field(_ name: BridgeField.Name, _ value: JSONValue) throws(BridgeProblem) -> BridgeField {
        let text = name.rawValue
        return switch name {
        case .title: .title(try optionalText(value, text))
        case .userInfo: .userInfo(try userInfo(value))
        case .addUserInfoEntries: .addUserInfoEntries(try userInfo(value))
        case .requiredUserInfoKeys: .requiredUserInfoKeys(Set(try strings(value, text)))
        case .webpageURL: .webpageURL(try webPage(value, text, UserActivity.requireWebPage))
        case .referrerURL: .referrerURL(try webPage(value, text, UserActivity.requireReferrer))
        case .expirationDate:
            .expirationDate(
                try optional(value, text, "a date as ISO 8601 has it, such as 2026-11-21T09:30:00Z") {
                    ISO8601.parse($0).map { Date(timeIntervalSince1970: $0) }
                })
        case .targetContentIdentifier: .targetContentIdentifier(try optionalText(value, text))
        case .persistentIdentifier: .persistentIdentifier(try optionalText(value, text))
        case .document:
            .document(
                try optional(value, text, "an absolute path") { $0.hasPrefix("/") ? URL(filePath: $0) : nil })
        case .version: .version(try version(value, text))
        case .needsSave: .needsSave(try boolean(value, text))
        case .isEligibleForHandoff: .isEligibleForHandoff(try boolean(value, text))
        case .supportsContinuationStreams: .supportsContinuationStreams(try boolean(value, text))
        case .isExclusive: .isExclusive(try boolean(value, text))
        }
    }

    private func optionalText(_ value: JSONValue, _ name: String) throws(BridgeProblem) -> String? {
        value == .null ? nil : try string(value, name)
    }

    private func userInfo(_ value: JSONValue) throws(BridgeProblem) -> UserInfo {
        do {
            return try UserInfo(value)
        } catch {
            throw BridgeProblem("\(error)")
        }
    }

    /// - Parameter read: returns nil for a text that is not what is wanted.
    private func optional<Value>(
        _ value: JSONValue, _ name: String, _ wanted: String, _ read: (String) -> Value?
    ) throws(BridgeProblem) -> Value? {
        guard let text = try optionalText(value, name) else { return nil }
        guard let value = read(text) else { throw unfit(text, name, wanted) }
        return value
    }

    /// - Parameter check: refuses a URL that no activity can have.
    private func webPage(
        _ value: JSONValue, _ name: String, _ check: (URL?) throws(UserActivityError) -> Void
    ) throws(BridgeProblem) -> URL? {
        let url = try optional(value, name, "a URL such as https://example.org/") { text in
            URL(string: text).flatMap { $0.scheme == nil ? nil : $0 }
        }
        do throws(UserActivityError) {
            try check(url)
        } catch {
            throw BridgeProblem(error.message)
        }
        return url
    }

    private func version(_ value: JSONValue, _ name: String) throws(BridgeProblem) -> UInt32 {
        guard case .integer(let number) = value, let version = UInt32(exactly: number) else {
            let wanted = "a whole number, 0 to 4294967295"
            switch value {
            case .integer, .unsigned, .real: throw unfit(value.text, name, wanted)
            case .null, .boolean, .string, .array, .object: throw wrong(value, name, wanted)
            }
        }
        return version
    }
}
