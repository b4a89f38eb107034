// SPDX-License-Identifier: Apache-2.0

import Baton
import FoundationEssentials

/// The action that a message of the program requests: one line of its output, read as a whole.
/// <doc:ApplicationMessages> describes each.
struct BridgeRequest: Sendable {
    typealias Action = @Sendable (isolated Bridge) async throws(BridgeProblem) -> Void

    let perform: Action

    /// Reads a line.
    ///
    /// - Throws: ``BridgeProblem`` that says what is wrong with it.
    init(line: [UInt8]) throws(BridgeProblem) {
        let value: UserInfoValue
        do {
            value = try JSONParser.parse(line)
        } catch {
            throw BridgeProblem("this is not JSON: \(error.problem) (column \(error.column))")
        }
        guard case .dictionary(var members) = value, case .string(let name)? = members.removeValue(forKey: "do") else {
            throw BridgeProblem("a message is an object with a member \"do\", such as {\"do\":\"setInFront\",…}")
        }
        var rest = BridgeMembers(members, of: name)
        perform = try Self.action(name, &rest)
        try rest.requireEmpty()
    }

    private static func action(_ message: String, _ members: inout BridgeMembers) throws(BridgeProblem) -> Action {
        switch message {
        case "becomeCurrent":
            let (name, type) = (try members.required("activity", .name), try members.optional("type", .string))
            let fields = try members.fields()
            return { bridge throws(BridgeProblem) in try bridge.becomeCurrent(name, type, fields) }
        case "update":
            let (name, fields) = (try members.required("activity", .name), try members.fields())
            return { bridge throws(BridgeProblem) in fields.apply(to: try bridge.activity(name)) }
        case "resignCurrent":
            let name = try members.required("activity", .name)
            return { bridge throws(BridgeProblem) in try bridge.activity(name).resignCurrent() }
        case "invalidate":
            let name = try members.required("activity", .name)
            return { bridge throws(BridgeProblem) in bridge.forget(try bridge.activity(name)) }
        case "deleteSavedUserActivities":
            let identifiers = try members.optional("persistentIdentifiers", .strings)
            return { bridge in bridge.deleteSaved(identifiers) }
        case "setInFront":
            let isInFront = try members.required("inFront", .boolean)
            return { bridge in bridge.application.isInFront = isInFront }
        case "saved":
            let (request, fields) = (try members.required("request", .number), try members.fields())
            return { bridge throws(BridgeProblem) in try bridge.saved(request, fields) }
        case "willContinue":
            let (request, answer) = (try members.required("request", .number), try willContinue(&members))
            return { bridge throws(BridgeProblem) in try bridge.answer(request, message, .willContinue(answer)) }
        case "continued":
            let request = try members.required("request", .number)
            let isHandled = try members.optional("handled", .boolean) ?? true
            return { bridge throws(BridgeProblem) in try bridge.answer(request, message, .continued(isHandled)) }
        case "openStream":
            let (activity, stream) = (try members.required("activity", .name), try members.required("stream", .name))
            return { bridge throws(BridgeProblem) in try bridge.openStream(stream, of: activity) }
        case "write":
            let (name, bytes) = (try members.required("stream", .name), try bytes(&members))
            return { bridge throws(BridgeProblem) in try await bridge.stream(name)?.write(bytes) }
        case "finish":
            let name = try members.required("stream", .name)
            return { bridge throws(BridgeProblem) in try await bridge.stream(name)?.finish() }
        case "reset":
            let (name, status) = (try members.required("stream", .name), try members.optional("status", .status))
            return { bridge throws(BridgeProblem) in try await bridge.reset(name, status) }
        case "ack":
            let name = try members.required("stream", .name)
            return { bridge throws(BridgeProblem) in try await bridge.stream(name)?.acknowledge() }
        case "startAccessing":
            let url = try members.required("url", .file)
            return { bridge throws(BridgeProblem) in try bridge.startAccessing(url) }
        case _: throw BridgeProblem("there is no message “\(message)”")
        }
    }

    private static func willContinue(_ members: inout BridgeMembers) throws(BridgeProblem) -> WillContinue {
        if let reason = try members.optional("refused", .string) { return .refused(reason) }
        let showsProgress = try members.optional("showsProgress", .boolean) ?? false
        return showsProgress ? .applicationShowsProgress : .systemShowsProgress
    }

    private static func bytes(_ members: inout BridgeMembers) throws(BridgeProblem) -> [UInt8] {
        if let text = try members.optional("text", .string) { return Array(text.utf8) }
        return try members.required("data", .data)
    }
}

/// The properties of an activity that a message sets, by the names that they have in ``UserActivity``.
struct BridgeFields: Sendable {
    var changes: [@Sendable (inout ActivityContent) -> Void] = []
    var needsSave: Bool?

    func apply(to activity: UserActivity) {
        activity.change { content in
            for change in changes { change(&content) }
        }
        if let needsSave { activity.needsSave = needsSave }
    }
}

extension BridgeMembers {
    /// Reads all fields of a message. `null` removes an optional value.
    mutating func fields() throws(BridgeProblem) -> BridgeFields {
        var fields = BridgeFields()
        func read<Value>(
            _ name: String, _ reader: BridgeReader<Value>,
            _ change: @escaping @Sendable (inout ActivityContent, Value) -> Void
        ) throws(BridgeProblem) {
            guard let value = try optional(name, reader) else { return }
            fields.changes.append { change(&$0, value) }
        }
        func readOrNull<Value>(
            _ name: String, _ reader: BridgeReader<Value>,
            _ change: @escaping @Sendable (inout ActivityContent, Value?) -> Void
        ) throws(BridgeProblem) { try read(name, reader.orNull, change) }
        try readOrNull("title", .string) { $0.title = $1 }
        try read("userInfo", .userInfo) { $0.userInfo = $1 }
        try read("addUserInfoEntries", .userInfo) { $0.userInfo.entries.merge($1.entries) { _, new in new } }
        try read("requiredUserInfoKeys", .strings) { $0.requiredUserInfoKeys = Set($1) }
        try readOrNull("webpageURL", .webPage(UserActivity.requireWebPage)) { $0.webpageURL = $1 }
        try readOrNull("referrerURL", .webPage(UserActivity.requireReferrer)) { $0.referrerURL = $1 }
        try readOrNull("expirationDate", .date) { $0.expirationDate = $1 }
        try readOrNull("targetContentIdentifier", .string) { $0.targetContentIdentifier = $1 }
        try readOrNull("persistentIdentifier", .string) { $0.persistentIdentifier = $1 }
        try readOrNull("document", .path) { $0.document = $1 }
        try read("version", .integer()) { $0.version = $1 }
        try read("isEligibleForHandoff", .boolean) { $0.isEligibleForHandoff = $1 }
        try read("supportsContinuationStreams", .boolean) { $0.supportsContinuationStreams = $1 }
        try read("isExclusive", .boolean) { $0.isExclusive = $1 }
        fields.needsSave = try optional("needsSave", .boolean)
        return fields
    }
}

extension BridgeReader<UserInfo> {
    fileprivate static var userInfo: Self {
        Self(wanted: "an object") { (value) throws(BridgeProblem) in
            do {
                return try UserInfo(untagged: value)
            } catch {
                throw BridgeProblem("\(error)")
            }
        }
    }
}

extension BridgeReader<URL> {
    /// - Parameter check: refuses a URL that no activity can have.
    fileprivate static func webPage(_ check: @escaping @Sendable (URL?) throws(UserActivityError) -> Void) -> Self {
        Self(wanted: "a URL such as https://example.org/") { (value) throws(BridgeProblem) in
            guard case .string(let text) = value, let url = URL(string: text), url.scheme != nil else { return nil }
            do throws(UserActivityError) {
                try check(url)
            } catch {
                throw BridgeProblem(error.message)
            }
            return url
        }
    }

    fileprivate static var path: Self {
        Self(wanted: "an absolute path") { value in
            guard case .string(let text) = value, text.hasPrefix("/") else { return nil }
            return URL(filePath: text)
        }
    }

    fileprivate static var file: Self {
        Self(wanted: "the URL of a file, such as file:///tmp/a.txt") { value in
            guard case .string(let text) = value, let url = URL(string: text), url.isFileURL else { return nil }
            return url
        }
    }
}

extension BridgeReader<Date> {
    fileprivate static var date: Self {
        Self(wanted: "a date as ISO 8601 has it, such as 2026-11-21T09:30:00Z") { value in
            guard case .string(let text) = value else { return nil }
            return ISO8601.parse(text).map { Date(timeIntervalSince1970: $0) }
        }
    }
}

extension BridgeReader<[UInt8]> {
    fileprivate static var data: Self {
        Self(wanted: "Base64") { value in
            guard case .string(let text) = value else { return nil }
            return Data(base64Encoded: text).map { [UInt8]($0) }
        }
    }
}
