// SPDX-License-Identifier: Apache-2.0

import BatonCore
import BatonEventLoop
import BatonProtocol
import BatonTransport
import Glibc
import Logging

/// The local socket: accepts this user's applications and nobody else's.
@ControlLoop
final class ControlServer {
    private let listener: Listener
    private let logger: Logger
    /// See ``NodeLimits/localConnections``.
    private let bound: Int
    /// Of the node's budget.
    private let budget: ReceiveBudget
    private var connections: [ObjectIdentifier: Connection] = [:]
    /// Warns once a minute at most, however often programs connect.
    private var warnings = RateLimiter(capacity: 1, interval: .seconds(60))

    /// - Parameter budget: what all applications together can make this node hold.
    nonisolated init(listener: Listener, limits: NodeLimits, budget: ReceiveBudget, logger: Logger) {
        bound = limits.localConnections
        self.budget = budget
        self.listener = listener
        self.logger = logger
    }

    func start(_ service: ControlService) {
        listener.start(
            onTrouble: { [logger] in logger.warning("applications cannot connect at the moment: \($0)") },
            onAccept: { socket in
                ControlLoop.task { await self.serve(socket, with: service) }
            })
    }

    /// Stops to listen, and ends every connection politely.
    func stop() async {
        listener.close()
        let all = Array(connections.values)
        await withTaskGroup { group in
            for connection in all { group.addTask { await connection.close() } }
        }
    }

    private func serve(_ socket: Socket, with service: ControlService) async {
        guard let client = socket.peerUser, [geteuid(), 0].contains(client) else {
            logger.warning("another user's connection to the local socket was closed")
            return socket.close()
        }
        guard connections.count < bound else {
            if warnings.take(at: .now) {
                logger.warning("a connection to the local socket was closed: \(bound) are there")
            }
            return socket.close()
        }
        let connection = Connection(
            socket: socket, channel: PlainChannel(peer: .localUser(client)), role: .acceptor, limits: .local,
            budget: budget, on: ControlLoop.loop)
        connections[ObjectIdentifier(connection)] = connection
        await connection.start()
        await withDiscardingTaskGroup { group in
            for await incoming in connection.incoming {
                group.addTask { await service.serve(incoming, of: connection) }
            }
        }
        connections[ObjectIdentifier(connection)] = nil
    }
}
