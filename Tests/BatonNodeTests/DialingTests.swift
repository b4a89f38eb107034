// SPDX-License-Identifier: Apache-2.0

import BatonCore
import BatonEventLoop
import BatonMessages
import BatonProtocol
import BatonTestSupport
import BatonTransport
import Testing

@testable import BatonAccount
@testable import BatonNode

/// Devices that are announced on the loopback and dialled there.
@Suite("Dialling", .timeLimit(.minutes(5)))
struct DialingTests {
    private var limits = NodeLimits()

    private func parts() throws -> NodeParts {
        try NodeParts(TestAccount(devices: 1), limits: limits)
    }

    /// A device of a number, which no connection has proved, is announced.
    private func announce(
        _ number: UInt8, at host: String = "127.0.0.1", port: UInt16, to parts: NodeParts
    ) async throws -> String {
        let key = [UInt8](repeating: number, count: 32)
        let advertisement = Advertisement(
            device: DeviceID(ed25519PublicKey: key), publicKey: key, epoch: 1, sequence: 0,
            gateNonce: [UInt8](repeating: 1, count: 16),
            content: AdvertisementContent(
                port: port, addresses: [try #require(NetworkAddress(host))], deviceName: "laptop"))
        await parts.directory.hear(advertisement, with: parts.account.devices[0].account.currentKeys)
        return advertisement.device.description
    }

    @Test("So many devices that nothing has proved are dialled at once, and no further one is reached for")
    mutating func unproved() async throws {
        limits.unprovedDialDeadline = .seconds(60)
        let parts = try parts()
        let bound = limits.links.unprovedDials
        #expect(bound == 4)
        // They take the connection, and say nothing.
        let reached = Lock<[Socket]>([])
        let listener = try Listener(at: .ip(.ipv4Any, port: 0), on: EventLoop(name: "invented"))
        listener.start { socket in reached.withLock { $0.append(socket) } }
        defer { listener.close() }
        let port = try #require(listener.localAddress.port)
        var devices: [String] = []
        for number in 0...bound {
            // Two at each address.
            devices.append(
                try await announce(UInt8(number), at: "127.0.0.\(number / 2 + 1)", port: port, to: parts))
        }
        let dials = devices.prefix(bound).map { device in
            Task { [connections = parts.connections] in try await connections.connection(to: device, isWanted: false) }
        }
        try await eventually("they are dialled") { reached.withLock { $0.count } == bound }
        let error = await #expect(throws: HandoffError.self) {
            try await parts.connections.connection(to: devices[bound], isWanted: false)
        }
        #expect(error?.code == .limitExceeded)
        #expect(reached.withLock { $0.count } == bound)
        // A device that was given up leaves its place to the next.
        for socket in reached.withLock({ $0 }) { socket.close() }
        try await eventually("they are dialled once more") { reached.withLock { $0.count } == 2 * bound }
        for socket in reached.withLock({ $0 }) { socket.close() }
        for dial in dials { await #expect(throws: HandoffError.self) { try await dial.value } }
        let next = Task { [parts, device = devices[bound]] in
            try await parts.connections.connection(to: device, isWanted: false)
        }
        try await eventually("it is dialled") { reached.withLock { $0.count } == 2 * bound + 1 }
        for socket in reached.withLock({ $0 }) { socket.close() }
        try await eventually("it is dialled once more") { reached.withLock { $0.count } == 2 * bound + 2 }
        for socket in reached.withLock({ $0 }) { socket.close() }
        await #expect(throws: HandoffError.self) { try await next.value }
        await parts.connections.stop()
    }

    @Test("So many devices are dialled at once in all, whoever wants them")
    mutating func dials() async throws {
        limits.links.dials = 6
        let parts = try parts()
        let reached = Lock<[Socket]>([])
        let listener = try Listener(at: .ip(.ipv4Any, port: 0), on: EventLoop(name: "invented"))
        listener.start { socket in reached.withLock { $0.append(socket) } }
        defer { listener.close() }
        let port = try #require(listener.localAddress.port)
        var devices: [String] = []
        for number in 0...3 {
            devices.append(try await announce(UInt8(number), at: "127.0.0.\(number + 1)", port: port, to: parts))
        }
        let dials = devices.prefix(3).map { device in
            Task { [connections = parts.connections] in try await connections.connection(to: device, isWanted: true) }
        }
        try await eventually("they are dialled") { reached.withLock { $0.count } == 3 }
        let error = await #expect(throws: HandoffError.self) {
            try await parts.connections.connection(to: devices[3], isWanted: true)
        }
        #expect(error?.code == .limitExceeded && error?.message.contains("are being dialled") == true)
        #expect(reached.withLock { $0.count } == 3)
        // A device that a connection has shown finds its place beside them.
        await parts.directory.prove(devices[3])
        let proved = Task { [connections = parts.connections, device = devices[3]] in
            try await connections.connection(to: device, isWanted: true)
        }
        try await eventually("it is dialled") { reached.withLock { $0.count } == 4 }
        await parts.connections.stop()
        for socket in reached.withLock({ $0 }) { socket.close() }
        for dial in dials + [proved] { await #expect(throws: HandoffError.self) { try await dial.value } }
    }

    @Test("What nothing has proved is dialled in brief, and for longer where a user names it meanwhile")
    mutating func brief() async throws {
        limits.unprovedDialDeadline = .milliseconds(200)
        let parts = try parts()
        let reached = Lock<[Socket]>([])
        let listener = try Listener(at: .ip(.ipv4Loopback, port: 0), on: EventLoop(name: "silent"))
        listener.start { socket in reached.withLock { $0.append(socket) } }
        defer { listener.close() }
        let device = try await announce(1, port: try #require(listener.localAddress.port), to: parts)
        let unasked = Task { try await parts.connections.connection(to: device, isWanted: false) }
        try await eventually("it is dialled") { reached.withLock { $0.count } == 1 }
        let named = Task { try await parts.connections.connection(to: device, isWanted: true) }
        let error = await #expect(throws: HandoffError.self) { try await unasked.value }
        #expect(error?.code == .timedOut)
        try await eventually("it is dialled for who named it") { reached.withLock { $0.count } == 2 }
        for socket in reached.withLock({ $0 }) { socket.close() }
        try await eventually("it is dialled once more") { reached.withLock { $0.count } == 3 }
        for socket in reached.withLock({ $0 }) { socket.close() }
        let failure = await #expect(throws: HandoffError.self) { try await named.value }
        #expect(failure?.code == .peerUnreachable)
        await parts.connections.stop()
    }

    @Test("A device at whose port nobody listens is told in the words of the doctor, which is named")
    func refused() async throws {
        let parts = try parts()
        let listener = try Listener(at: .ip(.ipv4Loopback, port: 0), on: parts.loop)
        let port = try #require(listener.localAddress.port)
        listener.close()
        try await eventually("the port is closed") {
            (try? await Socket.connect(to: .ip(.ipv4Loopback, port: port), on: parts.loop)) == nil
        }
        let device = try await announce(1, port: port, to: parts)
        let error = await #expect(throws: HandoffError.self) {
            try await parts.connections.connection(to: device, isWanted: true)
        }
        #expect(
            error?.message
                == Cause.nodeGoneThere.sentence("laptop") + "; find the cause with `baton doctor laptop`")
        #expect(error?.code == .peerUnreachable && error?.advises == true)
        await parts.connections.stop()
    }

    @Test("A device that ends the connection without a word is tried once more, and then given up")
    func turnedAway() async throws {
        let parts = try parts()
        let visits = Lock(0)
        let listener = try Listener(at: .ip(.ipv4Loopback, port: 0), on: EventLoop(name: "crowded"))
        listener.start { socket in
            visits.withLock { $0 += 1 }
            socket.close()
        }
        defer { listener.close() }
        let device = try await announce(1, port: try #require(listener.localAddress.port), to: parts)
        let error = await #expect(throws: HandoffError.self) {
            try await parts.connections.connection(to: device, isWanted: true)
        }
        #expect(error?.code == .peerUnreachable && error?.message.contains("`baton doctor laptop`") == true)
        #expect(visits.withLock { $0 } == 2)
        await parts.connections.stop()
    }

    @Test("A device that moves while it is dialled is followed so many times, and then given up")
    func moves() async throws {
        let parts = try parts()
        // With one connection the kernel's queue is full: others wait for an answer.
        let silence = try Listener(at: .ip(.ipv4Any, port: 0), on: parts.loop, backlog: 0)
        defer { silence.close() }
        let port = try #require(silence.localAddress.port)
        let filler = try await Socket.connect(to: .ip(.ipv4Loopback, port: port), on: parts.loop)
        let device = try await announce(1, port: port, to: parts)
        let dial = Task { [parts] in try await parts.connections.connection(to: device, isWanted: true) }
        let moving = Task {
            var number = 1
            while !Task.isCancelled {
                _ = try await announce(1, at: "127.0.0.\(number % 200 + 1)", port: port, to: parts)
                try await Alarm.sleep(for: .milliseconds(20))
                number += 1
            }
        }
        let error = await #expect(throws: HandoffError.self) { try await dial.value }
        #expect(error?.code == .peerUnreachable && error?.message.contains("change all the time") == true)
        moving.cancel()
        withExtendedLifetime(filler) {}
        await parts.connections.stop()
    }
}

extension PeerDirectory {
    /// Takes what an advertisement says, and dials the loopback, which no advertisement may name.
    fileprivate func hear(_ advertisement: Advertisement, with keys: GenerationKeys) {
        let heard = HeardAdvertisement(advertisement, under: keys.id, undialled: [.invalid])
        decide { $0.receive(heard, instance: "instance", interface: 1, now: .now, unixTime: 1) }
    }
}
