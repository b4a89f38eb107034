// SPDX-License-Identifier: Apache-2.0

import Baton
import FoundationEssentials

/// A message of the bridge to the program: one line of its input. <doc:ApplicationMessages> describes each.
enum BridgeEvent: Sendable {
    case ready(Application.Description)
    case node(NodeState)
    case willSave(request: UInt64, activity: String)
    case wasContinued(activity: String, ContinuingDevice)
    case failed(activity: String, UserActivityError)
    case willContinue(request: UInt64, type: String)
    case `continue`(request: UInt64, activity: String, UserActivity)
    case didFailToContinue(type: String, UserActivityError)
    case streamOpened(activity: String, stream: String, isIncoming: Bool)
    case data(stream: String, Data)
    case written(stream: String, bytes: Int)
    case end(stream: String)
    case streamFailed(stream: String, UserActivityError)
    case access(URL, UserActivityError?)
    case error(line: Int, BridgeProblem)

    /// The message as it is printed, without the line's end.
    var text: String {
        JSONValue.object([JSONValue.Member("event", .string(name))] + members).text
    }

    private var name: String {
        switch self {
        case .ready: "ready"
        case .node: "node"
        case .willSave: "willSave"
        case .wasContinued: "wasContinued"
        case .failed: "failed"
        case .willContinue: "willContinue"
        case .continue: "continue"
        case .didFailToContinue: "didFailToContinue"
        case .streamOpened: "streamOpened"
        case .data: "data"
        case .written: "written"
        case .end: "end"
        case .streamFailed: "streamFailed"
        case .access: "access"
        case .error: "error"
        }
    }

    private var members: [JSONValue.Member] {
        switch self {
        case .ready(let description):
            [
                JSONValue.Member("identifier", .string(description.identifier)),
                JSONValue.Member("name", .string(description.name)),
                JSONValue.Member("team", .string(description.team)),
                JSONValue.Member("types", .array(description.continues.map { .string($0.type) })),
            ]
        case .node(.idle): [JSONValue.Member("state", "idle")]
        case .node(.connected): [JSONValue.Member("state", "connected")]
        case .node(.missing(let reason)):
            [JSONValue.Member("state", "missing"), JSONValue.Member("reason", .string(reason))]
        case .willSave(let request, let activity): [.request(request), .activity(activity)]
        case .wasContinued(let activity, let device):
            [
                .activity(activity), JSONValue.Member("device", .string(device.name)),
                JSONValue.Member("deviceID", .string(device.identifier)),
                JSONValue.Member("userInfo", device.userInfo.json),
            ]
        case .failed(let activity, let error): [.activity(activity)] + Self.members(error)
        case .willContinue(let request, let type): [.request(request), JSONValue.Member("type", .string(type))]
        case .continue(let request, let name, let activity):
            [.request(request), .activity(name)] + Self.members(activity)
        case .didFailToContinue(let type, let error):
            [JSONValue.Member("type", .string(type))] + Self.members(error)
        case .streamOpened(let activity, let stream, let isIncoming):
            [.stream(stream), .activity(activity), JSONValue.Member("incoming", .boolean(isIncoming))]
        case .data(let stream, let data):
            [.stream(stream), JSONValue.Member("data", .string(data.base64EncodedString()))]
        case .written(let stream, let bytes): [.stream(stream), JSONValue.Member("bytes", .integer(Int64(bytes)))]
        case .end(let stream): [.stream(stream)]
        case .streamFailed(let stream, let error): [.stream(stream)] + Self.members(error)
        case .access(let url, let error):
            [
                JSONValue.Member("url", .string(url.absoluteString)),
                JSONValue.Member("granted", .boolean(error == nil)),
            ] + (error.map(Self.members) ?? [])
        case .error(let line, let problem):
            [
                JSONValue.Member("line", .integer(Int64(line))),
                JSONValue.Member("message", .string(problem.description)),
            ]
        }
    }

    private static func members(_ error: UserActivityError) -> [JSONValue.Member] {
        [
            JSONValue.Member("code", .integer(Int64(error.code.rawValue))),
            JSONValue.Member("message", .string(error.message)),
        ] + (error.device.map { [JSONValue.Member("device", .string($0))] } ?? [])
    }

    /// The members of an activity that arrived. Those without a value are left out.
    private static func members(_ activity: UserActivity) -> [JSONValue.Member] {
        var members = [
            JSONValue.Member("type", .string(activity.activityType)),
            JSONValue.Member("userInfo", activity.userInfo.json),
        ]
        func add(_ name: String, _ text: String?) {
            if let text { members.append(JSONValue.Member(name, .string(text))) }
        }
        add("title", activity.title)
        if !activity.requiredUserInfoKeys.isEmpty {
            members.append(
                JSONValue.Member(
                    "requiredUserInfoKeys", .array(activity.requiredUserInfoKeys.sorted().map(JSONValue.string))))
        }
        add("webpageURL", activity.webpageURL?.absoluteString)
        add("referrerURL", activity.referrerURL?.absoluteString)
        add("targetContentIdentifier", activity.targetContentIdentifier)
        if let document = activity.document { members += JSONValue.Member.path("document", document.filePathBytes) }
        if activity.version > 0 { members.append(JSONValue.Member("version", .integer(Int64(activity.version)))) }
        members.append(
            JSONValue.Member("supportsContinuationStreams", .boolean(activity.supportsContinuationStreams)))
        return members
    }
}

extension JSONValue.Member {
    fileprivate static func request(_ number: UInt64) -> JSONValue.Member { Self("request", .count(number)) }
    fileprivate static func activity(_ name: String) -> JSONValue.Member { Self("activity", .string(name)) }
    fileprivate static func stream(_ name: String) -> JSONValue.Member { Self("stream", .string(name)) }
}
