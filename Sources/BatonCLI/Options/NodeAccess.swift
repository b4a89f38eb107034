// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Baton
import BatonAccount
import BatonDocuments
import BatonEventLoop
import BatonMessages
import BatonNode
import BatonTransport
import FoundationEssentials
import Glibc
import SystemPackage

enum NodeAccess {
    /// The time between two attempts to connect to the next node: 200 ms.
    private static let pause = Duration.milliseconds(200)

    /// Connects, and closes the connection after `body`. Queued bytes are still sent.
    static func withNode<Result: Sendable>(
        _ body: (NodeClient) async throws -> Result
    ) async throws -> Result {
        try await closing(try await connect(), body)
    }

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
            throw CommandError(failure.status, "\(unchanged): \(failure.message)")
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
        } catch {
            await client.close()
            throw error
        }
    }

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
            return CommandError(.noNode, sentence)
        case .notTaken:
            return CommandError(.noNode, "\(error)")
        case .notUsable:
            return CommandError(.noNode, "\(error); stop it and start `baton node` again")
        }
    }
}

/// The folders and files of this user's Baton, as the environment sets them.
enum CommandEnvironment {
    static func home() throws(CommandError) -> Home {
        do {
            return try Home(environment: ProcessInfo.processInfo.environment)
        } catch {
            throw .usage("\(error)")
        }
    }

    static func accountStore(_ home: Home) -> AccountStore {
        AccountStore(folder: AccountStore.folder(in: home))
    }

    /// A path as the user wrote it, made absolute.
    ///
    /// Only the system knows where a `..` after a symbolic link leads. The path is therefore resolved up to its last
    /// `..`, and the rest keeps its names, links included. If that folder does not exist, the path stays as written.
    static func absolute(_ path: FilePath) -> FilePath {
        let whole = path.isRelative ? currentFolder.pushing(path) : path
        guard let last = whole.components.lastIndex(where: { $0.kind == .parentDirectory }) else {
            return whole.lexicallyNormalized()
        }
        let rest = whole.components.index(after: last)
        let folder = FilePath(root: whole.root, whole.components[..<rest])
        guard let resolved = try? FileLookup.resolved(folder) else { return whole }
        return resolved.appending(whole.components[rest...]).lexicallyNormalized()
    }

    /// The current folder. Foundation would change a name that is not UTF-8.
    private static var currentFolder: FilePath {
        guard let path = getcwd(nil, 0) else { return FilePath(FileManager.default.currentDirectoryPath) }
        defer { free(path) }
        return FilePath(platformString: path)
    }
}

/// The option `--json`, for commands that list something or take long.
struct JSONOption: ParsableArguments {
    @Flag(name: .long, help: "Print JSON, one object on each line.")
    var json = false
}
