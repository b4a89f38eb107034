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
    /// The present handoff: none before the node is asked, while the user chooses, and at the end.
    private struct State {
        /// The node that was asked.
        var client: NodeClient?
        /// The stream of the handoff, once it is open.
        var stream: BatonTransport.Stream?
        var hasHappened = false
    }

    /// The task that pumps the continuation stream. It ends with the handoff.
    let pump = PumpTask()
    private let state = Lock(State())

    /// Whether the user has cancelled.
    var hasHappened: Bool { state.withLock { $0.hasHappened } }

    /// Watches for ^C for as long as the result lives.
    func watch() async -> Interrupts {
        await Interrupts.watch { [self] _ in
            let (client, stream) = state.withLock { state in
                state.hasHappened = true
                return (state.client, state.stream)
            }
            guard let client else { _exit(ExitStatus.interrupted.rawValue) }
            Task { [pump] in
                await pump.cancel()
                await stream?.reset(.cancelled)
            }
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
        state.withLock { $0.client = client }
        let handoff: NodeHandoff
        do throws(HandoffError) {
            handoff = try await client.accept(request) { [self] stream in
                let isLate = state.withLock { state in
                    state.stream = stream
                    return state.hasHappened
                }
                if isLate { Task { await stream.reset(.cancelled) } }
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

    /// The handoff is over.
    func end() {
        state.withLock { state in
            state.client = nil
            state.stream = nil
        }
    }
}
