// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonCore
import BatonEventLoop
import BatonMessages
import BatonProtocol
import BatonTransport
import FoundationEssentials
import SwiftProtobuf

/// Examines the road from this device to another one, for `baton doctor`.
@ControlLoop
struct RoadExaminer: Sendable {
    /// How long a connection may take (3 s), the handshake on it (2 s), and the answer of the device (4 s).
    static let (connecting, proving, answering) = (Duration.seconds(3), Duration.seconds(2), Duration.seconds(4))

    let account: CurrentAccount
    let directory: PeerDirectory
    let connections: PeerConnections
    let announcer: Announcer
    let listeners: PeerListeners

    /// Connects to a device, whatever connections there are, and asks it for an examination. If it cannot be reached,
    /// it is asked over a connection that it has made.
    func examine(_ request: WireExamineRequest) async -> WireExamineResponse {
        var answer = WireExamineResponse()
        guard !account.isRevoked(request.deviceID) else { return answer }
        let known = directory.peer(request.deviceID)
        let (announced, door) = opened(request, known)
        let addresses = SocketAddress.ofOthers(announced)
        answer.addresses = addresses.map(\.description)
        if let door, !addresses.isEmpty {
            let began = ContinuousClock.now
            do {
                let connection = try await connections.dialer.reach(
                    addresses, door, connecting: Self.connecting, proving: Self.proving)
                answer.reach = .connected
                let duration = ContinuousClock.now - began
                answer.dialMs = UInt32(clamping: Int(duration / .milliseconds(1)))
                // The device may ask for the revocation lists of this one before it serves anything.
                do {
                    async let _: Void = connections.serve(connection, of: request.deviceID)
                    await ask(request, over: connection, &answer)
                    await connection.close()
                }
                connections.forget(connection, of: request.deviceID)
                return answer
            } catch {
                answer.reach = WireReach(error)
                answer.failure = HandoffError(wrapping: error).failure
            }
        }
        if let connection = connections.openConnection(with: request.deviceID) {
            answer.byItsConnection = true
            await ask(request, over: connection, &answer)
        }
        return answer
    }

    /// Where the device is and what lets this one in, by the record that was heard last, or by what the node knows.
    private func opened(_ request: WireExamineRequest, _ known: Peer?) -> ([SocketAddress], PeerDialer.Door?) {
        guard let (advertisement, keys) = try? account.opener.open(Array(request.record)),
            advertisement.device.description == request.deviceID
        else { return (known?.addresses ?? [], known?.door(in: account.value)) }
        let interfaces = Set((try? InterfaceAddress.current())?.map(\.interfaceIndex) ?? [])
        return (
            SocketAddress.dialled(
                of: advertisement.content.addresses, port: advertisement.content.port, interfaces: interfaces),
            PeerDialer.Door(device: advertisement.device, keys: keys, gateNonce: advertisement.gateNonce)
        )
    }

    /// How far the first time is ahead of the second. The device may say any number.
    nonisolated static func difference(_ time: UInt64, _ now: UInt64) -> Int64 {
        time >= now ? Int64(clamping: time - now) : -Int64(clamping: now - time)
    }

    private func ask(
        _ request: WireExamineRequest, over connection: Connection, _ answer: inout WireExamineResponse
    ) async {
        let nonce = Data(announcer.gateNonce)
        let question = WireExaminationRequest.with {
            $0.port = UInt32(listeners.port)
            $0.gateNonce = nonce
            // The device says what the command listens for.
            $0.say = request.listenFor
            $0.listenFor = request.say
        }
        do {
            let response = try await withDeadline(Self.answering, "it did not answer") {
                try await connection.answer(to: .examination(question))
            }
            guard case .examination(let examination) = response else {
                throw HandoffError(.internal, "it answered something else than what it was asked")
            }
            answer.examination = examination
            let now = UInt64(max(0, Date().timeIntervalSince1970 * 1000))
            answer.clockOffsetMs = Self.difference(examination.timeMs, now)
        } catch {
            answer.unexamined = HandoffError(wrapping: error).failure
        }
    }
}
