// SPDX-License-Identifier: Apache-2.0

import Baton
import BatonMessages
import FoundationEssentials

/// One event of a command as one line of JSON, with `event` and `time` first.
enum EventLine {
    static func text(_ event: String, _ members: [JSONMember] = [], time: String = Moment.now) -> String {
        ([.text("event", event), .text("time", time)] + members).line
    }
}

/// A member of an object in JSON output. Members keep their order.
struct JSONMember: Sendable {
    let name: String
    /// The value as JSON text.
    let text: String

    private init(_ name: String, text: String) {
        self.name = name
        self.text = text
    }

    init(_ name: String, _ value: UserInfoValue) {
        self.init(name, text: value.jsonText)
    }

    /// - Parameter value: nil is printed as `null`.
    static func text(_ name: String, _ value: String?) -> Self { Self(name, value.map(UserInfoValue.string) ?? .null) }

    static func texts(_ name: String, _ values: [String]) -> Self {
        Self(name, .array(values.map(UserInfoValue.string)))
    }

    static func flag(_ name: String, _ value: Bool) -> Self { Self(name, .boolean(value)) }

    /// A count or a size. Readers of JSON keep integers exact up to 2^53.
    static func count(_ name: String, _ value: (some BinaryInteger)?) -> Self {
        Self(name, text: value.map { "\($0)" } ?? "null")
    }

    static func object(_ name: String, _ members: [JSONMember]) -> Self { Self(name, text: members.line) }

    static func objects(_ name: String, _ objects: [[JSONMember]]) -> Self {
        Self(name, text: UserInfoValue.array(objects.map(\.line)))
    }

    /// Seconds since 1970 as ISO 8601.
    static func time(_ name: String, _ seconds: UInt64) -> Self { .text(name, ISO8601.format(seconds: seconds)) }

    /// A path in `--json`. JSON strings are UTF-8: a path that is not also has a member with its bytes in base64, such
    /// as `pathBase64` for `path`.
    static func path(_ name: String, _ bytes: some Collection<UInt8>) -> [Self] {
        let isText = String(validating: bytes, as: UTF8.self) != nil
        return [.text(name, String(decoding: bytes, as: UTF8.self))]
            + (isText ? [] : [.text("\(name)Base64", Data(bytes).base64EncodedString())])
    }
}

extension [JSONMember] {
    /// The object as one line.
    var line: String { UserInfoValue.object(map { ($0.name, $0.text) }) }
}

enum Moment {
    /// The present time as ISO 8601 with milliseconds, UTC, for `time` in `--json`.
    static var now: String {
        ISO8601.format(milliseconds: Date().timeIntervalSince1970) ?? ""
    }

    /// The age of an event: `now`, `40 s`, `2 min`, `3 h`, `12 d`.
    ///
    /// - Parameter seconds: the time of the event, since 1970, by the other device's clock. A time in the future is
    ///   `now`.
    static func age(of seconds: UInt64, now: Double = Date().timeIntervalSince1970) -> String {
        let age = now - Double(seconds)
        switch age {
        case ..<5: return "now"
        case ..<60: return "\(Int(age)) s"
        case ..<3600: return "\(Int(age / 60)) min"
        case ..<(48 * 3600): return "\(Int(age / 3600)) h"
        case ..<(36500 * 86_400): return "\(Int(age / 86_400)) d"
        case _: return "?"
        }
    }
}

/// Tells while a command runs that the responder of this machine became unavailable, and that it is back. In between
/// this device neither sees others nor is seen.
enum ResponderWatch {
    /// Watches until the node ends or the task is cancelled. A node that cannot tell is not watched.
    static func run(_ client: NodeClient, _ output: EventOutput) async throws {
        guard let (status, changes) = try? await client.watchStatus() else { return }
        var isUnavailable = status.isUnannounced
        if isUnavailable { try await output.responder(status.responder) }
        for try await status in changes where status.isUnannounced != isUnavailable {
            isUnavailable = status.isUnannounced
            try await output.responder(isUnavailable ? status.responder : nil)
        }
    }

    /// The same once, for a command that lists and ends.
    static func look(_ client: NodeClient) async {
        guard let status = try? await client.status(), status.isUnannounced else { return }
        Output.say(sentence(status.responder))
    }

    static func sentence(_ trouble: String?) -> String {
        guard let trouble else { return "the responder is back: devices see each other again" }
        let prefix = "unavailable: "
        let reason = trouble.hasPrefix(prefix) ? String(trouble.dropFirst(prefix.count)) : trouble
        return "devices do not see each other now. \(SafeText.escaped(reason)) See `baton doctor`."
    }
}
