// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonEventLoop
import BatonProtocol
import BatonTestSupport
import Logging
import Testing

@testable import BatonNode

/// Where other devices dial, with real sockets.
@Suite("The ports of periods", .timeLimit(.minutes(3)))
struct PeerListenersTests {
    private let loop = ControlLoop.loop
    private let log = LineRecorder()
    private static let (home, both, away) = (
        addresses("192.0.2.1", "172.17.0.1"), addresses("192.0.2.1", "192.0.2.9", "172.17.0.1"),
        addresses("192.0.2.9", "172.17.0.1")
    )

    private static func addresses(_ texts: String...) -> Set<NetworkAddress> {
        Set(texts.compactMap { NetworkAddress($0) })
    }

    private func listeners(
        isFixed: Bool = false, grace: Duration = Gate.periodGrace,
        open: @escaping @Sendable (EventLoop) throws(SocketError) -> Listener = Self.open
    ) throws -> PeerListeners {
        let (loop, log) = (loop, log)
        return try PeerListeners(
            isFixed: isFixed, at: Self.home, grace: grace, logger: Logger(label: "test") { _ in log }
        ) { () throws(SocketError) in try open(loop) }
    }

    @Sendable private static func open(on loop: EventLoop) throws(SocketError) -> Listener {
        try Listener.onAllAddresses(port: 0, on: loop)
    }

    private func connect(to port: UInt16) async throws(SocketError) -> Socket {
        try await Socket.connect(to: .ip(.ipv4Loopback, port: port), on: loop, timeout: .seconds(30))
    }

    private func isRefused(at port: UInt16) async -> Bool {
        do throws(SocketError) {
            _ = try await connect(to: port)
            return false
        } catch {
            return error.code == .connectionRefused
        }
    }

    @Test("Where an address has gone no port stays open that was announced with it", arguments: [false, true])
    func moved(isGradual: Bool) async throws {
        let listeners = try listeners()
        defer { ControlLoop.execute { listeners.close() } }
        await listeners.start { $0.close() }
        var older = [await listeners.port]
        await listeners.beginPeriod(at: Self.home)
        older.append(await listeners.port)
        if isGradual {
            // The next network is there before the last one has gone.
            await listeners.beginPeriod(at: Self.both)
            older.append(await listeners.port)
        }
        for port in older { #expect(await !isRefused(at: port)) }
        // One of a bridge of the machine itself stays.
        await listeners.beginPeriod(at: Self.away)
        for port in older { try await eventually("it is closed") { await isRefused(at: port) } }
        #expect(await !isRefused(at: listeners.port))
        // Nobody was told of what was announced without a network.
        await listeners.beginPeriod(at: [])
        let silent = await listeners.port
        await listeners.beginPeriod(at: [])
        #expect(await !isRefused(at: silent))
        await listeners.beginPeriod(at: Self.home)
        try await eventually("it is closed") { await isRefused(at: silent) }
    }

    @Test("Each period has a port of its own, one for each that counts, and what was accepted stays")
    func bound() async throws {
        #expect(PeerListeners.bound == Gate.periodBound)
        let accepted = Lock<[Socket]>([])
        let listeners = try listeners()
        defer { ControlLoop.execute { listeners.close() } }
        var ports = [await listeners.port]
        await listeners.beginPeriod(at: Self.home)
        // Also those from before the start.
        await listeners.start { socket in accepted.withLock { $0.append(socket) } }
        ports.append(await listeners.port)
        let early = try await connect(to: ports[0])
        try await eventually("it is accepted") { accepted.withLock { $0.count } == 1 }
        while ports.count < PeerListeners.bound {
            await listeners.beginPeriod(at: Self.home)
            ports.append(await listeners.port)
        }
        for (number, port) in ports.enumerated() {
            let socket = try await connect(to: port)
            try await eventually("it is accepted at each") { accepted.withLock { $0.count } == number + 2 }
            socket.close()
        }
        await listeners.beginPeriod(at: Self.home)
        #expect(await Set(ports + [listeners.port]).count == PeerListeners.bound + 1)
        try await eventually("the oldest goes") { await isRefused(at: ports[0]) }
        for port in await ports.dropFirst() + [listeners.port] { #expect(await !isRefused(at: port)) }

        let kept = try #require(accepted.withLock { $0.first })
        let answer: [UInt8] = [1]
        #expect(try answer.withUnsafeBytes { try kept.write($0) } == answer.count)
        let scratch = UnsafeMutableRawBufferPointer.allocate(byteCount: 16, alignment: 16)
        defer { scratch.deallocate() }
        try await eventually("it is heard") {
            if case .bytes = try early.read(into: scratch) { true } else { false }
        }
        #expect(log.lines.isEmpty)
    }

    @Test("A port goes when its period has not counted for so long, and the present one stays")
    func expiry() async throws {
        let listeners = try listeners(grace: .milliseconds(200))
        defer { ControlLoop.execute { listeners.close() } }
        await listeners.start { _ in }
        var past: [UInt16] = []
        for _ in 1...2 {
            past.append(await listeners.port)
            await listeners.beginPeriod(at: Self.home)
            // Takes a while, so that they do not go at the same time.
            for _ in 1...20 { #expect(await !isRefused(at: listeners.port)) }
        }
        for port in past { try await eventually("it goes") { await isRefused(at: port) } }
        #expect(await !isRefused(at: listeners.port))
    }

    @Test("Where no other port can be had the last one serves another period, as is said, and not the next")
    func unavailable() async throws {
        let isUnavailable = Lock(false)
        let listeners = try listeners(grace: .zero) { (loop) throws(SocketError) in
            guard !isUnavailable.withLock({ $0 }) else { throw SocketError(.outOfResources, while: "listening") }
            return try Self.open(on: loop)
        }
        defer { ControlLoop.execute { listeners.close() } }
        await listeners.start { _ in }
        let port = await listeners.port
        isUnavailable.withLock { $0 = true }
        await listeners.beginPeriod(at: Self.home)
        #expect(await listeners.port == port)
        #expect(await !isRefused(at: port))
        #expect(log.lines.count == 1 && log.lines[0].contains("the port of the last one"), "\(log.lines)")
        isUnavailable.withLock { $0 = false }
        await listeners.beginPeriod(at: Self.home)
        #expect(await listeners.port != port)
        try await eventually("it goes") { await isRefused(at: port) }
    }

    @Test("A port that the user has chosen serves all periods")
    func fixed() async throws {
        let listeners = try listeners(isFixed: true, grace: .zero)
        defer { ControlLoop.execute { listeners.close() } }
        let port = await listeners.port
        for _ in 0...PeerListeners.bound { await listeners.beginPeriod(at: Self.home) }
        #expect(await listeners.port == port)
        #expect(await !isRefused(at: port))
    }

    @Test("After the end nothing listens and nothing begins to, and the last port is still told")
    func closed() async throws {
        let opened = Lock<[UInt16]>([])
        let listeners = try listeners { (loop) throws(SocketError) in
            let listener = try Self.open(on: loop)
            opened.withLock { $0.append(listener.localAddress.port ?? 0) }
            return listener
        }
        await listeners.start { _ in }
        await listeners.beginPeriod(at: Self.home)
        let port = await listeners.port
        await listeners.close()
        await listeners.close()
        await listeners.beginPeriod(at: Self.home)
        #expect(await listeners.port == port)
        for port in opened.withLock({ $0 }) { try await eventually("nothing listens") { await isRefused(at: port) } }
    }
}
