// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonProtocol
import Testing

@testable import BatonTransport

/// A flag for two tasks.
actor Flag {
    private(set) var isRaised = false
    func raise() { isRaised = true }
}

/// The code that `body` fails with; `nil` when it succeeds.
func failure(of body: () async throws -> Void) async -> TransportError.Code? {
    do {
        try await body()
        return nil
    } catch let error as TransportError {
        return error.code
    } catch {
        Issue.record("not a TransportError: \(error)")
        return nil
    }
}

/// Bytes of a pattern that shows their offset. It repeats after a prime number of bytes, which divides no window or
/// buffer.
func pattern(_ count: Int, from offset: Int = 0) -> [UInt8] {
    var all: [UInt8] = []
    all.reserveCapacity(count)
    while all.count < count {
        let start = (offset + all.count) % tile.count
        all.append(contentsOf: tile[start..<min(tile.count, start + count - all.count)])
    }
    return all
}

private let tile = (0..<10_007).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }

extension Buffer {
    /// A buffer full of `pattern(_:from:)`.
    static func pattern(_ count: Int, from offset: Int = 0) -> Buffer {
        Buffer(copying: BatonTransportTests.pattern(count, from: offset))
    }
}

extension Limits {
    /// Limits for slow machines: HELLO and PONG have an hour, and no PING is sent for silence.
    static var patient: Limits {
        var limits = Limits()
        limits.helloDeadline = .seconds(3600)
        limits.idleInterval = nil
        limits.pingDeadline = .seconds(3600)
        limits.pingHardDeadline = .seconds(3600)
        return limits
    }

    /// The same for the end of a connection, where the peer must end its direction.
    static var patientAtTheEnd: Limits {
        var limits = patient
        limits.closeDeadline = .seconds(3600)
        return limits
    }

    /// Small windows that do not grow.
    static func windows(stream: Int, connection: Int) -> Limits {
        var limits = patient
        limits.initialStreamWindow = stream
        limits.initialConnectionWindow = connection
        limits.maximumConnectionWindow = connection
        return limits
    }
}

/// The side of a stream that a test acts on.
enum Side: CaseIterable { case asker, answerer }

extension ConnectedPair {
    /// Both ends of a stream that was requested and answered.
    func stream() async throws -> (asker: BatonTransport.Stream, answerer: BatonTransport.Stream) {
        let asker = try await dialer.open([1])
        let iterator = acceptor.incoming.makeAsyncIterator()
        let incoming = try #require(await iterator.next())
        try await incoming.stream.respond([2])
        _ = try await asker.response()
        return (asker, incoming.stream)
    }

    /// The stream's ends, first the one that the test acts on.
    func stream(from side: Side) async throws -> (near: BatonTransport.Stream, far: BatonTransport.Stream) {
        let (asker, answerer) = try await stream()
        return side == .asker ? (asker, answerer) : (answerer, asker)
    }
}

/// The end of a socket on which a test sends its own bytes.
actor RawPeer {
    private let loop: EventLoop
    private let socket: Socket
    private let scratch = Buffer(capacity: 64 << 10)
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    /// Everything that the connection has sent.
    private(set) var received: [UInt8] = []
    private(set) var hasEnded = false

    /// Connects a raw peer with a connection.
    ///
    /// - Parameters:
    ///   - limits: the limits of the connection.
    ///   - budget: the budget of the connection.
    static func facing(
        _ role: Role, limits: Limits = .patient, budget: ReceiveBudget? = nil
    ) async throws -> (peer: RawPeer, connection: Connection) {
        let loops = (EventLoop(name: "connection"), EventLoop(name: "raw"))
        let (first, second) = try Socket.pair(on: loops.0, loops.1)
        let peer = await start(second, on: loops.1)
        let connection = Connection(
            socket: first, channel: PlainChannel(peer: .localUser(0)), role: role, limits: limits,
            budget: budget, on: loops.0)
        await connection.start()
        return (peer, connection)
    }

    static func start(_ socket: Socket, on loop: EventLoop) async -> RawPeer {
        let peer = RawPeer(socket, on: loop)
        await peer.start()
        return peer
    }

    private init(_ socket: Socket, on loop: EventLoop) {
        self.socket = socket
        self.loop = loop
    }

    deinit { socket.close() }

    private func start() {
        socket.start(
            onReadable: { [weak self] in self?.assumeIsolated { $0.readAll() } }, onWritable: {})
    }

    private func readAll() {
        while true {
            switch try? socket.read(into: scratch.writable) {
            case .bytes(let count): received.append(contentsOf: scratch.writable[..<count])
            case .wouldBlock: return
            case .endOfFile, nil:
                hasEnded = true
                return
            }
        }
    }

    func send(_ bytes: [UInt8]) throws {
        let sent = try bytes.withUnsafeBytes { try socket.write($0) }
        #expect(sent == bytes.count)
    }

    func close() { socket.close() }

    /// Types and payloads of the received whole frames.
    var frames: [(type: UInt8, payload: [UInt8])] {
        var frames: [(UInt8, [UInt8])] = []
        var rest = received[...]
        while rest.count >= 10 {
            let start = rest.startIndex
            let length = rest[(start + 6)..<(start + 10)].reduce(0) { $0 << 8 | Int($1) }
            guard rest.count >= 10 + length else { break }
            frames.append((rest[start], Array(rest[(start + 10)..<(start + 10 + length)])))
            rest = rest[(start + 10 + length)...]
        }
        return frames
    }

    /// The code of the GOAWAY that has come.
    var goAwayCode: UInt8? { frames.last { $0.type == 0x0A }?.payload.last }
}

/// Frames that tests encode by hand.
enum Frame {
    static func make(_ type: UInt8, stream: UInt32 = 0, _ payload: [UInt8] = []) -> [UInt8] {
        [type, 0] + bigEndian(stream) + bigEndian(UInt32(payload.count)) + payload
    }

    static func bigEndian(_ value: some FixedWidthInteger) -> [UInt8] {
        withUnsafeBytes(of: value.bigEndian) { Array($0) }
    }

    /// The example of the specification, chapter 3.
    static func hello(highest: UInt16 = 1, lowest: UInt16 = 1) -> [UInt8] {
        make(
            0x01,
            Array("BATN".utf8) + bigEndian(highest) + bigEndian(lowest) + [UInt8](repeating: 0, count: 16)
                + bigEndian(UInt32(65_536)) + bigEndian(UInt32(128)) + bigEndian(UInt32(32)) + bigEndian(UInt32(0))
                + bigEndian(UInt64(4 << 20)) + bigEndian(UInt64(1 << 20)))
    }

    static func goAway(last: UInt32, code: UInt32) -> [UInt8] { make(0x0A, bigEndian(last) + bigEndian(code)) }
}
