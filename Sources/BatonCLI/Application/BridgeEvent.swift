// SPDX-License-Identifier: Apache-2.0

import Baton
import BatonProtocol
import FoundationEssentials
import Synchronization
import SystemPackage

/// A message of the bridge to the program: one line of its input. <doc:ApplicationMessages> describes each.
struct BridgeEvent: Sendable {
    /// The message as it is printed, without the line's end.
    let text: String

    private init(_ name: String, _ members: [JSONMember]) {
        text = ([.text("event", name)] + members).line
    }

    static func ready(_ description: Application.Description) -> Self {
        Self(
            "ready",
            [
                .text("identifier", description.identifier), .text("name", description.name),
                .text("team", description.team), .texts("types", description.continues.map(\.type)),
            ])
    }

    static func node(_ state: NodeState) -> Self {
        switch state {
        case .idle: Self("node", [.text("state", "idle")])
        case .connected: Self("node", [.text("state", "connected")])
        case .missing(let reason): Self("node", [.text("state", "missing"), .text("reason", reason)])
        }
    }

    static func willSave(request: UInt64, activity: String) -> Self {
        Self("willSave", [.count("request", request), .text("activity", activity)])
    }

    static func wasContinued(activity: String, _ device: ContinuingDevice) -> Self {
        Self(
            "wasContinued",
            [
                .text("activity", activity), .text("device", device.name), .text("deviceID", device.identifier),
                .init("userInfo", .dictionary(device.userInfo.entries)),
            ])
    }

    static func failed(activity: String, _ error: UserActivityError) -> Self {
        Self("failed", [.text("activity", activity)] + members(error))
    }

    static func willContinue(request: UInt64, type: String) -> Self {
        Self("willContinue", [.count("request", request), .text("type", type)])
    }

    static func `continue`(request: UInt64, activity name: String, _ activity: UserActivity) -> Self {
        Self("continue", [.count("request", request), .text("activity", name)] + members(activity))
    }

    static func didFailToContinue(type: String, _ error: UserActivityError) -> Self {
        Self("didFailToContinue", [.text("type", type)] + members(error))
    }

    static func streamOpened(activity: String, stream: String, isIncoming: Bool) -> Self {
        Self(
            "streamOpened", [.text("stream", stream), .text("activity", activity), .flag("incoming", isIncoming)])
    }

    static func data(stream: String, _ data: Data) -> Self {
        Self("data", [.text("stream", stream), .text("data", data.base64EncodedString())])
    }

    static func written(stream: String, bytes: Int) -> Self {
        Self("written", [.text("stream", stream), .count("bytes", bytes)])
    }

    static func end(stream: String) -> Self { Self("end", [.text("stream", stream)]) }

    static func streamFailed(stream: String, _ error: UserActivityError) -> Self {
        Self("streamFailed", [.text("stream", stream)] + members(error))
    }

    static func access(_ url: URL, _ error: UserActivityError?) -> Self {
        Self(
            "access",
            [.text("url", url.absoluteString), .flag("granted", error == nil)] + (error.map(members) ?? []))
    }

    static func error(line: Int, _ problem: BridgeProblem) -> Self {
        Self("error", [.count("line", line), .text("message", problem.description)])
    }

    private static func members(_ error: UserActivityError) -> [JSONMember] {
        [
            .count("code", error.code.rawValue), .text("message", error.message),
        ] + (error.device.map { [.text("device", $0)] } ?? [])
    }

    private static func members(_ activity: UserActivity) -> [JSONMember] {
        var members: [JSONMember] = [
            .text("type", activity.activityType), .init("userInfo", .dictionary(activity.userInfo.entries)),
        ]
        func add(_ name: String, _ text: String?) {
            if let text { members.append(.text(name, text)) }
        }
        add("title", activity.title)
        if !activity.requiredUserInfoKeys.isEmpty {
            members.append(.texts("requiredUserInfoKeys", activity.requiredUserInfoKeys.sorted()))
        }
        add("webpageURL", activity.webpageURL?.absoluteString)
        add("referrerURL", activity.referrerURL?.absoluteString)
        add("targetContentIdentifier", activity.targetContentIdentifier)
        if let document = activity.document { members += JSONMember.path("document", document.filePathBytes) }
        if activity.version > 0 { members.append(.count("version", activity.version)) }
        return members + [.flag("supportsContinuationStreams", activity.supportsContinuationStreams)]
    }
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
