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
    /// The node that was asked for the present handoff.
    private let client = Lock<NodeClient?>(nil)

    var hasHappened: Bool { cancellation.isRequested }

    /// Watches for ^C for as long as the result lives.
    func watch() async -> Interrupts {
        await Interrupts.watch { [self] _ in
            guard let client = client.withLock({ $0 }) else { _exit(ExitStatus.interrupted.rawValue) }
            cancellation.request()
            // The node may be stuck. The command ends anyway.
            Task {
                try? await Task.sleep(for: .seconds(2))
                await client.close()
            }
        }
    }

    /// Asks the node to accept an activity. From here on ^C cancels the handoff.
    ///
    /// - Throws: ``CommandError/interrupted`` if the user has cancelled, whatever the node has answered.
    func accept(_ request: WireAcceptRequest, by client: NodeClient) async throws -> NodeHandoff {
        self.client.withLock { $0 = client }
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
        client.withLock { $0 = nil }
        cancellation.setAction(nil)
    }
}
