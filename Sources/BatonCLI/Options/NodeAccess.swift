// SPDX-License-Identifier: Apache-2.0

import Baton
import BatonAccount
import BatonEventLoop
import BatonMessages
import BatonTransport

/// Connects a command to the node of this user.
enum NodeAccess {
    /// The time between two attempts to connect to the next node: 200 ms.
    private static let pause = Duration.milliseconds(200)

    /// Connects, and closes the connection after `body`. Queued bytes are still sent.
    static func withNode<Result: Sendable>(
        _ body: (NodeClient) async throws -> Result
    ) async throws -> Result {
        try await closing(try await connect(), body)
    }

    /// Connects to the running node.
    static func connect() async throws -> NodeClient {
        let home = try CommandEnvironment.home()
        do {
            return try await NodeClient.connect(to: home)
        } catch {
            throw failure(error, home)
        }
    }

    /// The node that stores a change of the account; nil only if none runs. A node that runs and cannot be reached
    /// would not see what a command writes, and would overwrite it.
    ///
    /// - Parameter unchanged: what a failure means, for people.
    static func node(
        of home: Home, storing store: AccountStore, otherwise unchanged: String
    ) async throws -> NodeClient? {
        do {
            return try await NodeClient.connect(to: home)
        } catch .noNode {
            try store.refuseNode()
            return nil
        } catch {
            let failure = failure(error, home)
            throw CommandError(failure.status, code: failure.code, "\(unchanged): \(failure.message)")
        }
    }

    /// Waits for the next node after one has stopped, and connects to it.
    ///
    /// - Parameter isOver: whether the caller no longer needs a node.
    /// - Returns: `nil` if there was no node in time, or `isOver` returned true.
    static func connectAgain(
        until end: ContinuousClock.Instant, unless isOver: () -> Bool
    ) async throws -> NodeClient? {
        let home = try CommandEnvironment.home()
        let loop = EventLoop(name: "node-client")
        while !isOver(), ContinuousClock.now < end {
            try await Task.sleep(for: pause)
            do throws(NodeClientError) {
                return try await NodeClient.connect(to: home, on: loop)
            } catch {
                switch error {
                // A node that is starting or stopping refuses connections.
                case .noNode, .notTaken: break
                case .notUsable: throw failure(error, home)
                }
            }
        }
        return nil
    }

    /// Runs `body` with a node, and then closes the connection. Queued bytes are still sent.
    static func closing<Result: Sendable>(
        _ client: NodeClient, _ body: (NodeClient) async throws -> Result
    ) async throws -> Result {
        do {
            let result = try await body(client)
            await client.close()
            return result
        } catch let error as HandoffError {
            await client.close()
            throw CommandError(error)
        } catch {
            await client.close()
            throw error
        }
    }

    /// The error for a node that cannot be reached.
    static func failure(_ error: NodeClientError, _ home: Home) -> CommandError {
        switch error {
        case .noNode:
            var sentence = "\(error)"
            ProcessSecrecy.protect()
            do {
                let store = CommandEnvironment.accountStore(home)
                _ = try store.load()
                try store.refuseNode()
            } catch .noAccount {
                sentence =
                    "no node is running here, and this device has no account yet: run `baton`, which makes one or"
                    + " joins yours"
            } catch .nodeRunning {
                sentence =
                    "a node is running with this account, but does not listen at \(home.socketPath): it was started"
                    + " with another XDG_RUNTIME_DIR than this command; set the same, or restart it"
            } catch {
                sentence += ", after this is fixed: \(error)"
            }
            return CommandError(.noNode, code: "noNode", sentence)
        case .notTaken:
            return CommandError(.noNode, code: "noNode", "\(error)")
        case .notUsable:
            return CommandError(.noNode, code: "noNode", "\(error); stop it and start `baton node` again")
        }
    }
}
