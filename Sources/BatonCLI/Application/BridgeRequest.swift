// SPDX-License-Identifier: Apache-2.0

import Baton
import FoundationEssentials

/// A message of the program to the bridge: one line of its output. <doc:ApplicationMessages> describes each.
enum BridgeRequest: Equatable, Sendable {
    /// - Parameter type: the type of a new activity; `nil` for an activity that exists.
    case becomeCurrent(activity: String, type: String?, [BridgeField])
    case update(activity: String, [BridgeField])
    case resignCurrent(activity: String)
    case invalidate(activity: String)
    /// - Parameter identifiers: `nil` for all that have one.
    case deleteSavedUserActivities(identifiers: [String]?)
    case setInFront(Bool)
    case saved(request: UInt64, [BridgeField])
    case willContinue(request: UInt64, WillContinue)
    case continued(request: UInt64, handled: Bool)
    case openStream(activity: String, stream: String)
    case write(stream: String, [UInt8])
    case finish(stream: String)
    /// - Parameter status: the status of the program that failed; nil if it cancels.
    case reset(stream: String, status: UInt8?)
    case acknowledge(stream: String)
    case startAccessing(URL)

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
        guard let kind = Kind(rawValue: name) else { throw BridgeProblem("there is no message “\(name)”") }
        var rest = BridgeMembers(members, of: name)
        _ = rest.take("do")
        self = try Self.read(kind, &rest)
        try rest.requireEmpty()
    }

    /// The name of a message.
    enum Kind: String, CaseIterable {
        case becomeCurrent, update, resignCurrent, invalidate, deleteSavedUserActivities, setInFront, saved
        case willContinue, continued, openStream, write, finish, reset, ack, startAccessing
    }

    private static func read(_ kind: Kind, _ members: inout BridgeMembers) throws(BridgeProblem) -> BridgeRequest {
        switch kind {
        case .becomeCurrent:
            return .becomeCurrent(
                activity: try members.name("activity"), type: try members.optionalString("type"), try members.fields())
        case .update: return .update(activity: try members.name("activity"), try members.fields())
        case .resignCurrent: return .resignCurrent(activity: try members.name("activity"))
        case .invalidate: return .invalidate(activity: try members.name("activity"))
        case .deleteSavedUserActivities:
            let name = "persistentIdentifiers"
            guard let value = members.take(name) else { return .deleteSavedUserActivities(identifiers: nil) }
            return .deleteSavedUserActivities(identifiers: try members.strings(value, name))
        case .setInFront: return .setInFront(try members.boolean("inFront"))
        case .saved: return .saved(request: try members.request(), try members.fields())
        case .willContinue: return .willContinue(request: try members.request(), try willContinue(&members))
        case .continued:
            return .continued(request: try members.request(), handled: try members.boolean("handled", else: true))
        case .openStream:
            return .openStream(activity: try members.name("activity"), stream: try members.name("stream"))
        case .write: return .write(stream: try members.name("stream"), try bytes(&members))
        case .finish: return .finish(stream: try members.name("stream"))
        case .reset: return .reset(stream: try members.name("stream"), status: try members.optionalStatus())
        case .ack: return .acknowledge(stream: try members.name("stream"))
        case .startAccessing:
            let text = try members.string("url")
            guard let url = URL(string: text), url.isFileURL else {
                throw BridgeProblem("“url” of “startAccessing” takes the URL of a file, such as file:///tmp/a.txt")
            }
            return .startAccessing(url)
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
