public import BatonEventLoop
import BatonProtocol
import SystemPackage

extension Connection {
    /// How long a node may take to accept a local connection.
    private static let localDeadline = Duration.seconds(5)

    /// Connects to the node's Unix-domain socket, and says hello.
    ///
    /// - Throws: ``TransportError``, `unreachable` where no node listens.
    public static func connect(
        toLocalSocket path: String, on loop: EventLoop
    ) async throws(TransportError) -> Connection {
        let socket: Socket
        do {
            socket = try await Socket.connect(to: .unix(FilePath(path)), on: loop, timeout: localDeadline)
        } catch {
            throw TransportError(dialing: error)
        }
        guard let user = socket.peerCredentials?.userID else {
            socket.close()
            throw .connectionEnded
        }
        var limits = Limits()
        limits.idleInterval = nil
        let connection = Connection(
            socket: socket, channel: PlainChannel(peer: .localUser(user)), role: .dialer, limits: limits, on: loop)
        await connection.start()
        return connection
    }
}
