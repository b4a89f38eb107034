// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
package import BatonMessages
import BatonProtocol
package import BatonTransport
import FoundationEssentials
import SystemPackage

/// A node of the test's own: a real local socket, answered by the test.
package final class ScriptedNode: Sendable {
    /// Where it is; the folder goes with the node, unless the test made it.
    package let folder: String
    package let home: Home
    /// Its own folder; `nil` if the test has given it one.
    private let scratch: ScratchFolder?
    private let listener: Listener
    private let connections = Lock<[Connection]>([])

    /// - Parameters:
    ///   - folder: its `BATON_HOME`; one of its own by default.
    ///   - serve: answers each stream that an application opens.
    package init(
        in folder: String? = nil,
        serve: @escaping @Sendable (WireRequest.OneOf_Kind, BatonTransport.Stream, Connection) async throws -> Void
    ) throws {
        if let folder {
            self.folder = folder
            scratch = nil
        } else {
            let made = try ScratchFolder("node")
            self.folder = made.path
            scratch = made
        }
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

    deinit { listener.close() }

    /// Ends at once, as a node that was killed: nobody can connect any more, and the connections break.
    package func stop() async {
        listener.close()
        for connection in connections.withLock({ $0 }) { await connection.abort() }
    }
}
