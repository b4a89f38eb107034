// SPDX-License-Identifier: Apache-2.0

package import BatonEventLoop
package import BatonProtocol
import Glibc
import SystemPackage

extension Connection {
    /// How long a node may take to accept a local connection.
    private static let localDeadline = Duration.seconds(5)

    /// Connects to the node's Unix-domain socket, and says hello.
    ///
    /// - Throws: ``TransportError``, `unreachable` where no node listens, and for no other reason; `refused` where it
    ///   is another user's: root's aside, whoever may write where the socket is could wait there for what is said to
    ///   it.
    package static func connect(
        toLocalSocket path: String, on loop: EventLoop
    ) async throws(TransportError) -> Connection {
        try await connect(toLocalSocket: path, as: geteuid(), on: loop)
    }

    /// The same as a user. No program says who that is, or does without the owner: only the tests of attacks see whom
    /// that would make it talk to.
    package static func connect(
        toLocalSocket path: String, as user: UInt32, requiringOwner: Bool = true, on loop: EventLoop
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
        guard let node = socket.peerCredentials else {
            socket.close()
            throw .connectionEnded
        }
        guard [user, 0].contains(node.userID) || user == 0 || !requiringOwner else {
            socket.close()
            throw TransportError(
                .refused, "the node at \(path) is another user's: check BATON_HOME and XDG_RUNTIME_DIR")
        }
        let connection = Connection(
            socket: socket, channel: PlainChannel(peer: .localUser(node.userID)), role: .dialer, limits: .local,
            on: loop)
        await connection.start()
        return connection
    }
}

extension Limits {
    /// Limits of the local socket: the end of the peer is seen at once, and with no round trip small windows are as
    /// fast as large ones, so that many applications together stay small.
    package static var local: Limits {
        var limits = Limits()
        limits.idleInterval = nil
        limits.initialStreamWindow = 256 << 10
        limits.maximumStreamWindow = 512 << 10
        limits.initialConnectionWindow = 512 << 10
        limits.maximumConnectionWindow = 1 << 20
        return limits
    }
}
