// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonCore
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

/// Other devices can make a running node spend only so much: each bound is reached over real connections.
@Suite("Limits of a node", .timeLimit(.minutes(5)))
struct NodeLimitsTests {
    /// A node of the first device of an account, and the others as its peers.
    private final class Scene: Sendable {
        let account: TestAccount
        private let node: Node
        private let port: UInt16
        private let gateNonce: [UInt8]
        /// The keys that the node's gate takes.
        private let keys: GenerationKeys
        private let localSocket: String
        private let loop = EventLoop(name: "peers")

        /// - Parameter revokes: whether the node has a revocation list that no other device knows.
        init(devices: Int, _ limits: NodeLimits, revokes: Bool = false) async throws {
            account = try TestAccount(devices: devices)
            if revokes {
                var own = account.devices[0].account
                _ = try own.revoke(
                    [try #require(DeviceID(bytes: [UInt8](repeating: 9, count: DeviceID.count)))],
                    with: AccountSecrets(account.key))
                try account.devices[0].store.save(stateOf: own)
                keys = own.currentKeys
            } else {
                keys = account.devices[0].account.currentKeys
            }
            let home = try Home(environment: ["BATON_HOME": account.root.appending("node").string])
            localSocket = home.socketPath
            // The node's home has the account in its state folder.
            let own = AccountStore.folder(in: home).string
            try FileManager.default.createDirectory(
                atPath: home.stateFolder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
            try FileManager.default.moveItem(atPath: account.devices[0].store.folder.string, toPath: own)
            var tuning = NodeTuning()
            tuning.limits = limits
            node = Node(home: home, tuning: tuning, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
            try await node.start()
            port = try #require(await node.port)
            gateNonce = try #require(await node.gateNonce)
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
            let name = GateToken.serverName(keys: keys, server: server.id, gateNonce: gateNonce)
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

        /// Whether the node has ended a connection without a byte.
        func wasSentAway(_ socket: Socket) async throws -> Bool {
            let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 16, alignment: 16)
            defer { buffer.deallocate() }
            var wasSentAway = false
            try await eventually("there is an answer or an end", within: .seconds(60)) {
                switch try? socket.read(into: buffer) {
                case .bytes: wasSentAway = false
                case .wouldBlock: return false
                case .endOfFile, nil: wasSentAway = true
                }
                return true
            }
            return wasSentAway
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
        limits.links.connectionsPerDevice = 2
        let scene = try await Scene(devices: 3, limits)
        var kept: [Connection] = []
        for _ in 0..<limits.links.connectionsPerDevice {
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
        limits.links.connections = 3
        let scene = try await Scene(devices: 5, limits)
        var kept: [Connection] = []
        for number in 1...limits.links.connections {
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

    @Test("So many connections in all, also when several come at once")
    func inAllAtOnce() async throws {
        var limits = NodeLimits()
        limits.links.connections = 2
        let scene = try await Scene(devices: 6, limits)
        let first = try await scene.connect(1)
        #expect(await scene.isServed(first))
        // All are let in while there is room, and show who they are while others do.
        var others: [Connection] = []
        for number in 2...5 { others.append(try await scene.connect(number)) }
        let served = await withTaskGroup(of: Bool.self) { group in
            for connection in others { group.addTask { await scene.isServed(connection) } }
            return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
        #expect(served == 1)
        for connection in others + [first] { await connection.close() }
        await scene.close()
    }

    /// How requests were refused that tasks have sent.
    private final class Refusals: Sendable {
        private let all = Lock<[HandoffError.Code]>([])

        var codes: [HandoffError.Code] { all.withLock { $0 } }

        func add(_ code: HandoffError.Code) { all.withLock { $0.append(code) } }
    }

    @Test("So many requests wait for devices that lack revocation lists, in all and of each")
    func waiters() async throws {
        var limits = NodeLimits()
        // They go on waiting for as long as this takes.
        limits.catchUpDeadline = .seconds(3600)
        let devices = StateExchange.waiterBound / StateExchange.waiterBoundPerDevice
        #expect(StateExchange.waiterBound == 64 && devices == 8)
        let scene = try await Scene(devices: devices + 2, limits, revokes: true)
        var connections: [Connection] = []
        for number in 1...devices + 1 {
            let connection = try await scene.connect(number)
            await connection.start()
            try await connection.ready()
            connections.append(connection)
        }
        let refusals = Refusals()
        var asking: [Task<Void, Never>] = []
        func ask(_ connection: Connection) {
            asking.append(
                Task { [refusals] in
                    do {
                        _ = try await connection.request(.activityList(.init()))
                    } catch {
                        refusals.add((error as? HandoffError)?.code ?? .internal)
                    }
                })
        }
        // One more than is its own of the first device, and as many as is theirs of the others but one.
        for _ in 0...StateExchange.waiterBoundPerDevice { ask(connections[0]) }
        try await eventually("one is refused") { refusals.codes == [.limitExceeded] }
        for connection in connections[1..<devices] {
            for _ in 0..<StateExchange.waiterBoundPerDevice { ask(connection) }
        }
        // The last device comes when all places are taken.
        try await eventually("there is no place in all", within: .seconds(60)) {
            let before = refusals.codes.count
            ask(connections[devices])
            try await Task.sleep(for: .milliseconds(100))
            return refusals.codes.count > before
        }
        #expect(refusals.codes.allSatisfy { $0 == .limitExceeded })
        for connection in connections { await connection.abort() }
        for task in asking { await task.value }
        await scene.close()
    }

    @Test("So many applications connected, and so many commands that watch")
    func applications() async throws {
        let limits = NodeLimits()
        let scene = try await Scene(devices: 1, limits)
        var connections: [Connection] = []
        for _ in 0..<limits.localConnections {
            let connection = try await scene.connectLocally()
            try await connection.ready()
            connections.append(connection)
        }
        #expect(connections.count == 144)
        // One more is closed unread.
        let late = try await scene.connectLocally()
        await #expect(throws: TransportError.self) { try await late.ready() }
        var watching: [BatonTransport.Stream] = []
        // The node itself watches as well, for what rules accept.
        for connection in connections.prefix(PeerDirectory.watcherBound - 1) {
            watching.append(try await connection.request(.activities(.with { $0.watch = true })).1)
        }
        #expect(watching.count == 31)
        let last = try #require(connections.last)
        let error = await #expect(throws: HandoffError.self) {
            _ = try await last.request(.activities(.with { $0.watch = true }))
        }
        #expect(error?.code == .limitExceeded)
        await watching.removeLast().reset(.cancelled)
        try await eventually("another may watch") {
            (try? await last.request(.activities(.with { $0.watch = true }))) != nil
        }
        await connections.removeFirst().close()
        try await eventually("there is room for another application") {
            let next = try await scene.connectLocally()
            let isServed = (try? await next.ready()) != nil
            await next.close()
            return isServed
        }
        for connection in connections { await connection.abort() }
        await scene.close()
    }

    @Test("So many handshakes from one address, and for so long")
    func handshakes() async throws {
        var limits = NodeLimits()
        limits.links.handshakesPerAddress = 2
        limits.handshakeDeadline = .seconds(3)
        let scene = try await Scene(devices: 2, limits)
        // The first message of a client that says no more: the node has answered it and waits.
        var silent: [Socket] = []
        #expect(NodeLimits().links.handshakesPerAddress == 4)
        for _ in 0..<limits.links.handshakesPerAddress { silent.append(try await scene.hello(1)) }
        for socket in silent { #expect(try await !scene.wasSentAway(socket)) }
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
        limits.links.handshakes = 3
        limits.links.handshakesPerAddress = 16
        limits.handshakeDeadline = .seconds(3)
        let scene = try await Scene(devices: 2, limits)
        var silent: [Socket] = []
        #expect(NodeLimits().links.handshakes == 16)
        for _ in 0..<limits.links.handshakes { silent.append(try await scene.hello(1)) }
        for socket in silent { #expect(try await !scene.wasSentAway(socket)) }
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
        limits.links.idleLife = .milliseconds(400)
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
        #expect(holder.isOpen)
        let (_, release) = try await holder.request(.release(.with { $0.claimID = held.claimID }))
        await release.finish()
        await holder.ended()
        await offer.finish()
        await application.close()
        await scene.close()
    }

    /// How much each connection may hold, once it has its share.
    private func shares(of connections: [Connection], above floor: Int) async throws -> [UInt64] {
        func allowed() async -> [UInt64] {
            var all: [UInt64] = []
            for connection in connections { all.append(await connection.allowedBytes) }
            return all
        }
        try await eventually("the shares are granted") { await allowed().allSatisfy { $0 > floor } }
        return await allowed()
    }

    @Test("Applications together are allowed no more than their part of the budget")
    func local() async throws {
        var limits = NodeLimits()
        let floor = 64 << 10
        limits.buffers.applications.reserved = limits.localConnections * floor
        limits.buffers.applications.ceiling = limits.localConnections * floor + (1 << 20)
        let scene = try await Scene(devices: 1, limits)
        var connections: [Connection] = []
        for _ in 0..<8 {
            let connection = try await scene.connectLocally()
            let (_, stream) = try await connection.request(.status(.init()))
            await stream.finish()
            connections.append(connection)
        }
        // Half of what is left above the floors each, the first one 512 KiB of 1 MiB.
        let all = try await shares(of: connections, above: floor)
        #expect(all.first == 512 << 10 && all.last.map { $0 < 128 << 10 } == true, "\(all)")
        #expect(all.reduce(0, +) <= UInt64(8 * floor + (1 << 20)), "\(all)")
        for connection in connections { await connection.close() }
        await scene.close()
    }

    /// Limits whose common bytes one device's connections take: 1 MiB, of which a class may get all.
    private func scarce() -> NodeLimits {
        var limits = NodeLimits()
        limits.buffers.devices = .init(reserved: 48 * (64 << 10), ceiling: 48 * (64 << 10) + (1 << 20))
        limits.buffers.applications = .init(
            reserved: limits.localConnections * (32 << 10), ceiling: limits.localConnections * (32 << 10) + (1 << 20))
        limits.buffers.documents = .init(reserved: 2 << 20, ceiling: 3 << 20)
        limits.buffers.previews = .init(reserved: 2 << 20, ceiling: 2 << 20)
        limits.buffers.reads = .init(reserved: 2 << 20, ceiling: 2 << 20)
        limits.buffers.streams = .init(reserved: 256 << 10, ceiling: 1 << 20)
        limits.buffers.deviceRequests = .init(reserved: 48 * (8 << 10), ceiling: 48 * (8 << 10))
        limits.buffers.applicationRequests = .init(
            reserved: limits.localConnections * (8 << 10), ceiling: limits.localConnections * (8 << 10))
        limits.buffers.descriptions = .init(reserved: 256 << 10, ceiling: 256 << 10)
        limits.buffers.olderCopies = .init(reserved: 0, ceiling: 0)
        let parts = [
            limits.buffers.devices, limits.buffers.applications, limits.buffers.deviceRequests,
            limits.buffers.applicationRequests, limits.buffers.documents, limits.buffers.previews,
            limits.buffers.reads, limits.buffers.descriptions, limits.buffers.streams,
        ]
        limits.buffers.total = parts.reduce(1 << 20) { $0 + $1.reserved }
        return limits
    }

    @Test("A device that fills its share stops no application, and applications that do stop no device")
    func starvation() async throws {
        let scene = try await Scene(devices: 3, scarce())
        var hogs: [Connection] = []
        for _ in 0..<NodeLimits().links.connectionsPerDevice {
            let connection = try await scene.connect(1)
            #expect(await scene.isServed(connection))
            hogs.append(connection)
        }
        let taken = try await shares(of: hogs, above: 64 << 10).reduce(0, +)
        #expect(taken > 4 * (64 << 10) + (900 << 10) && taken <= 4 * (64 << 10) + (1 << 20), "\(taken)")
        // Another device and an application have what is theirs for certain, and are served.
        let (other, application) = (try await scene.connect(2), try await scene.connectLocally())
        #expect(await scene.isServed(other))
        let (_, status) = try await application.request(.status(.init()))
        await status.finish()
        #expect(await other.allowedBytes >= 64 << 10)
        #expect(await application.allowedBytes >= 32 << 10)
        for connection in hogs + [other, application] { await connection.close() }
        try await eventually("what the device held is there again") {
            let connection = try await scene.connect(2)
            let isServed = await scene.isServed(connection)
            let allowed = await connection.allowedBytes
            await connection.close()
            return isServed && allowed >= 512 << 10
        }

        // The reverse.
        var applications: [Connection] = []
        for _ in 0..<8 {
            let connection = try await scene.connectLocally()
            let (_, stream) = try await connection.request(.status(.init()))
            await stream.finish()
            applications.append(connection)
        }
        #expect(try await shares(of: applications, above: 32 << 10).reduce(0, +) > 8 * (32 << 10) + (900 << 10))
        let device = try await scene.connect(1)
        #expect(await scene.isServed(device))
        #expect(await device.allowedBytes >= 64 << 10)
        for connection in applications + [device] { await connection.close() }
        await scene.close()
    }
}

extension Connection {
    /// How many bytes the other side has allowed so far.
    fileprivate var allowedBytes: UInt64 { session.sendWindow.limit }
}
