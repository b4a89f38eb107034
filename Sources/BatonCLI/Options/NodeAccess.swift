// SPDX-License-Identifier: Apache-2.0

import Baton
import BatonAccount
import BatonEventLoop
import BatonMessages
import BatonTransport

/// The way from a command to the node of this user.
enum NodeAccess {
    /// The time between two looks whether there is a node again: 200 ms.
    private static let pause = Duration.milliseconds(200)

    /// Connects, and closes when `body` is done, so that what it queued still leaves.
    static func withNode<Result: Sendable>(
        _ body: (NodeClient) async throws -> Result
    ) async throws -> Result {
        try await closing(try await connect(), body)
    }

    /// Connects to the node that runs.
    static func connect() async throws -> NodeClient {
        let home = try CommandEnvironment.home()
        do {
            return try await NodeClient.connect(to: home)
        } catch {
            throw failure(error, home)
        }
    }

    /// Connects to the next node that runs, where the one before has stopped.
    ///
    /// - Parameter isOver: nobody waits for it any more.
    /// - Returns: `nil` where there was none in time, or where nobody waits any more.
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
                // One that stops or starts takes nobody.
                case .noNode, .notTaken: break
                case .notUsable: throw failure(error, home)
                }
            }
        }
        return nil
    }

    /// Does something with a node, and closes the connection, so that what was queued still leaves.
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

    /// Why the node is not reached, for people.
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
                    "no node is running here, and this device has no account yet: run `baton account create`, or"
                    + " `baton account join` with the key of your other device, then `baton node`"
            } catch .nodeRunning {
                sentence =
                    "a node is running with this account, but does not listen at \(home.socketPath): it was started with"
                    + " another XDG_RUNTIME_DIR than this command; set the same, or start it again"
            } catch {
                sentence += "; it will say this first: \(error)"
            }
            return CommandError(.noNode, code: "noNode", sentence)
        case .notTaken:
            return CommandError(.noNode, code: "noNode", "\(error)")
        case .notUsable:
            return CommandError(.noNode, code: "noNode", "\(error); stop it and start `baton node` again")
        }
    }
}
