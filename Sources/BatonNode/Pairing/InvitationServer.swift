// SPDX-License-Identifier: Apache-2.0

package import BatonAccount
package import BatonEventLoop
import BatonMessages
package import BatonProtocol
import SwiftProtobuf

/// An invitation on the network. It listens for joiners, and hands the account over to the one whose digits the user
/// types.
///
/// It asks about one joiner at a time. Others are told that it is busy.
@ControlLoop
package final class InvitationServer {
    package enum Event: Sendable {
        /// A joiner shows six digits; answer with ``InvitationServer/enter(_:)`` or ``InvitationServer/turnAway()``.
        case asked
        /// These were not its digits; answer again.
        case wrong(left: Int)
        case lost(left: Int)
        /// The digits were right, and the device has what it needs to join.
        case right(DeviceID)
        /// The device has joined. The last event.
        case joined(name: String, DeviceID)
        /// The device did not say that it joined. The last event.
        case unconfirmed(DeviceID)
        /// The invitation ended without a new device. The last event.
        case over(PairingEnd)
        /// The account could not be handed over. The last event.
        case failed(String)
    }

    /// The port that is tried first. It has no other meaning than that a firewall can let it in.
    package nonisolated static let port: UInt16 = 24748

    /// Connections that have not sent their first message. A further one closes the oldest. Default 8.
    private nonisolated static let maximumStrangers = 8
    /// How long a connection may take for its first message: 5 s.
    private nonisolated static let firstMessageTime = Duration.seconds(5)
    /// How long a joiner may take to open its commitment: 10 s.
    private static let openingTime = Duration.seconds(10)
    /// How long a device may take to say that it joined, at least: 60 s.
    private static let joiningTime = Duration.seconds(60)

    /// The events, at most one for each call and each message.
    package nonisolated let events: AsyncStream<Event>
    package nonisolated let port: UInt16
    /// Where joiners reach this machine, the likeliest first.
    package nonisolated let addresses: [SocketAddress]

    private let account: Account
    private var secrets: AccountSecrets?
    private let listener: Listener
    private let yield: AsyncStream<Event>.Continuation
    private var invitation = Invitation()
    private var strangers: [PairingSocket] = []
    private var joiner: PairingSocket?
    private var device: DeviceID?
    private var expiry: BatonEventLoop.Timer?
    private var end = ContinuousClock.now + Invitation.lifetime

    /// Listens, and accepts nobody before ``start()``.
    ///
    /// - Parameter secrets: those of the account. They are dropped when the account is handed over.
    package nonisolated init(for account: Account, with secrets: AccountSecrets) throws(SocketError) {
        self.account = account
        self.secrets = secrets
        let listener: Listener
        do throws(SocketError) {
            listener = try Self.listen(at: Self.port)
        } catch  where error.code == .addressInUse {
            listener = try Self.listen(at: 0)
        }
        self.listener = listener
        let port = listener.localAddress.port ?? 0
        self.port = port
        addresses = Announcer.ownAddresses().compactMap { address in
            IPAddress(bytes: address.bytes).map { .ip($0, port: port) }
        }
        (events, yield) = AsyncStream.makeStream()
    }

    private nonisolated static func listen(at port: UInt16) throws(SocketError) -> Listener {
        try Listener.onAllAddresses(
            port: port, on: ControlLoop.loop, backlog: maximumStrangers, defersAccept: firstMessageTime)
    }

    /// Begins to accept joiners. Call once.
    package func start() {
        expiry = BatonEventLoop.Timer { [weak self] in self?.stop(.time) }
        expiry?.schedule(after: ContinuousClock.now.duration(to: end))
        listener.start { [weak self] socket in
            guard let self else { return socket.close() }
            ControlLoop.assumeIsolated { self.accept(socket) }
        }
    }

    /// Takes the six digits that the user typed, if a joiner is being asked about.
    ///
    /// - Returns: whether they were right.
    @discardableResult
    package func enter(_ digits: String) -> Bool {
        let step = invitation.enter(digits)
        guard case .handOver(let deviceKey, let keys) = step else {
            take(step)
            return false
        }
        handOver(to: deviceKey, keys)
        return true
    }

    /// Turns the joiner away. That counts as a failure: see ``Invitation/maximumFailures``.
    package func turnAway() {
        joiner?.close(saying: .turnedAway)
    }

    /// Ends the invitation. Idempotent.
    package func stop(_ reason: PairingEnd) {
        take(invitation.stop(reason))
    }

    // MARK: - Joiners

    private func accept(_ socket: Socket) {
        let stranger = PairingSocket(socket)
        strangers.append(stranger)
        if strangers.count > Self.maximumStrangers { strangers.removeFirst().close() }
        Task { await serve(stranger) }
    }

    private func serve(_ socket: PairingSocket) async {
        socket.start()
        do {
            let commit = try await firstMessage(of: socket)
            guard invitation.isWaiting else { return socket.close(saying: .busy) }
            let step = try invitation.receive(commit)
            joiner = socket
            await exchange(with: socket, step)
        } catch {
            socket.close(saying: error.reason)
        }
    }

    private func firstMessage(of stranger: PairingSocket) async throws(PairingError) -> PairingMessage {
        defer { strangers.removeAll { $0 === stranger } }
        return try await stranger.receive([.commit], within: Self.firstMessageTime)
    }

    /// Serves a joiner from its commitment to its end.
    private func exchange(with socket: PairingSocket, _ first: Invitation.Step) async {
        do {
            if case .send(let key) = first { socket.send(key) }
            let open = try await socket.receive([.open], within: Self.openingTime)
            if case .ask = try invitation.receive(open) { yield.yield(.asked) }
            // It comes when the user has typed the digits. The end of the invitation closes the socket.
            let done = try await socket.receive([.done], within: Invitation.lifetime + Self.joiningTime)
            let step = try invitation.receive(done)
            socket.close()
            take(step)
        } catch {
            socket.close(saying: error.reason)
            take(invitation.lose())
        }
    }

    private func handOver(to deviceKey: [UInt8], _ keys: PairingKeys) {
        guard let secrets else { return }
        self.secrets = nil
        let device = DeviceID(ed25519PublicKey: deviceKey)
        self.device = device
        do {
            let content =
                try WireHandOver(
                    account, secrets, to: deviceKey, wrappedBy: keys.wrapping
                ).serializedBytes() as [UInt8]
            joiner?.send(.welcome(try keys.seal(content, .welcome)))
            end = max(end, .now + Self.joiningTime)
            expiry?.schedule(after: ContinuousClock.now.duration(to: end))
            yield.yield(.right(device))
        } catch {
            joiner?.close(saying: .turnedAway)
            finish(.failed("\(error)"))
        }
    }

    private func take(_ step: Invitation.Step) {
        switch step {
        case .send, .ask, .handOver, .ignore:
            break
        case .wrong(let left):
            yield.yield(.wrong(left: left))
        case .lost(let left):
            joiner = nil
            yield.yield(.lost(left: left))
        case .joined(let name):
            if let device { finish(.joined(name: name, device)) }
        case .unconfirmed:
            if let device { finish(.unconfirmed(device)) }
        case .over(let reason):
            joiner?.close(saying: reason)
            finish(.over(reason))
        }
    }

    private func finish(_ event: Event) {
        yield.yield(event)
        yield.finish()
        expiry?.cancel()
        listener.close()
        secrets = nil
        for stranger in strangers { stranger.close() }
        joiner?.close()
    }
}

extension PairingError {
    /// The reason that the other side is told; nil if it knows.
    var reason: PairingEnd? {
        switch self {
        case .malformed: .malformed
        case .version: .version
        case .timedOut: .time
        case .ended, .disconnected: nil
        }
    }
}
