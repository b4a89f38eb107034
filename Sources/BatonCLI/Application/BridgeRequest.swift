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
        let value: JSONValue
        do {
            value = try JSONParser.parse(line)
        } catch {
            throw BridgeProblem("this is not JSON: \(error.problem) (column \(error.column))")
        }
        guard case .object(let members) = value, case .string(let name)? = value["do"] else {
            throw BridgeProblem("a message is an object with a member \"do\", such as {\"do\":\"setInFront\",…}")
        }
        var rest = BridgeMembers(members, of: name)
        _ = rest.take("do")
        perform = try Self.action(name, &rest)
        try rest.requireEmpty()
    }

    private static func action(_ message: String, _ members: inout BridgeMembers) throws(BridgeProblem) -> Action {
        switch message {
        case "becomeCurrent":
            let (name, type) = (try members.name("activity"), try members.optionalString("type"))
            let fields = try members.fields()
            return { bridge throws(BridgeProblem) in try bridge.becomeCurrent(name, type, fields) }
        case "update":
            let (name, fields) = (try members.name("activity"), try members.fields())
            return { bridge throws(BridgeProblem) in fields.apply(to: try bridge.activity(name)) }
        case "resignCurrent":
            let name = try members.name("activity")
            return { bridge throws(BridgeProblem) in try bridge.activity(name).resignCurrent() }
        case "invalidate":
            let name = try members.name("activity")
            return { bridge throws(BridgeProblem) in bridge.forget(try bridge.activity(name)) }
        case "deleteSavedUserActivities":
            let identifiers = try members.optionalStrings("persistentIdentifiers")
            return { bridge in bridge.deleteSaved(identifiers) }
        case "setInFront":
            let isInFront = try members.boolean("inFront")
            return { bridge in bridge.application.isInFront = isInFront }
        case "saved":
            let (request, fields) = (try members.request(), try members.fields())
            return { bridge throws(BridgeProblem) in try bridge.saved(request, fields) }
        case "willContinue":
            let (request, answer) = (try members.request(), try willContinue(&members))
            return { bridge throws(BridgeProblem) in try bridge.answer(request, message, .willContinue(answer)) }
        case "continued":
            let (request, isHandled) = (try members.request(), try members.boolean("handled", else: true))
            return { bridge throws(BridgeProblem) in try bridge.answer(request, message, .continued(isHandled)) }
        case "openStream":
            let (activity, stream) = (try members.name("activity"), try members.name("stream"))
            return { bridge throws(BridgeProblem) in try bridge.openStream(stream, of: activity) }
        case "write":
            let (name, bytes) = (try members.name("stream"), try bytes(&members))
            return { bridge throws(BridgeProblem) in try await bridge.stream(name)?.write(bytes) }
        case "finish":
            let name = try members.name("stream")
            return { bridge throws(BridgeProblem) in try await bridge.stream(name)?.finish() }
        case "reset":
            let (name, status) = (try members.name("stream"), try members.optionalStatus())
            return { bridge throws(BridgeProblem) in try await bridge.reset(name, status) }
        case "ack":
            let name = try members.name("stream")
            return { bridge throws(BridgeProblem) in try await bridge.stream(name)?.acknowledge() }
        case "startAccessing":
            let text = try members.string("url")
            guard let url = URL(string: text), url.isFileURL else {
                throw BridgeProblem("“url” of “startAccessing” takes the URL of a file, such as file:///tmp/a.txt")
            }
            return { bridge throws(BridgeProblem) in try bridge.startAccessing(url) }
        case _: throw BridgeProblem("there is no message “\(message)”")
        }
    }

    private static func willContinue(_ members: inout BridgeMembers) throws(BridgeProblem) -> WillContinue {
        if let reason = try members.optionalString("refused") { return .refused(reason) }
        return try members.boolean("showsProgress", else: false) ? .applicationShowsProgress : .systemShowsProgress
    }

    private static func bytes(_ members: inout BridgeMembers) throws(BridgeProblem) -> [UInt8] {
        if let text = try members.optionalString("text") { return Array(text.utf8) }
        guard let data = Data(base64Encoded: try members.string("data")) else {
            throw BridgeProblem("“data” of “write” is not Base64")
        }
        return [UInt8](data)
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
        func read<Value: Sendable>(
            _ name: String, _ read: (JSONValue, String) throws(BridgeProblem) -> Value,
            _ change: @escaping @Sendable (inout ActivityContent, Value) -> Void
        ) throws(BridgeProblem) {
            guard let value = take(name) else { return }
            let read = try read(value, name)
            fields.changes.append { change(&$0, read) }
        }
        let it = self
        try read("title", it.optionalText) { $0.title = $1 }
        try read("userInfo", it.userInfo) { $0.userInfo = $1 }
        try read("addUserInfoEntries", it.userInfo) { $0.userInfo.entries.merge($1.entries) { _, new in new } }
        try read("requiredUserInfoKeys", it.strings) { $0.requiredUserInfoKeys = Set($1) }
        try read("webpageURL", it.webPage) { $0.webpageURL = $1 }
        try read("referrerURL", it.referrer) { $0.referrerURL = $1 }
        try read("expirationDate", it.date) { $0.expirationDate = $1 }
        try read("targetContentIdentifier", it.optionalText) { $0.targetContentIdentifier = $1 }
        try read("persistentIdentifier", it.optionalText) { $0.persistentIdentifier = $1 }
        try read("document", it.file) { $0.document = $1 }
        try read("version", it.version) { $0.version = $1 }
        try read("isEligibleForHandoff", it.boolean) { $0.isEligibleForHandoff = $1 }
        try read("supportsContinuationStreams", it.boolean) { $0.supportsContinuationStreams = $1 }
        try read("isExclusive", it.boolean) { $0.isExclusive = $1 }
        fields.needsSave = try optionalBoolean("needsSave")
        return fields
    }

    private func optionalText(_ value: JSONValue, _ name: String) throws(BridgeProblem) -> String? {
        value == .null ? nil : try string(value, name)
    }

    private func userInfo(_ value: JSONValue, _ name: String) throws(BridgeProblem) -> UserInfo {
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

    private func webPage(_ value: JSONValue, _ name: String) throws(BridgeProblem) -> URL? {
        try url(value, name, UserActivity.requireWebPage)
    }

    private func referrer(_ value: JSONValue, _ name: String) throws(BridgeProblem) -> URL? {
        try url(value, name, UserActivity.requireReferrer)
    }

    /// - Parameter check: refuses a URL that no activity can have.
    private func url(
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

    private func date(_ value: JSONValue, _ name: String) throws(BridgeProblem) -> Date? {
        try optional(value, name, "a date as ISO 8601 has it, such as 2026-11-21T09:30:00Z") {
            ISO8601.parse($0).map { Date(timeIntervalSince1970: $0) }
        }
    }

    private func file(_ value: JSONValue, _ name: String) throws(BridgeProblem) -> URL? {
        try optional(value, name, "an absolute path") { $0.hasPrefix("/") ? URL(filePath: $0) : nil }
    }

    private func version(_ value: JSONValue, _ name: String) throws(BridgeProblem) -> UInt32 {
        try integer(value, name, "a whole number, 0 to 4294967295")
    }
}
