import BatonAccount
import BatonEventLoop
import BatonMessages
import BatonProtocol
import BatonTLS
import BatonTestSupport
import BatonTransport
import Foundation
import Logging
import SystemPackage
import Testing

@testable import BatonNode

/// What other devices can make a running node spend, each bound reached over real connections.
@Suite("Limits of connections", .timeLimit(.minutes(2)))
struct PeerLimitsTests {
    /// A node of the first device of an account, and the others as its peers.
    private final class Scene: Sendable {
        let account: TestAccount
        private let node: Node
        private let port: UInt16
        private let loop = EventLoop(name: "peers")

        init(devices: Int, _ limits: PeerLimits) async throws {
            account = try TestAccount(devices: devices)
            let home = try Home(environment: ["BATON_HOME": account.root.appending("node").string])
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
        var limits = PeerLimits()
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
        var limits = PeerLimits()
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
        var limits = PeerLimits()
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
}
