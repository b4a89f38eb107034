import Baton
import BatonAccount
import BatonMessages
import BatonTransport

/// The way from a command to the node of this user.
enum NodeAccess {
    /// Connects, and closes when `body` is done, so that what it queued still leaves.
    static func withNode<Result: Sendable>(
        _ body: (NodeClient) async throws -> Result
    ) async throws -> Result {
        let home = try CommandEnvironment.home()
        let client: NodeClient
        do {
            client = try await NodeClient.connect(to: home)
        } catch {
            throw failure(error, home)
        }
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
