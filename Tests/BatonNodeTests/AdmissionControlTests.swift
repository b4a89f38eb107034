// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonEventLoop
import BatonProtocol
import BatonTLS
import BatonTestSupport
import BatonTransport
import Foundation
import Testing

@testable import BatonNode

/// The door of a node, with real sockets and real TLS.
@Suite("The door", .timeLimit(.minutes(3)))
struct AdmissionControlTests {
    private let account: TestAccount
    /// Leaves all to TLS.
    private let door: Door
    /// Looks at most first messages before TLS does, as every node's.
    private let watchful: Door
    private let nonce = [UInt8](repeating: 7, count: GateToken.nonceCount)

    init() throws {
        account = try TestAccount()
        let current = CurrentAccount(account.devices[0].account)
        let gate = GateKeeper(of: account.devices[0].id, crowded: {})
        gate.beginPeriod(nonce: nonce, keys: account.devices[0].account.currentKeys)
        // Each connection that is counted has to stay until then, however busy the machine is.
        var limits = NodeLimits()
        limits.admissionDeadline = .seconds(3600)
        door = try Door(current, Self.context(account.devices[0]) { gate.admit($0) }, limits)
        watchful = try Door(current, Self.context(account.devices[0]) { _ in nil }, limits, gate: gate)
    }

    /// A listener with the door behind it, and who has come in.
    private final class Door: Sendable {
        private let listener: Listener
        let admissionControl: AdmissionControl
        let admitted: AsyncStream<Connection>

        init(
            _ account: CurrentAccount, _ context: TLSContext, _ limits: NodeLimits = NodeLimits(),
            gate: GateKeeper? = nil
        ) throws {
            let (admitted, continuation) = AsyncStream<Connection>.makeStream()
            self.admitted = admitted
            let admissionControl = AdmissionControl(
                account, context: context, gate: gate, limits: limits,
                over: EventLoopGroup(name: "door", count: 1)
            ) {
                continuation.yield($0)
            }
            self.admissionControl = admissionControl
            listener = try Listener.onAllAddresses(port: 0, on: ControlLoop.loop)
            listener.start { socket in ControlLoop.assumeIsolated { admissionControl.receive(socket) } }
        }

        deinit { listener.close() }

        func connect() async throws -> Socket {
            let port = try #require(listener.localAddress.port)
            return try await Socket.connect(
                to: .ip(.ipv4Loopback, port: port), on: ControlLoop.loop, timeout: .seconds(30))
        }
    }

    private static func context(_ device: TestAccount.Device, gate: TLSContext.Gate? = nil) throws -> TLSContext {
        try TLSContext(identity: TLSIdentity(device.account.identity), gate: gate)
    }

    /// The first message of the other device.
    private func hello(_ serverName: String) throws -> [UInt8] {
        let session = try TLSSession(
            client: Self.context(account.devices[1]), serverName: serverName,
            expectedPeer: account.devices[0].id.description)
        _ = try session.handshake()
        return [UInt8](unsafeUninitializedCapacity: 4096) { buffer, count in
            count = session.nextOutput(into: UnsafeMutableRawBufferPointer(buffer))
        }
    }

    private var token: String {
        GateToken.serverName(
            keys: account.devices[1].account.currentKeys, server: account.devices[0].id, gateNonce: nonce)
    }

    private func send(_ bytes: [UInt8], on socket: Socket) throws {
        #expect(try bytes.withUnsafeBytes { try socket.write($0) } == bytes.count)
    }

    /// Waits until the other side has ended the connection, and returns what it sent.
    private static func answer(on socket: Socket) async throws -> Int {
        var count = 0
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 4096, alignment: 16)
        defer { buffer.deallocate() }
        try await eventually("the connection ends", within: .seconds(60)) {
            while true {
                switch try? socket.read(into: buffer) {
                case .bytes(let more): count += more
                case .wouldBlock: return false
                case .endOfFile, nil: return true
                }
            }
        }
        return count
    }

    @Test("A device of the account comes in, its first message whole or in crumbs")
    func admitted() async throws {
        for (door, isWhole) in [(door, true), (door, false), (watchful, true), (watchful, false)] {
            var arrivals = door.admitted.makeAsyncIterator()
            let socket = try await door.connect()
            let hello = try hello(token)
            if isWhole {
                try send(hello, on: socket)
            } else {
                for byte in hello { try send([byte], on: socket) }
            }
            let connection = try #require(await arrivals.next())
            await connection.start()
            let scratch = UnsafeMutableRawBufferPointer.allocate(byteCount: 16, alignment: 16)
            defer { scratch.deallocate() }
            try await eventually("it is answered", within: .seconds(60)) {
                if case .bytes? = try? socket.read(into: scratch) { true } else { false }
            }
            try await eventually("nobody waits", within: .seconds(60)) { await door.admissionControl.waitingCount == 0 }
            // However little comes now is heard at once: this is the header of no record.
            try send([0, 0, 0, 0, 0], on: socket)
            _ = try await Self.answer(on: socket)
            socket.close()
        }
    }

    @Test("A device of the account that speaks another protocol learns so by an alert")
    func alerted() async throws {
        for door in [door, watchful] {
            // The last byte of `baton/1`, which stands in the clear.
            var hello = try hello(token)
            let name = Array("baton/1".utf8)
            let start = try #require(hello.indices.first { hello[$0...].starts(with: name) })
            hello[start + name.count - 1] = UInt8(ascii: "2")
            let socket = try await door.connect()
            try send(hello, on: socket)
            // A record of two bytes: `no_application_protocol`.
            #expect(try await Self.answer(on: socket) == 7)
            socket.close()
        }
    }

    @Test("A stranger is closed without a byte, and so is a token that was used")
    func refused() async throws {
        for door in [door, watchful] { try await refused(at: door) }
    }

    private func refused(at door: Door) async throws {
        let used = token
        let hello = try hello(used)
        let first = try await door.connect()
        try send(hello, on: first)
        var arrivals = door.admitted.makeAsyncIterator()
        _ = await arrivals.next()
        for message in [
            hello, try self.hello(used), try self.hello("example.org"), Array("GET / HTTP/1.1\r\n\r\n".utf8),
            [UInt8](repeating: 0, count: 20_000), try self.hello(String(repeating: "a", count: 52) + GateToken.suffix),
            try self.hello("x" + token),
        ] {
            let socket = try await door.connect()
            try send(message, on: socket)
            #expect(try await Self.answer(on: socket) == 0)
        }
        // The last one sees its connection closed a moment before it is counted no more.
        try await eventually("nobody waits", within: .seconds(60)) { await door.admissionControl.waitingCount == 0 }
    }

    @Test("So many bytes of a first message are waited for, and with one more it is too long")
    func bytes() async throws {
        // A record of the greatest length, which with its header is longer than what is read.
        let start: [UInt8] = [22, 3, 1, 0x40, 0, 1, 0, 0x3F, 0xFC]
        for door in [door, watchful] {
            let socket = try await door.connect()
            let rest = NodeLimits().firstMessageBytes - 1 - start.count
            #expect(NodeLimits().firstMessageBytes == 16 << 10)
            try send(start + [UInt8](repeating: 0, count: rest), on: socket)
            try await eventually("it waits", within: .seconds(60)) { await door.admissionControl.waitingCount == 1 }
            // Another one has come and gone meanwhile, which takes the door at least as long as reading on would.
            let other = try await door.connect()
            try send(Array("GET /".utf8), on: other)
            #expect(try await Self.answer(on: other) == 0)
            #expect(await door.admissionControl.waitingCount == 1)
            try send([0], on: socket)
            #expect(try await Self.answer(on: socket) == 0)
            try await eventually("nobody waits", within: .seconds(60)) { await door.admissionControl.waitingCount == 0 }
        }
    }

    @Test("An address that has used up its tokens is sent away, and nothing of that is TLS's")
    func perAddress() async throws {
        let current = CurrentAccount(account.devices[0].account)
        let gate = GateKeeper(of: account.devices[0].id, crowded: { Issue.record("another period was asked for") })
        gate.beginPeriod(nonce: nonce, keys: account.devices[0].account.currentKeys)
        var limits = NodeLimits()
        limits.admissionDeadline = .seconds(3600)
        let door = try Door(current, Self.context(account.devices[0]) { _ in nil }, limits, gate: gate)
        var arrivals = door.admitted.makeAsyncIterator()
        let socket = try await door.connect()
        try send(try hello(token), on: socket)
        let first = try #require(await arrivals.next())
        let address = try #require(first.remoteAddress.ipAddress)
        for _ in 1..<Gate.tokenBoundPerOrigin { #expect(gate.admit(token, from: address) != nil) }
        let late = try await door.connect()
        try send(try hello(token), on: late)
        #expect(try await Self.answer(on: late) == 0)
        #expect(gate.admit(token, from: IPAddress("192.0.2.1")) != nil)
        await first.close()
    }

    @Test("Those who say half of it wait, in a bounded number for each address and for a bounded time")
    func bounded() async throws {
        let half = Array(try hello(token).prefix(40))
        var waiting: [Socket] = []
        for number in 1...NodeLimits().pendingConnectionsPerAddress {
            let socket = try await door.connect()
            try send(half, on: socket)
            waiting.append(socket)
            try await eventually("it waits", within: .seconds(60)) {
                await door.admissionControl.waitingCount == number
            }
        }
        let oneMore = try await door.connect()
        try send(half, on: oneMore)
        #expect(try await Self.answer(on: oneMore) == 0)
        #expect(await door.admissionControl.waitingCount == NodeLimits().pendingConnectionsPerAddress)
        waiting.removeFirst().close()
        try await eventually("one has gone", within: .seconds(60)) {
            await door.admissionControl.waitingCount == NodeLimits().pendingConnectionsPerAddress - 1
        }
        await door.admissionControl.close()

        var limits = NodeLimits()
        #expect(limits.admissionDeadline == .seconds(5))
        limits.admissionDeadline = .milliseconds(200)
        let brief = try Door(
            CurrentAccount(account.devices[0].account), Self.context(account.devices[0]) { _ in 0 }, limits)
        let socket = try await brief.connect()
        try send(half, on: socket)
        #expect(try await Self.answer(on: socket) == 0)
        try await eventually("nobody waits", within: .seconds(60)) { await brief.admissionControl.waitingCount == 0 }
    }

    @Test("Each of those who wait has all of its time and no more, whoever came before and whoever has gone")
    func deadlines() async throws {
        var limits = NodeLimits()
        limits.admissionDeadline = .milliseconds(400)
        limits.pendingConnectionsPerAddress = 16
        let door = try Door(
            CurrentAccount(account.devices[0].account), Self.context(account.devices[0]) { _ in 0 }, limits)
        let half = Array(try hello(token).prefix(40))
        let clock = ContinuousClock()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 1...6 {
                let began = clock.now
                let socket = try await door.connect()
                try send(half, on: socket)
                // The first, whose time it is that is looked at next, and one in the middle do not stay.
                if number % 3 == 1 {
                    try await eventually("it waits, or its time is over", within: .seconds(60)) {
                        await door.admissionControl.waitingCount > 0 || clock.now - began > limits.admissionDeadline
                    }
                    socket.close()
                    continue
                }
                group.addTask { [limits] in
                    let count = try await Self.answer(on: socket)
                    #expect(count == 0)
                    #expect(clock.now - began >= limits.admissionDeadline)
                }
                // All come before it is looked for the first time who has been here for too long.
                try await eventually("the next one comes a while later", within: .seconds(60)) {
                    clock.now - began > limits.admissionDeadline / 8
                }
            }
            try await group.waitForAll()
        }
        try await eventually("nobody waits", within: .seconds(60)) { await door.admissionControl.waitingCount == 0 }
    }

    @Test("Those who say half of it are bounded in all as well")
    func boundedInAll() async throws {
        var limits = NodeLimits()
        limits.pendingConnections = 3
        limits.pendingConnectionsPerAddress = 16
        limits.admissionDeadline = .seconds(3600)
        let door = try Door(
            CurrentAccount(account.devices[0].account), Self.context(account.devices[0]) { _ in 0 }, limits)
        let half = Array(try hello(token).prefix(40))
        var waiting: [Socket] = []
        for number in 1...limits.pendingConnections {
            let socket = try await door.connect()
            try send(half, on: socket)
            waiting.append(socket)
            try await eventually("it waits", within: .seconds(60)) {
                await door.admissionControl.waitingCount == number
            }
        }
        let oneMore = try await door.connect()
        try send(half, on: oneMore)
        #expect(try await Self.answer(on: oneMore) == 0)
        #expect(await door.admissionControl.waitingCount == limits.pendingConnections)
        waiting.removeFirst().close()
        try await eventually("one has gone", within: .seconds(60)) {
            await door.admissionControl.waitingCount == limits.pendingConnections - 1
        }
        let next = try await door.connect()
        try send(half, on: next)
        try await eventually("another waits", within: .seconds(60)) {
            await door.admissionControl.waitingCount == limits.pendingConnections
        }
        await door.admissionControl.close()
    }

    @Test("A door that is closed keeps nobody waiting")
    func closed() async throws {
        let socket = try await door.connect()
        try send(Array(try hello(token).prefix(40)), on: socket)
        try await eventually("it waits", within: .seconds(60)) { await door.admissionControl.waitingCount == 1 }
        await door.admissionControl.close()
        #expect(try await Self.answer(on: socket) == 0)
        try await eventually("nobody waits", within: .seconds(60)) { await door.admissionControl.waitingCount == 0 }
    }
}
