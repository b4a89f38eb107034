// SPDX-License-Identifier: Apache-2.0

package import BatonAccount
package import BatonEventLoop
import BatonMessages
import SwiftProtobuf

/// One attempt of a new device to join an account by digits.
package struct PairingJoin: Sendable {
    /// How long to wait for a connection, and for the inviter's key: 10 s each.
    private static let patience = Duration.seconds(10)

    private let device: NewDevice
    private let name: String

    /// An attempt with a new device key.
    ///
    /// - Parameter name: a valid name for this device.
    package init(name: String) throws(AccountError) {
        device = try NewDevice()
        self.name = name
    }

    /// Runs the attempt to its end.
    ///
    /// - Parameters:
    ///   - addresses: where the inviter listens, the best first.
    ///   - show: shows the six digits.
    ///   - store: asks the user whether to go on, and stores the account. The inviter then learns that this device
    ///     joined. If it throws, nothing was stored.
    /// - Throws: ``SocketError`` if the inviter cannot be reached, ``PairingError``, or the error of a parameter.
    package func run(
        at addresses: [SocketAddress], show: (_ digits: String) throws -> Void,
        store: (HandedOver) async throws -> Void
    ) async throws {
        let socket = PairingSocket(
            try await Socket.connect(toAnyOf: addresses, on: ControlLoop.loop, timeout: Self.patience))
        await socket.start()
        do {
            let keys = try await exchange(over: socket, show)
            try await store(await handedOver(by: socket, keys))
            await socket.send(PairingMessage(.done, try keys.seal(Array(name.utf8), .done)))
            await socket.close()
        } catch {
            await socket.close(saying: (error as? PairingError)?.reason ?? .turnedAway)
            throw error
        }
    }

    private func exchange(over socket: PairingSocket, _ show: (String) throws -> Void) async throws -> PairingKeys {
        let joiner = PairingJoiner(deviceKey: device.publicKey)
        await socket.send(joiner.commit)
        let (open, keys) = try joiner.receiveKey(try await socket.receive([.key], within: Self.patience))
        await socket.send(open)
        try show(keys.digits)
        return keys
    }

    private func handedOver(by socket: PairingSocket, _ keys: PairingKeys) async throws -> HandedOver {
        let message = try await socket.receive([.welcome], within: Invitation.lifetime)
        guard let content = keys.open(message.body, .welcome),
            let handOver = try? WireHandOver(serializedBytes: content)
        else { throw PairingError.malformed }
        return try handOver.read(for: device, name: name, wrappedBy: keys.wrapping)
    }
}
