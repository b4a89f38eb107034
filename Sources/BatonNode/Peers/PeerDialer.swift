// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonEventLoop
import BatonMessages
import BatonProtocol
import BatonTLS
import BatonTransport

/// Makes connections on which both sides have proved who they are.
struct PeerDialer: Sendable {
    /// The gate of a device: whom to expect there, and what lets this device in.
    struct Door: Sendable {
        let device: DeviceID
        let keys: GenerationKeys
        let gateNonce: [UInt8]
    }

    let context: TLSContext
    let account: CurrentAccount
    let limits: NodeLimits
    let loops: EventLoopGroup
    /// The bytes that all devices together can make this one hold.
    let budget: ReceiveBudget

    /// Connects to a device and proves who this one is.
    ///
    /// - Throws: ``SocketError`` of the connection, ``HandoffError`` of the handshake.
    func reach(
        _ addresses: [SocketAddress], _ door: Door, connecting: Duration, proving: Duration
    ) async throws -> Connection {
        try await Self.twice {
            let socket = try await Socket.connect(toAnyOf: addresses, on: loops.next(), timeout: connecting) as Socket
            return try await prove(socket, door, within: proving)
        }
    }

    /// Connects once more if the other side has ended the connection: a door that strangers crowd turns some away whom
    /// it lets in a moment later.
    nonisolated(nonsending) static func twice(
        _ enter: nonisolated(nonsending) () async throws -> Connection
    ) async throws -> Connection {
        do {
            return try await enter()
        } catch let error as HandoffError where error.code == .connectionLost {
            return try await enter()
        }
    }

    /// Runs the handshake on a socket.
    func prove(_ socket: Socket, _ door: Door, within deadline: Duration) async throws -> Connection {
        let session = try TLSSession(
            client: context,
            serverName: GateToken.serverName(keys: door.keys, server: door.device, gateNonce: door.gateNonce),
            expectedPeer: door.device.description)
        let connection = Connection(
            socket: socket, channel: TLSChannel(session, isClient: true), role: .dialer,
            limits: limits.session, revocationNumber: account.value.state.revision, budget: budget, on: socket.loop)
        _ = try await connection.establish(within: deadline)
        return connection
    }
}

extension Connection {
    /// Runs the handshake, and returns the device that the other side has proved to be. Closes the connection if that
    /// fails.
    nonisolated func establish(within deadline: Duration) async throws -> String {
        await start()
        do {
            try await withDeadline(deadline, "the handshake was not over") {
                try await self.ready()
            }
        } catch {
            await close()
            throw error
        }
        guard case .device(let device) = await peer else {
            await close(.refused)
            throw HandoffError(.refused, "the other side did not show which device it is")
        }
        return device
    }
}
