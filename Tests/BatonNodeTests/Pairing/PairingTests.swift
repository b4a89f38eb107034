// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonEventLoop
import BatonProtocol
import BatonTestSupport
import Testing

@testable import BatonNode

/// An inviter and joiners over real sockets.
@Suite("Pairing over loopback", .timeLimit(.minutes(3)))
struct PairingTests {
    private let inviting: TestAccount
    private let server: InvitationServer
    private let address: SocketAddress
    private let loop = EventLoop(name: "joiner")

    init() async throws {
        inviting = try TestAccount(devices: 1)
        server = try InvitationServer(
            for: inviting.devices[0].account, with: AccountSecrets(inviting.key))
        address = .ip(.ipv4Loopback, port: server.port)
        await server.start()
    }

    /// Joins, and tells the digits to `type`.
    private func join(_ type: @escaping @Sendable (String) -> Void) async throws -> Account {
        var joined: Account?
        try await PairingJoin(name: "desktop").run(at: [address], show: type) { joined = $0.account }
        return try #require(joined)
    }

    @Test("The right digits give a device a certificate, keys and the revocations, and not the account key")
    func joining() async throws {
        let (shown, digits) = AsyncStream<String>.makeStream()
        async let joined = join { digits.yield($0) }
        var device: DeviceID?
        for await event in server.events {
            switch event {
            case .asked:
                for await digits in shown {
                    await server.enter(digits)
                    break
                }
            case .right(let id): device = id
            case .joined(let name, let id): #expect(name == "desktop" && id == device)
            default: Issue.record("\(event)")
            }
        }
        let account = try await joined
        let first = inviting.devices[0].account
        #expect(account.id == first.id && account.identity.id == device && account.deviceName == "desktop")
        #expect(account.keys == first.keys && account.identity.id != first.identity.id)
        #expect(account.identity.authorityCertificate == first.identity.authorityCertificate)
        // The invitation is over: nobody listens, or a listener that closes takes the connection with it.
        await #expect(throws: (any Error).self) { try await join { _ in } }
    }

    @Test("Three wrong entries end the invitation for the joiner too")
    func wrongDigits() async throws {
        let attempt = Task { try await join { _ in } }
        var left: [Int] = []
        var end: PairingEnd?
        for await event in server.events {
            switch event {
            case .asked: await server.enter("x")
            case .wrong(let count):
                left.append(count)
                await server.enter("x")
            case .over(let reason): end = reason
            default: Issue.record("\(event)")
            }
        }
        #expect(left == [2, 1] && end == .digits)
        await #expect(throws: PairingError.ended(.digits)) { try await attempt.value }
    }

    @Test("A second joiner is told that the inviter is busy, and a joiner that was turned away learns it")
    func busy() async throws {
        let first = Task { try await join { _ in } }
        for await event in server.events {
            guard case .asked = event else { break }
            await #expect(throws: PairingError.ended(.busy)) { try await join { _ in } }
            await server.turnAway()
        }
        await #expect(throws: PairingError.ended(.turnedAway)) { try await first.value }
        await server.stop(.turnedAway)
    }

    @Test("Connections that say nothing, and such as say nonsense, do not keep a joiner out")
    func strangers() async throws {
        var silent: [Socket] = []
        for number in 0..<20 {
            let socket = try await Socket.connect(to: address, on: loop)
            let bytes: [UInt8] = number % 2 == 0 ? [0] : [0xff, 0xff, 4, 0]
            _ = try bytes.withUnsafeBytes { try socket.write($0) }
            silent.append(socket)
        }
        let attempt = Task { try await join { _ in } }
        for await event in server.events {
            guard case .asked = event else {
                Issue.record("\(event)")
                break
            }
            break
        }
        await server.stop(.turnedAway)
        await #expect(throws: PairingError.ended(.turnedAway)) { try await attempt.value }
        for socket in silent { socket.close() }
    }

    /// A connection of a joiner that has got its key.
    private func begin() async throws -> (socket: PairingSocket, open: PairingMessage, keys: PairingKeys) {
        let socket = PairingSocket(try await Socket.connect(to: address, on: ControlLoop.loop))
        await socket.start()
        let joiner = PairingJoiner(deviceKey: try NewDevice().publicKey)
        await socket.send(joiner.commit)
        let key = try await socket.receive([.key], within: .seconds(20))
        let (open, keys) = try joiner.receiveKey(key)
        return (socket, open, keys)
    }

    @Test("A joiner that stops half-way costs one try, and one that stops with the account in hand is named")
    func stopping() async throws {
        var events = server.events.makeAsyncIterator()
        let first = try await begin()
        await first.socket.close()
        guard case .lost(left: 2) = await events.next() else {
            Issue.record("the one that stopped after its commitment")
            return
        }
        let second = try await begin()
        await second.socket.send(second.open)
        guard case .asked = await events.next() else {
            Issue.record("nobody was asked")
            return
        }
        await second.socket.close()
        guard case .lost(left: 1) = await events.next() else {
            Issue.record("the one that stopped after its opening")
            return
        }
        let third = try await begin()
        await third.socket.send(third.open)
        guard case .asked = await events.next() else {
            Issue.record("nobody was asked")
            return
        }
        await server.enter(third.keys.digits)
        guard case .right(let device) = await events.next() else {
            Issue.record("the digits were right")
            return
        }
        _ = try await third.socket.receive([.welcome], within: .seconds(20))
        await third.socket.close()
        guard case .unconfirmed(device) = await events.next() else {
            Issue.record("the one that stopped after the hand-over")
            return
        }
        #expect(await events.next() == nil)
    }

    @Test("Joiners that come for a key and go end the invitation, and no other one comes in")
    func keyFlood() async throws {
        for _ in 0..<Invitation.maximumFailures { await (try await begin()).socket.close() }
        var ends = 0
        for await event in server.events {
            if case .over(.digits) = event { ends += 1 }
        }
        #expect(ends == 1)
        await #expect(throws: (any Error).self) { try await join { _ in } }
    }
}
