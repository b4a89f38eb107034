// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonCore
import BatonEventLoop
import BatonMessages
import BatonTLS
import BatonTestSupport
import Foundation
import Glibc
import SwiftProtobuf
import SystemPackage
import Testing

@testable import BatonNode
@testable import BatonProtocol
@testable import BatonTransport

/// The memory that ``BufferLimits`` allows beside the one budget. It is filled to its bounds in a node that is its own
/// process, and measured as the kernel sees it.
@Suite("Memory of a node", .serialized, .timeLimit(.minutes(5)))
struct NodeMemoryTests {
    /// A running node, the other devices of its account, and its user's programs.
    private final class Scene: Sendable {
        let account: TestAccount
        let loop = EventLoop(name: "devices")
        let localSocket: String
        private let node: HostedNode
        var port: UInt16 { node.port }

        init(devices: Int) async throws {
            account = try TestAccount(devices: devices)
            let home = account.root.appending("node").string
            let layout = try Home(environment: ["BATON_HOME": home])
            localSocket = layout.socketPath
            let own = AccountStore.folder(in: layout).string
            try FileManager.default.createDirectory(
                atPath: layout.stateFolder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
            try FileManager.default.moveItem(atPath: account.devices[0].store.folder.string, toPath: own)
            node = try await HostedNode(home: home)
        }

        /// Bytes of the node's memory that no file is behind.
        func memory() throws -> Int { try node.memory() }

        func close() { node.close() }

        /// Connects as a device does, and shows who it is.
        func connect(_ number: Int, limits: Limits = Limits()) async throws -> Connection {
            let (device, server) = (account.devices[number], account.devices[0])
            let name = GateToken.serverName(
                keys: server.account.currentKeys, server: server.id, gateNonce: node.gateNonce)
            let session = try TLSSession(
                client: TLSContext(identity: TLSIdentity(device.account.identity)), serverName: name,
                expectedPeer: server.id.description)
            let socket = try await Socket.connect(
                to: .ip(.ipv4Loopback, port: port), on: loop, timeout: .seconds(30))
            let connection = Connection(
                socket: socket, channel: TLSChannel(session, isClient: true), role: .dialer, limits: limits, on: loop)
            await connection.start()
            try await connection.ready()
            return connection
        }
    }

    /// The process.
    private final class HostedNode: Sendable {
        let port: UInt16
        let gateNonce: [UInt8]
        private let process: ChildProcess

        init(home: String) async throws {
            let process = try ChildProcess(
                [Lab.product("node-probe")],
                environment: ["BATON_HOME": home, "PATH": "/usr/bin:/bin", "AVAHI_COMPAT_NOWARN": "1"], output: .pipe,
                error: .null)
            self.process = process
            let line = await withCheckedContinuation { continuation in
                Thread.detachNewThread { continuation.resume(returning: process.output.availableData) }
            }
            let ready = try JSONSerialization.jsonObject(with: line) as? [String: Any]
            port = UInt16(try #require(ready?["port"] as? Int))
            gateNonce = try #require(ready?["gateNonce"] as? [Int]).map { UInt8($0) }
        }

        func close() {
            process.signal(SIGKILL)
            process.waitUntilExit()
        }

        func memory() throws -> Int {
            let status = try String(contentsOfFile: "/proc/\(process.processIdentifier)/status", encoding: .utf8)
            let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("RssAnon:") })
            return (Int(try #require(line.split(separator: " ").dropLast().last)) ?? 0) << 10
        }
    }

    /// A connection that has said something and stays; from one of this machine's many addresses for itself.
    private static func knock(at port: UInt16, from host: UInt32, saying bytes: [UInt8]) throws -> OwnedDescriptor {
        func address(_ host: UInt32, _ port: UInt16) -> sockaddr_in {
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = port.bigEndian
            address.sin_addr.s_addr = (0x7F00_0000 | host).bigEndian
            return address
        }
        func call(
            _ address: sockaddr_in, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32
        ) throws {
            let result = withUnsafePointer(to: address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
                }
            }
            try #require(result == 0, "\(String(cString: strerror(errno)))")
        }
        let number = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        let descriptor = OwnedDescriptor(takingOwnershipOf: number)
        try call(address(host, 0)) { bind(number, $0, $1) }
        try call(address(1, port)) { connect(number, $0, $1) }
        #expect(send(number, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count)
        return descriptor
    }

    /// As much as is read of a first message, without its last byte: one record, which a ClientHello fills.
    private static let half: [UInt8] = {
        let record = NodeLimits().firstMessageBytes - 5
        let message = record - 4
        let headers = [22, 3, 1, record >> 8, record & 0xFF, 1, 0, message >> 8, message & 0xFF]
        return headers.map { UInt8($0) } + [UInt8](repeating: 0, count: message - 1)
    }()

    @Test("Pending connections: 64, each with the most that it may send")
    func pendingConnections() async throws {
        let scene = try await Scene(devices: 2)
        let limits = NodeLimits()
        // Once for what is there from the first on.
        withExtendedLifetime(try Self.knock(at: scene.port, from: 200, saying: Self.half)) {}
        _ = try await scene.connect(1)
        let before = try scene.memory()
        var pending: [OwnedDescriptorBox] = []
        for number in 0..<limits.pendingConnections {
            let host = UInt32(2 + number / limits.pendingConnectionsPerAddress)
            pending.append(OwnedDescriptorBox(try Self.knock(at: scene.port, from: host, saying: Self.half)))
        }
        // One more is sent away, when all are inside.
        let late = OwnedDescriptorBox(try Self.knock(at: scene.port, from: 100, saying: Self.half))
        try await eventually("one more is sent away", within: .seconds(4)) { late.hasEnded }
        let growth = try scene.memory() - before
        #expect(pending.allSatisfy { !$0.hasEnded })
        print("a pending connection: \((growth / limits.pendingConnections) >> 10) KiB")
        #expect(growth <= limits.pendingConnections * (100 << 10), "\(growth)")
        scene.close()
    }

    @Test("Connections: 32, with as many streams as there is room for, of which nobody reads the answers")
    func connections() async throws {
        let scene = try await Scene(devices: 9)
        let limits = NodeLimits()
        let local = try await Connection.connect(toLocalSocket: scene.localSocket, on: scene.loop)
        let offers = try await offer(limits.offers, on: local) { $0.title = String(repeating: "t", count: 1000) }
        _ = try await scene.connect(1)
        let before = try scene.memory()
        var windows = Limits()
        // An answer goes no further than its first record.
        windows.initialStreamWindow = 1 << 10
        var kept: [Connection] = []
        for number in 0..<(limits.links.connections - 1) {
            kept.append(try await scene.connect(1 + number / limits.links.connectionsPerDevice, limits: windows))
        }
        let idle = try scene.memory() - before
        print("a connection: \((idle / kept.count) >> 10) KiB")
        let streams = try await withThrowingTaskGroup(of: [BatonTransport.Stream].self) { group in
            for connection in kept {
                group.addTask {
                    var streams: [BatonTransport.Stream] = []
                    do {
                        for _ in 0..<limits.session.openStreams {
                            streams.append(try await connection.request(.activityList(.init())).1)
                        }
                    } catch let error as HandoffError where error.code == .limitExceeded {
                        // The budget is used up: what it counts is what is measured here.
                    }
                    return streams
                }
            }
            return try await group.reduce(into: []) { $0 += $1 }
        }
        #expect(streams.count > kept.count)
        let growth = try scene.memory() - before
        print(
            "a connection with its share of \(streams.count) streams: \((growth / kept.count) >> 10) KiB,"
                + " \(growth >> 20) MiB in all")
        #expect(growth <= (kept.count << 20) + limits.buffers.deviceRequests.ceiling, "\(growth)")
        withExtendedLifetime((offers, streams)) {}
        for connection in kept { await connection.close() }
        scene.close()
    }

    @Test("Activities: 64, with user info of as many parts as there is room for")
    func activities() async throws {
        let scene = try await Scene(devices: 2)
        let limits = NodeLimits()
        let local = try await Connection.connect(toLocalSocket: scene.localSocket, on: scene.loop)
        let element = WireValue.with { $0.boolean = true }
        let first = try await offer(1, on: local) { $0.userInfo.entries["k"] = element }
        let before = try scene.memory()
        let offers = try await offer(limits.offers - 1, on: local) {
            $0.userInfo.entries["k"] = .with { $0.array.elements = Array(repeating: element, count: 12_000) }
        }
        let growth = try scene.memory() - before
        print("an activity: \((growth / offers.count) >> 10) KiB, \(growth >> 20) MiB in all")
        // The user info twice, as it came and as it is kept, and what belongs to an offer and its stream.
        #expect(growth <= limits.offers * (192 << 10), "\(growth)")
        withExtendedLifetime((first, offers)) {}
        await local.close()
        scene.close()
    }

    /// Offers so many activities on a connection.
    private func offer(
        _ count: Int, on connection: Connection, _ fill: (inout WireOfferRequest) -> Void
    ) async throws -> [BatonTransport.Stream] {
        var streams: [BatonTransport.Stream] = []
        for _ in 0..<count {
            var request = WireOfferRequest()
            request.type = "org.example.note"
            fill(&request)
            streams.append(try await connection.request(.offer(request)).1)
        }
        return streams
    }
}

/// A descriptor in an array.
private final class OwnedDescriptorBox: Sendable {
    private let descriptor: OwnedDescriptor

    init(_ descriptor: consuming OwnedDescriptor) {
        self.descriptor = descriptor
    }

    /// Whether the other side has ended the connection.
    var hasEnded: Bool {
        var byte: UInt8 = 0
        let count = recv(descriptor.rawValue, &byte, 1, Int32(MSG_DONTWAIT))
        return count == 0 || (count < 0 && errno != EAGAIN)
    }
}
