// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonCore
import BatonDiscovery
import BatonEventLoop
import BatonMessages
import BatonProtocol
import BatonTransport
import FoundationEssentials
import SwiftProtobuf
import SystemPackage

/// Examines the road to a device of the account that asks for it.
///
/// It connects to the address that the question comes from, and to no other, so that no device can make this one
/// connect to a third.
@ControlLoop
final class Examinations {
    /// How long it listens for multicast DNS, and how long a connection may take: 3 s. No examination begins in this
    /// time after another one: a device that asks again and again makes this one send a few packets a second at most.
    nonisolated static let duration = Duration.seconds(3)
    /// How long connecting and the handshake may take together: 3.5 s. The device that asks waits 4 s.
    static let dialing = Duration.milliseconds(3500)

    private let dialer: PeerDialer
    private let serviceType: String
    /// For the responder, which may hang; made at the first use.
    private var executor: BlockingExecutor?
    /// Everybody on the network can send what is heard there: that never holds up the control loop.
    private lazy var listening = EventLoop(name: "baton-doctor")
    private var turns = RateLimiter(capacity: 1, interval: Examinations.duration)

    nonisolated init(dialer: PeerDialer, serviceType: String) {
        self.dialer = dialer
        self.serviceType = serviceType
    }

    /// Answers a device.
    ///
    /// - Parameter address: where its question comes from.
    /// - Throws: `limitExceeded` if another examination began less than 3 s ago.
    func answer(
        _ request: WireExaminationRequest, from device: String, at address: IPAddress?
    ) async throws(HandoffError) -> WireExaminationResponse {
        guard let device = DeviceID(device), let address, let port = UInt16(exactly: request.port),
            port >= Advertisement.minimumPort, request.gateNonce.count == GateToken.nonceCount,
            InstanceName.isPlausible(request.say), InstanceName.isPlausible(request.listenFor)
        else {
            throw HandoffError(.invalidRequest, "an examination needs a port, a nonce and two labels")
        }
        guard !DescriptorLimit.isNearlyReached else {
            throw HandoffError(.limitExceeded, "it can open no further files")
        }
        guard turns.take(at: .now) else {
            throw HandoffError(.limitExceeded, "it examines another road: try again in a few seconds")
        }
        let door = PeerDialer.Door(
            device: device, keys: dialer.account.value.currentKeys, gateNonce: Array(request.gateNonce))
        async let dialBack = reach(.ip(address, port: port), door)
        let network = NetworkFacts.ofInterfaces()
        let report = try await listen(saying: request.say, for: request.listenFor, in: network)
        var answer = WireExaminationResponse()
        answer.dialBack = await dialBack
        answer.heard = report.heard.values.contains { $0.asks }
        // A device that only a tunnel leads to is reached at no interface, and none is to blame.
        let interfaces = network.leading(report.interfaces, towards: [address])
        answer.hearsItself = interfaces.allSatisfy { $0.hearsItself }
        answer.responderAsks = interfaces.allSatisfy { $0.hearsResponder }
        answer.wasBusy = report.isLate
        answer.timeMs = UInt64(max(0, Date().timeIntervalSince1970 * 1000))
        return answer
    }

    private func reach(_ address: SocketAddress, _ door: PeerDialer.Door) async -> WireReach {
        let reach = try? await withDeadline(Self.dialing, "the handshake was not over") { [dialer] in
            do {
                let connection = try await dialer.reach(
                    [address], door, connecting: Self.duration, proving: Self.duration)
                await connection.close()
                return WireReach.connected
            } catch {
                return WireReach(error)
            }
        }
        return reach ?? .unfinished
    }

    private func listen(
        saying label: String, for other: String, in network: NetworkFacts
    ) async throws(HandoffError) -> MulticastEar.Report {
        let executor: BlockingExecutor
        do {
            executor = try self.executor ?? BlockingExecutor(name: "baton-doctor")
        } catch {
            throw HandoffError(.limitExceeded, "the device has no thread left")
        }
        self.executor = executor
        let ear = MulticastEar(
            saying: label, listeningFor: other, asking: [], interfaces: network.addresses, type: serviceType,
            on: listening, executor: executor)
        defer { ear.close() }
        await ear.run(for: Self.duration)
        return ear.report
    }
}

extension WireReach {
    /// How a connection failed.
    init(_ error: any Error) {
        if let error = error as? SocketError {
            switch error.code {
            case .connectionRefused, .connectionReset: self = .refused
            // No machine has the address: the link says so only after a while.
            case .unreachable where error.underlyingError == .noRouteToHost: self = .silent
            case .unreachable: self = .noRoute
            case .timedOut: self = .silent
            case .addressInUse, .notFound, .cancelled, .closed, .outOfResources, .other: self = .unknown
            }
            return
        }
        switch HandoffError(wrapping: error).code {
        case .connectionLost, .refused: self = .turnedAway
        case .internal: self = .otherVersion
        default: self = .unfinished
        }
    }
}
