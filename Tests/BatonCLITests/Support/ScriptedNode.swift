import Baton
import BatonEventLoop
import BatonMessages
import BatonProtocol
import BatonTransport
import FoundationEssentials
import SystemPackage

/// A node of the test's own: a real local socket, answered by the test.
final class ScriptedNode: Sendable {
    /// Where it is; the folder goes with the node.
    let folder: String
    let home: Home
    private let listener: Listener

    /// - Parameter serve: answers each stream that an application opens.
    init(
        serve: @escaping @Sendable (WireRequest.OneOf_Kind, BatonTransport.Stream, Connection) async throws -> Void
    ) throws {
        folder = FileManager.default.temporaryDirectory.path + "/baton-cli-\(UInt64.random(in: 0 ... .max))"
        home = try Home(environment: ["BATON_HOME": folder])
        try FileManager.default.createDirectory(
            atPath: home.runtimeFolder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        let loop = EventLoop(name: "scripted-node")
        listener = try Listener(at: .unix(FilePath(home.socketPath)), on: loop)
        listener.start(
            onTrouble: { _ in },
            onAccept: { socket in
                Task {
                    let connection = Connection(
                        socket: socket, channel: PlainChannel(peer: .localUser(0)), role: .acceptor, on: loop)
                    await connection.start()
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
        try? FileManager.default.removeItem(atPath: folder)
    }
}

/// A condition that a test waits for, until a deadline.
func eventually(
    within limit: Duration = .seconds(20), _ condition: @Sendable () async throws -> Bool
) async rethrows -> Bool {
    let end = ContinuousClock.now + limit
    while ContinuousClock.now < end {
        if try await condition() { return true }
        try? await Task.sleep(for: .milliseconds(20))
    }
    return false
}
