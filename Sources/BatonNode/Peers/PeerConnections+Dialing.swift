// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonCore
import BatonEventLoop
import BatonMessages
import BatonProtocol
import BatonTransport

/// Making a connection to another device.
extension PeerConnections {
    /// How often in a row a device may have moved before dialling it is given up: 8.
    nonisolated static let moveLimit = 8
    /// How often it is looked whether a device that is being dialled has moved: each 100 ms.
    private nonisolated static let moveCheck = Duration.milliseconds(100)

    func dial(_ device: String) async throws(HandoffError) -> Connection {
        guard !isStopped else { throw HandoffError(.cancelled, "the node is stopping") }
        // Forgotten when it was revoked: whoever waits for it to be seen again would wait in vain.
        let id = String(device.prefix(8))
        guard !account.isRevoked(device) else {
            throw HandoffError(.refused, Cause.revoked.sentence("the device \(id)"), examining: id)
        }
        guard let peer = directory.peer(device), !peer.addresses.isEmpty else {
            throw HandoffError(.peerUnreachable, "the device \(id) has not been seen on this network", examining: id)
        }
        do {
            let connection = try await PeerDialer.twice { try await self.enter(peer) }
            try await adopt(connection, of: device, isDialled: true)
            // This device gets what it lacks before it asks for anything: the other side serves nothing else until
            // then.
            await exchange.meet(connection, of: device)
            return connection
        } catch {
            throw HandoffError(dialing: peer.name, error)
        }
    }

    /// Connects to a device, and has it and this one prove who they are.
    private func enter(_ peer: Peer) async throws -> Connection {
        let (socket, peer) = try await connect(to: peer)
        guard let door = peer.door(in: account.value) else {
            throw HandoffError(.peerUnreachable, "it has not been seen")
        }
        return try await dialer.prove(socket, door, within: limits.handshakeDeadline)
    }

    /// Connects to where a device is, also when that changes meanwhile.
    private func connect(to first: Peer) async throws -> (Socket, Peer) {
        var peer = first
        for _ in 0..<Self.moveLimit {
            let others = SocketAddress.ofOthers(peer.addresses)
            let addresses = others.isEmpty ? peer.addresses : others
            do {
                let socket = try await running { [loop = loops.next(), timeout = limits.dialDeadline] in
                    try await Socket.connect(toAnyOf: addresses, on: loop, timeout: timeout) as Socket
                } until: { [peer] in
                    await self.awaitMove(of: peer)
                }
                return (socket, peer)
            } catch {
                guard let now = moved(peer), !Task.isCancelled else { throw error }
                peer = now
            }
        }
        throw HandoffError(.peerUnreachable, "its addresses change all the time")
    }

    /// Waits until a device is announced elsewhere, or until the task is cancelled.
    private func awaitMove(of peer: Peer) async {
        while moved(peer) == nil, (try? await Alarm.sleep(for: Self.moveCheck)) != nil {}
    }

    /// A device as it is announced now, if that is elsewhere.
    private func moved(_ peer: Peer) -> Peer? {
        directory.peer(peer.device.description).flatMap {
            $0.addresses.isEmpty || $0.addresses == peer.addresses ? nil : $0
        }
    }
}

extension SocketAddress {
    /// The addresses that do not lead to this machine. Bridges of containers have the same address on many machines.
    static func ofOthers(_ addresses: [SocketAddress]) -> [SocketAddress] {
        let own = Set(((try? InterfaceAddress.current(includingIdle: true)) ?? []).map(\.address))
        return addresses.filter { address in address.ipAddress.map { !own.contains($0) } ?? true }
    }
}

extension HandoffError {
    /// No connection could be made to a device. It uses the words of the doctor where the cause is known, and points
    /// to the doctor.
    fileprivate init(dialing device: String, _ error: any Error) {
        let failure = HandoffError(wrapping: error)
        let (code, sentence): (Code, String) =
            switch (error as? SocketError).map({ ($0.code, WireReach($0)) }) {
            case (.cancelled, _)?: (.cancelled, "\(failure)")
            case (_, .refused)?: (.peerUnreachable, Cause.nodeGoneThere.sentence(device))
            case (_, .silent)?: (.peerUnreachable, Cause.answersNowhere.sentence(device))
            case (_, .noRoute)?: (.peerUnreachable, Cause.noRoute.sentence(device))
            case _?: (.peerUnreachable, "\(device): \(failure)")
            // The gate of a device that does not know this one's token, or has revoked it, ends a connection like this.
            case nil where failure.code == .connectionLost:
                (.peerUnreachable, "\(device) ended the connection without an answer: it may not know this device")
            case nil where failure.code == .internal:
                (.internal, "\(Cause.otherVersion.sentence(device)): \(failure)")
            case nil: (failure.code, "\(device): \(failure)")
            }
        switch code {
        case .peerUnreachable, .refused, .timedOut, .internal: self.init(code, sentence, examining: device)
        default: self.init(code, sentence, device: device)
        }
    }

    /// An error whose cause the doctor finds on the road to a device.
    fileprivate init(_ code: Code, _ sentence: String, examining device: String) {
        let command = "baton doctor \(ShellWord.quoted(device))"
        self.init(code, "\(sentence); find the cause with `\(command)`", device: device, advises: true)
    }
}
