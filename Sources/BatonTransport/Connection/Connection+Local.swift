// SPDX-License-Identifier: Apache-2.0

package import BatonEventLoop
package import BatonProtocol
import Glibc
import SystemPackage

extension Connection {
    /// The longest time for a node to accept a local connection.
    private static let localDeadline = Duration.seconds(5)

    /// Connects to the node's Unix-domain socket, and sends HELLO.
    ///
    /// - Throws: ``TransportError``: `unreachable` only if no node listens; `refused` if the node belongs to another
    ///   user than this one or root. Anyone who may write to the folder of the socket could otherwise listen there.
    package static func connect(
        toLocalSocket path: String, on loop: EventLoop
    ) async throws(TransportError) -> Connection {
        let socket: Socket
        do {
            socket = try await Socket.connect(to: .unix(FilePath(path)), on: loop, timeout: localDeadline)
        } catch {
            switch error.code {
            case .notFound, .connectionRefused, .cancelled: throw TransportError(dialing: error)
            case .timedOut: throw TransportError(.connectionLost, "\(error)")
            case _: throw TransportError(.refused, "\(error)")
            }
        }
        guard let node = socket.peerUser else {
            socket.close()
            throw .connectionEnded
        }
        let user = geteuid()
        guard [user, 0].contains(node) || user == 0 else {
            socket.close()
            throw TransportError(
                .refused, "the node at \(path) is another user's: check BATON_HOME and XDG_RUNTIME_DIR")
        }
        let connection = Connection(
            socket: socket, channel: PlainChannel(peer: .localUser(node)), role: .dialer, limits: .local,
            on: loop)
        await connection.start()
        return connection
    }
}

extension Limits {
    /// Limits of the local socket. It shows the end of the peer at once. Without a round trip, small windows are as
    /// fast as large ones, so many applications together use little memory.
    package static var local: Limits {
        var limits = Limits()
        limits.idleInterval = nil
        limits.initialStreamWindow = 256 << 10
        limits.initialConnectionWindow = 512 << 10
        limits.maximumConnectionWindow = 1 << 20
        return limits
    }
}
