// SPDX-License-Identifier: Apache-2.0

package import BatonAccount
package import BatonEventLoop
import BatonMessages
import BatonProtocol
import SwiftProtobuf

/// An invitation on the network. It listens for joiners, and hands the account over to the one whose digits the user
/// types.
///
/// It asks about one joiner at a time. Others are told that it is busy.
@ControlLoop
package final class InvitationServer {
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

    /// The events, at most one for each call and each message. The user answers ``Invitation/Event/asked`` with
    /// ``enter(_:)`` or ``turnAway()``.
    package nonisolated let events: AsyncStream<Invitation.Event>
    package nonisolated let port: UInt16
    /// Where joiners reach this machine, the likeliest first.
    package nonisolated let addresses: [SocketAddress]

    private let account: Account
    private var secrets: AccountSecrets?
    private let listener: Listener
    private let yield: AsyncStream<Invitation.Event>.Continuation
    private var invitation = Invitation()
    private var strangers: [PairingSocket] = []
    private var joiner: PairingSocket?
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
        let event = invitation.enter(digits)
        if let (deviceKey, keys) = invitation.recipient { handOver(to: deviceKey, keys) }
        tell(event)
        if case .right? = event { return true }
        return false
    }

    /// Turns the joiner away. That counts as a failure: see ``Invitation/maximumFailures``.
    package func turnAway() {
        joiner?.close(saying: .turnedAway)
    }

    /// Ends the invitation. Idempotent.
    package func stop(_ reason: PairingEnd) {
        tell(invitation.stop(reason))
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
            let key = try invitation.begin(commit)
            joiner = socket
            socket.send(key)
        } catch {
            return socket.close(saying: error.reason)
        }
        do {
            tell(try invitation.receive(try await socket.receive([.open], within: Self.openingTime)))
            // It comes when the user has typed the digits. The end of the invitation closes the socket.
            let done = try await socket.receive([.done], within: Invitation.lifetime + Self.joiningTime)
            let joined = try invitation.receive(done)
            socket.close()
            tell(joined)
        } catch {
            socket.close(saying: error.reason)
            tell(invitation.lose())
        }
    }

    private func firstMessage(of stranger: PairingSocket) async throws(PairingError) -> PairingMessage {
        defer { strangers.removeAll { $0 === stranger } }
        return try await stranger.receive([.commit], within: Self.firstMessageTime)
    }

    private func handOver(to deviceKey: [UInt8], _ keys: PairingKeys) {
        guard let secrets else { return }
        self.secrets = nil
        do {
            let content =
                try WireHandOver(account, secrets, to: deviceKey, wrappedBy: keys.wrapping).serializedBytes() as [UInt8]
            joiner?.send(PairingMessage(.welcome, try keys.seal(content, .welcome)))
            end = max(end, .now + Self.joiningTime)
            expiry?.schedule(after: ContinuousClock.now.duration(to: end))
        } catch {
            joiner?.close(saying: .turnedAway)
            tell(.failed("\(error)"))
        }
    }

    private func tell(_ event: Invitation.Event?) {
        guard let event else { return }
        yield.yield(event)
        switch event {
        case .asked, .wrong, .right: return
        case .lost: joiner = nil
        case .over(let reason):
            joiner?.close(saying: reason)
            finish()
        case .joined, .unconfirmed, .failed: finish()
        }
    }

    private func finish() {
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
