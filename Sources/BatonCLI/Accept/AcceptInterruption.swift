// SPDX-License-Identifier: Apache-2.0

import Baton
import BatonEventLoop
import BatonMessages
import BatonProtocol
import BatonTransport
import Glibc

/// What ^C does to `baton accept`: from the moment that the node is asked it cancels the handoff, and before that it
/// ends the command.
///
/// Not SIGHUP: a terminal that dies ends the command and not the handoff, which the node goes on with.
final class AcceptInterruption: Sendable {
    /// What is under way: nothing before the node is asked, while the user chooses, and when it is over.
    private struct State {
        /// The node that was asked.
        var client: NodeClient?
        /// Its stream of the handoff, once there is one.
        var stream: BatonTransport.Stream?
        var hasHappened = false
    }

    /// Where a continuation stream goes, which ends with the handoff.
    let pump = PumpTask()
    private let state = Lock(State())

    /// Whether what is under way is being cancelled.
    var hasHappened: Bool { state.withLock { $0.hasHappened } }

    /// Watches for as long as the result is held.
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
            // The node may be stuck; whoever pressed ^C is not kept.
            Task {
                try? await Task.sleep(for: .seconds(2))
                await client.close()
            }
        }
    }

    /// Asks the node to take an activity over, which can be interrupted from here on.
    ///
    /// - Throws: ``CommandError/interrupted`` where it was, however the node has answered.
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
        // Before the connection is closed, which cancels nothing.
        await handoff.cancel()
        throw CommandError.interrupted
    }

    /// Nothing is under way any more.
    func end() {
        state.withLock { state in
            state.client = nil
            state.stream = nil
        }
    }
}
