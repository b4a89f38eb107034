// SPDX-License-Identifier: Apache-2.0

import Baton
import BatonEventLoop
import BatonMessages
import BatonProtocol
import BatonTransport
import Glibc

/// Handles ^C during `baton accept`. Before the node is asked, ^C ends the command. After that it cancels the handoff.
///
/// SIGHUP does not cancel: the end of the terminal ends the command, and the node continues the handoff.
final class AcceptInterruption: Sendable {
    /// Cancels the present handoff. There is none before the node is asked, while the user chooses, and at the end.
    let cancellation = Cancellation()

    var hasHappened: Bool { cancellation.isRequested }

    func watch() async {
        await Interrupts.watch { [cancellation] in
            if !cancellation.request() { _exit(ExitStatus.interrupted.rawValue) }
        }
    }

    /// Asks the node to accept an activity. From here on ^C cancels the handoff.
    ///
    /// - Throws: ``CommandError/interrupted`` if the user has cancelled, whatever the node has answered.
    func accept(_ request: WireAcceptRequest, by client: NodeClient) async throws -> NodeHandoff {
        // Until there is a stream, ^C waits for it.
        cancellation.setAction {}
        let handoff: NodeHandoff
        do throws(HandoffError) {
            handoff = try await client.accept(request) { [cancellation] stream in
                cancellation.setAction { Task { await stream.reset(.cancelled) } }
            }
        } catch {
            guard hasHappened else { throw error }
            throw CommandError.interrupted
        }
        guard hasHappened else { return handoff }
        // Cancel before the connection is closed. Closing it cancels nothing.
        await handoff.cancel()
        throw CommandError.interrupted
    }

    func end() {
        cancellation.setAction(nil)
    }
}
