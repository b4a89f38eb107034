// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
package import BatonMessages
import BatonProtocol
package import BatonTransport
import FoundationEssentials
import Glibc
import SystemPackage

/// A node of the test's own: a real local socket, answered by the test.
package final class ScriptedNode: Sendable {
    /// Where it is; the folder goes with the node, unless the test made it.
    package let folder: String
    package let home: Home
    /// Folders of nodes that live until the process ends, as a program that still waits keeps its node.
    private static let folders: Lock<Set<String>> = {
        atexit { for folder in ScriptedNode.folders.withLock({ $0 }) { ScriptedNode.remove(folder) } }
        return Lock([])
    }()

    private let ownsFolder: Bool
    private let listener: Listener
    private let connections = Lock<[Connection]>([])

    /// - Parameters:
    ///   - folder: its `BATON_HOME`; one of its own by default.
    ///   - serve: answers each stream that an application opens.
    package init(
        in folder: String? = nil,
        serve: @escaping @Sendable (WireRequest.OneOf_Kind, BatonTransport.Stream, Connection) async throws -> Void
    ) throws {
        ownsFolder = folder == nil
        self.folder = folder ?? Self.makeFolderName()
        if ownsFolder { Self.folders.withLock { [path = self.folder] in _ = $0.insert(path) } }
        home = try Home(environment: ["BATON_HOME": self.folder])
        try FileManager.default.createDirectory(
            atPath: home.runtimeFolder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        let loop = EventLoop(name: "scripted-node")
        listener = try Listener(at: .unix(FilePath(home.socketPath)), on: loop)
        listener.start(
            onTrouble: { _ in },
            onAccept: { [weak self] socket in
                let connection = Connection(
                    socket: socket, channel: PlainChannel(peer: .localUser(0)), role: .acceptor, on: loop)
                self?.connections.withLock { $0.append(connection) }
                // Here and not in the task: other tests may hold all threads of tasks for longer than a hello may take.
                connection.assumeIsolated { $0.start() }
                Task {
                    for await incoming in connection.incoming {
                        Task {
                            do {
                                try await serve(
                                    try WireRequest.decode(incoming.request), incoming.stream, connection)
                            } catch let error as HandoffError {
                                await incoming.stream.fail(error)
                            }
                        }
                    }
                }
            })
    }

    deinit {
        listener.close()
        guard ownsFolder else { return }
        Self.remove(folder)
        _ = Self.folders.withLock { $0.remove(folder) }
    }

    private static func remove(_ folder: String) { try? FileManager.default.removeItem(atPath: folder) }

    /// The name of a folder that a socket's path can be beneath; it is not made.
    package static func makeFolderName() -> String {
        FileManager.default.temporaryDirectory.path + "/baton-node-\(UInt64.random(in: 0 ... .max))"
    }

    /// Ends at once, as a node that was killed: nobody can connect any more, and the connections break.
    package func stop() async {
        listener.close()
        for connection in connections.withLock({ $0 }) { await connection.abort() }
    }
}
