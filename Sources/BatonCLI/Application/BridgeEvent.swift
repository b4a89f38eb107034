// SPDX-License-Identifier: Apache-2.0

import Baton
import BatonProtocol
import FoundationEssentials
import Synchronization
import SystemPackage

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
        let (name, members) = named
        return ([.text("event", name)] + members).line
    }

    private var named: (String, [JSONValue.Member]) {
        switch self {
        case .ready(let description):
            let types = description.continues.map { JSONValue.string($0.type) }
            return (
                "ready",
                [
                    .text("identifier", description.identifier), .text("name", description.name),
                    .text("team", description.team), .init("types", .array(types)),
                ]
            )
        case .node(.idle): return ("node", [.text("state", "idle")])
        case .node(.connected): return ("node", [.text("state", "connected")])
        case .node(.missing(let reason)):
            return ("node", [.text("state", "missing"), .text("reason", reason)])
        case .willSave(let request, let activity): return ("willSave", [.request(request), .activity(activity)])
        case .wasContinued(let activity, let device):
            return (
                "wasContinued",
                [
                    .activity(activity), .text("device", device.name),
                    .text("deviceID", device.identifier), .init("userInfo", device.userInfo.json),
                ]
            )
        case .failed(let activity, let error): return ("failed", [.activity(activity)] + Self.members(error))
        case .willContinue(let request, let type):
            return ("willContinue", [.request(request), .text("type", type)])
        case .continue(let request, let name, let activity):
            return ("continue", [.request(request), .activity(name)] + Self.members(activity))
        case .didFailToContinue(let type, let error):
            return ("didFailToContinue", [.text("type", type)] + Self.members(error))
        case .streamOpened(let activity, let stream, let isIncoming):
            let incoming = JSONValue.Member.flag("incoming", isIncoming)
            return ("streamOpened", [.stream(stream), .activity(activity), incoming])
        case .data(let stream, let data):
            return ("data", [.stream(stream), .text("data", data.base64EncodedString())])
        case .written(let stream, let bytes):
            return ("written", [.stream(stream), .count("bytes", bytes)])
        case .end(let stream): return ("end", [.stream(stream)])
        case .streamFailed(let stream, let error): return ("streamFailed", [.stream(stream)] + Self.members(error))
        case .access(let url, let error):
            let granted = JSONValue.Member.flag("granted", error == nil)
            let url = JSONValue.Member.text("url", url.absoluteString)
            return ("access", [url, granted] + (error.map(Self.members) ?? []))
        case .error(let line, let problem):
            let message = JSONValue.Member.text("message", problem.description)
            return ("error", [.count("line", line), message])
        }
    }

    private static func members(_ error: UserActivityError) -> [JSONValue.Member] {
        [
            .count("code", error.code.rawValue), .text("message", error.message),
        ] + (error.device.map { [.text("device", $0)] } ?? [])
    }

    private static func members(_ activity: UserActivity) -> [JSONValue.Member] {
        var members: [JSONValue.Member] = [
            .text("type", activity.activityType), .init("userInfo", activity.userInfo.json),
        ]
        func add(_ name: String, _ text: String?) {
            if let text { members.append(.text(name, text)) }
        }
        add("title", activity.title)
        if !activity.requiredUserInfoKeys.isEmpty {
            members.append(
                .texts("requiredUserInfoKeys", activity.requiredUserInfoKeys.sorted()))
        }
        add("webpageURL", activity.webpageURL?.absoluteString)
        add("referrerURL", activity.referrerURL?.absoluteString)
        add("targetContentIdentifier", activity.targetContentIdentifier)
        if let document = activity.document { members += JSONValue.Member.path("document", document.filePathBytes) }
        if activity.version > 0 { members.append(.count("version", activity.version)) }
        members.append(
            .flag("supportsContinuationStreams", activity.supportsContinuationStreams))
        return members
    }
}

extension JSONValue.Member {
    fileprivate static func request(_ number: UInt64) -> JSONValue.Member { .count("request", number) }
    fileprivate static func activity(_ name: String) -> JSONValue.Member { Self("activity", .string(name)) }
    fileprivate static func stream(_ name: String) -> JSONValue.Member { Self("stream", .string(name)) }
}

/// Prints events on standard output, one line each. It waits while the program does not read.
final class BridgePrinter: Sendable {
    /// Events that may wait for a program that does not read: 256. A further one ends the bridge. An event has at most
    /// 64 KiB of a stream, or a user info of 48 KB, which has at most 512 KiB as JSON.
    static let bound = 256

    private let output: ByteChannel
    private let waiting = Atomic(0)
    private let onFailure: @Sendable (CommandError) -> Void

    /// - Parameter onFailure: called when nothing can be printed any more.
    init(to output: ByteChannel, onFailure: @escaping @Sendable (CommandError) -> Void) {
        self.output = output
        self.onFailure = onFailure
    }

    /// Prints an event. It returns when the event is written, or cannot be.
    func print(_ event: BridgeEvent) async {
        guard waiting.add(1, ordering: .relaxed).newValue <= Self.bound else {
            waiting.subtract(1, ordering: .relaxed)
            return onFailure(.failed("the program behind standard output has not read \(Self.bound) messages"))
        }
        defer { waiting.subtract(1, ordering: .relaxed) }
        do throws(Errno) {
            try await output.write(Buffer(copying: Array((event.text + "\n").utf8)))
        } catch {
            onFailure(.failed("standard output cannot be written to: \(error)"))
        }
    }
}
