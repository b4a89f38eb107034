// SPDX-License-Identifier: Apache-2.0

import Baton
import BatonMessages

/// Tells while a command runs that the responder of this machine became unavailable, and that it is back. In between
/// this device neither sees others nor is seen.
enum ResponderWatch {
    /// Watches until the node ends or the task is cancelled. A node that cannot tell is not watched.
    ///
    /// - Parameter tell: is called once for each change, with what the responder does, in the node's words; nil: it is
    ///   back.
    static func run(_ client: NodeClient, _ tell: (_ trouble: String?) async throws -> Void) async throws {
        guard let (status, changes) = try? await client.watchStatus() else { return }
        var isUnavailable = status.isUnannounced
        if isUnavailable { try await tell(status.responder) }
        for try await status in changes where status.isUnannounced != isUnavailable {
            isUnavailable = status.isUnannounced
            try await tell(isUnavailable ? status.responder : nil)
        }
    }

    /// The same once, for a command that lists and ends.
    static func look(_ client: NodeClient) async {
        guard let status = try? await client.status(), status.isUnannounced else { return }
        Output.say(sentence(status.responder))
    }

    /// A change, for people.
    static func sentence(_ trouble: String?) -> String {
        guard let trouble else { return "the responder is back: devices see each other again" }
        let prefix = "unavailable: "
        let reason = trouble.hasPrefix(prefix) ? String(trouble.dropFirst(prefix.count)) : trouble
        return "devices do not see each other now. \(SafeText.escaped(reason)) See `baton doctor`."
    }

    /// A change as an event: its name and its members.
    static func event(_ trouble: String?) -> (name: String, members: [JSONValue.Member]) {
        guard let trouble else { return ("announced", []) }
        return ("unannounced", [JSONValue.Member("responder", .string(trouble))])
    }
}
