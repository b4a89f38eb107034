import BatonAccount
import BatonEventLoop
import BatonMessages
import BatonTLS
import BatonTestSupport
import Foundation
import Logging
import SwiftProtobuf
import SystemPackage
import Testing

@testable import BatonNode
@testable import BatonProtocol
@testable import BatonTransport

/// What other devices can make a running node spend, each bound reached over real connections.
@Suite("Limits of a node", .timeLimit(.minutes(2)))
struct NodeLimitsTests {
    /// A node of the first device of an account, and the others as its peers.
    private final class Scene: Sendable {
        let account: TestAccount
        private let node: Node
        private let port: UInt16
        private let localSocket: String
        private let loop = EventLoop(name: "peers")

        init(devices: Int, _ limits: NodeLimits) async throws {
            account = try TestAccount(devices: devices)
            let home = try Home(environment: ["BATON_HOME": account.root.appending("node").string])
            localSocket = home.socketPath
            // The node's home has the account in its state folder.
            let own = AccountStore.folder(in: home).string
            try FileManager.default.createDirectory(
                atPath: home.stateFolder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
            try FileManager.default.moveItem(atPath: account.devices[0].store.folder.string, toPath: own)
            var seams = NodeSeams()
            seams.limits = limits
            node = Node(home: home, seams: seams, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
            try await node.start()
            port = try #require(await node.port)
        }

        func close() async { await node.stop() }

        private func socket() async throws -> Socket {
            try await Socket.connect(to: .ip(.ipv4Loopback, port: port), on: loop, timeout: .seconds(30))
        }

        /// Connects as an application does.
        func connectLocally() async throws -> Connection {
            try await Connection.connect(toLocalSocket: localSocket, on: loop)
        }

        /// A device's end of TLS, with a token for the gate.
        private func session(_ number: Int) throws -> TLSSession {
            let (device, server) = (account.devices[number], account.devices[0])
            let name = GateToken.serverName(
                keys: device.account.currentKeys, server: server.id, unixTime: UInt64(Date().timeIntervalSince1970))
            return try TLSSession(
                client: TLSContext(identity: TLSIdentity(device.account.identity)), serverName: name,
                expectedPeer: server.id.description)
        }

        /// Connects as a device does.
        func connect(_ number: Int) async throws -> Connection {
            let socket = try await socket()
            return Connection(
                socket: socket, channel: TLSChannel(try session(number), isClient: true), role: .dialer, on: loop)
        }

        /// Connects, says the first message, and nothing more.
        func hello(_ number: Int) async throws -> Socket {
            let (socket, session) = (try await socket(), try session(number))
            _ = try session.handshake()
            let message = [UInt8](unsafeUninitializedCapacity: 4096) { buffer, count in
                count = session.nextOutput(into: UnsafeMutableRawBufferPointer(buffer))
            }
            #expect(try message.withUnsafeBytes { try socket.write($0) } == message.count)
            return socket
        }

        /// Whether the node serves the connection: what it closes as one too many ends without an answer.
        func isServed(_ connection: Connection) async -> Bool {
            await connection.start()
            do {
                let (_, stream) = try await connection.request(.activityList(.init()))
                await stream.finish()
                return true
            } catch {
                return false
            }
        }
    }

    @Test("So many connections with one device")
    func perDevice() async throws {
        var limits = NodeLimits()
        limits.connectionsPerDevice = 2
        let scene = try await Scene(devices: 3, limits)
        var kept: [Connection] = []
        for _ in 0..<limits.connectionsPerDevice {
            let connection = try await scene.connect(1)
            #expect(await scene.isServed(connection))
            kept.append(connection)
        }
        #expect(await !scene.isServed(try await scene.connect(1)))
        // Another device is served, and the same one again when it has closed one of its own.
        #expect(await scene.isServed(try await scene.connect(2)))
        await kept.removeLast().close()
        try await eventually("there is room again") { await scene.isServed(try await scene.connect(1)) }
        for connection in kept { await connection.close() }
        await scene.close()
    }

    @Test("So many connections in all")
    func inAll() async throws {
        var limits = NodeLimits()
        limits.connections = 3
        let scene = try await Scene(devices: 5, limits)
        var kept: [Connection] = []
        for number in 1...limits.connections {
            let connection = try await scene.connect(number)
            #expect(await scene.isServed(connection))
            kept.append(connection)
        }
        #expect(await !scene.isServed(try await scene.connect(4)))
        await kept.removeLast().close()
        try await eventually("there is room again") { await scene.isServed(try await scene.connect(4)) }
        for connection in kept { await connection.close() }
        await scene.close()
    }

    @Test("So many handshakes from one address, and for so long")
    func handshakes() async throws {
        var limits = NodeLimits()
        limits.handshakesPerAddress = 2
        limits.handshakeDeadline = .seconds(3)
        let scene = try await Scene(devices: 2, limits)
        // The first message of a client that says no more: the node has answered it and waits.
        var silent: [Socket] = []
        for _ in 0..<limits.handshakesPerAddress { silent.append(try await scene.hello(1)) }
        try await eventually("one more is not served") { await !scene.isServed(try await scene.connect(1)) }
        // Until the silent ones have had their time.
        try await eventually("there is room again", within: .seconds(60)) {
            await scene.isServed(try await scene.connect(1))
        }
        withExtendedLifetime(silent) {}
        await scene.close()
    }

    @Test("So many handshakes in all")
    func handshakesInAll() async throws {
        var limits = NodeLimits()
        limits.handshakes = 3
        limits.handshakesPerAddress = 16
        limits.handshakeDeadline = .seconds(3)
        let scene = try await Scene(devices: 2, limits)
        var silent: [Socket] = []
        for _ in 0..<limits.handshakes { silent.append(try await scene.hello(1)) }
        try await eventually("one more is not served") { await !scene.isServed(try await scene.connect(1)) }
        try await eventually("there is room again", within: .seconds(60)) {
            await scene.isServed(try await scene.connect(1))
        }
        withExtendedLifetime(silent) {}
        await scene.close()
    }

    @Test("A connection that nobody uses is closed, and one of a device that holds a claim is not")
    func idleLife() async throws {
        var limits = NodeLimits()
        limits.idleLife = .milliseconds(400)
        let scene = try await Scene(devices: 3, limits)
        let application = try await scene.connectLocally()
        let (answer, offer) = try await application.request(.offer(.with { $0.type = "org.example.note" }))
        guard case .offer(let offered) = answer else {
            Issue.record("it was not offered: \(answer)")
            return
        }

        let holder = try await scene.connect(1)
        await holder.start()
        let (payload, stream) = try await holder.request(.payload(.with { $0.activityID = offered.activityID }))
        guard case .payload(let held) = payload else {
            Issue.record("there is no payload: \(payload)")
            return
        }
        await stream.finish()
        // The other comes later: if time alone counted, the holder's would go first.
        let idle = try await scene.connect(2)
        #expect(await scene.isServed(idle))
        await idle.ended()
        #expect(await holder.isOpen)
        let (_, release) = try await holder.request(.release(.with { $0.claimID = held.claimID }))
        await release.finish()
        await holder.ended()
        await offer.finish()
        await application.close()
        await scene.close()
    }

    @Test("Applications together are allowed no more than their budget")
    func local() async throws {
        var limits = NodeLimits()
        limits.receivedLocallyFloor = 64 << 10
        limits.receivedLocally = limits.localConnections * limits.receivedLocallyFloor + (1 << 20)
        let scene = try await Scene(devices: 1, limits)
        var connections: [Connection] = []
        for _ in 0..<8 {
            let connection = try await scene.connectLocally()
            let (_, stream) = try await connection.request(.status(.init()))
            await stream.finish()
            connections.append(connection)
        }
        func allowed() async -> [UInt64] {
            var all: [UInt64] = []
            for connection in connections { all.append(await connection.allowedBytes) }
            return all
        }
        // Half of what is left above the floors each, the first one 512 KiB of 1 MiB.
        try await eventually("the shares are granted") { await allowed().allSatisfy { $0 > 64 << 10 } }
        let all = await allowed()
        #expect(all.first == 512 << 10 && all.last.map { $0 < 128 << 10 } == true, "\(all)")
        #expect(all.reduce(0, +) <= UInt64(8 * limits.receivedLocallyFloor + (1 << 20)), "\(all)")
        for connection in connections { await connection.close() }
        await scene.close()
    }

    @Test("What is kept for all fits what is documented, and every connection has its floor of it")
    func documented() {
        let limits = NodeLimits()
        #expect(limits.received + limits.receivedLocally + limits.documentBuffers == 120 << 20)
        #expect((limits.connections + limits.handshakes) * ReceiveBudget.defaultFloor <= limits.received)
        #expect(limits.localConnections * limits.receivedLocallyFloor <= limits.receivedLocally)
    }
}

extension Connection {
    /// How many bytes the other side has allowed so far.
    fileprivate var allowedBytes: UInt64 { session.sendWindow.limit }
}
