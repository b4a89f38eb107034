// SPDX-License-Identifier: Apache-2.0

package import BatonProtocol

/// A frame that a test writes or reads, independent of the module's own types.
struct WireFrame: Equatable {
    var type: UInt8
    var flags: UInt8 = 0
    var stream: UInt32 = 0
    var payload: [UInt8] = []

    var bytes: [UInt8] {
        [type, flags] + bigEndian(stream) + bigEndian(UInt32(payload.count)) + payload
    }

    static func hello(
        version: UInt16 = 1, minimum: UInt16 = 1, dataFrame: UInt32 = 65_536, streams: UInt32 = 128,
        unanswered: UInt32 = 32, connection: UInt64 = 1 << 21, stream: UInt64 = 1 << 20, appended: [UInt8] = []
    ) -> WireFrame {
        var payload: [UInt8] = Array("BATN".utf8)
        payload += bigEndian(version) + bigEndian(minimum) + bigEndian(UInt64(0)) + bigEndian(UInt64(0))
        payload += bigEndian(dataFrame) + bigEndian(streams) + bigEndian(unanswered) + bigEndian(UInt32(0))
        payload += bigEndian(connection) + bigEndian(stream) + appended
        return WireFrame(type: 1, payload: payload)
    }
    static func open(_ stream: UInt32, _ request: [UInt8] = [7]) -> WireFrame {
        WireFrame(type: 2, stream: stream, payload: request)
    }
    static func response(_ stream: UInt32, _ message: [UInt8] = [8]) -> WireFrame {
        WireFrame(type: 3, stream: stream, payload: message)
    }
    static func data(_ stream: UInt32, _ payload: [UInt8]) -> WireFrame {
        WireFrame(type: 4, stream: stream, payload: payload)
    }
    static func credit(_ stream: UInt32, _ offset: UInt64) -> WireFrame {
        WireFrame(type: 5, stream: stream, payload: bigEndian(offset))
    }
    static func end(_ stream: UInt32) -> WireFrame { WireFrame(type: 6, stream: stream) }
    static func reset(_ stream: UInt32, _ code: UInt32 = 1) -> WireFrame {
        WireFrame(type: 7, stream: stream, payload: bigEndian(code))
    }
    static func ping(_ token: UInt64) -> WireFrame { WireFrame(type: 8, payload: bigEndian(token)) }
    static func pong(_ token: UInt64) -> WireFrame { WireFrame(type: 9, payload: bigEndian(token)) }
    static func goAway(_ last: UInt32, _ code: UInt32 = 0) -> WireFrame {
        WireFrame(type: 10, payload: bigEndian(last) + bigEndian(code))
    }

    /// The frames in `bytes`; nil if the last one is incomplete.
    static func parse(_ bytes: [UInt8]) -> [WireFrame]? {
        var frames: [WireFrame] = []
        var rest = bytes[...]
        while rest.count >= 10 {
            let header = Array(rest.prefix(10))
            let length = Int(integer(header[6..<10]))
            guard rest.count >= 10 + length else { return nil }
            frames.append(
                WireFrame(
                    type: header[0], flags: header[1], stream: UInt32(integer(header[2..<6])),
                    payload: Array(rest.dropFirst(10).prefix(length))))
            rest = rest.dropFirst(10 + length)
        }
        return rest.isEmpty ? frames : nil
    }

    /// The big-endian number that the payload starts with.
    var number: UInt64 { integer(payload.prefix(8)) }
}

func bigEndian(_ value: some FixedWidthInteger) -> [UInt8] {
    withUnsafeBytes(of: value.bigEndian) { Array($0) }
}

func integer(_ bytes: some Sequence<UInt8>) -> UInt64 {
    bytes.reduce(0) { $0 << 8 | UInt64($1) }
}

/// One session against a peer that the test plays.
final class Lone {
    var session: Session
    var now = Instant(nanoseconds: 1_000_000_000)
    var events: [Event] = []
    var delivered: [StreamID: [UInt8]] = [:]
    var error: ConnectionError?
    /// Streams that a test opened.
    var opened: [StreamID] = []
    /// Every byte the session wrote after the HELLOs.
    var written: [UInt8] = []

    /// A session that has exchanged HELLOs, if `hello` is not nil.
    init(_ role: Role = .acceptor, limits: Limits = Limits(), hello: WireFrame? = .hello()) {
        session = Session(role: role, limits: limits, now: now)
        if let hello {
            receive(hello)
            _ = output()
            events = []
            written = []
        }
    }

    // `#expect` cannot access a session, which is not copyable.
    var hasOutput: Bool { session.hasOutput }
    var isIdle: Bool { session.isIdle }
    var nextTimeout: Instant? { session.nextTimeout() }
    var peer: PeerHello? { session.peer }

    func receive(_ frames: WireFrame...) {
        receive(frames.flatMap(\.bytes))
    }

    func receive(_ frames: [WireFrame]) {
        receive(frames.flatMap(\.bytes))
    }

    func receive(_ bytes: [UInt8]) {
        bytes.withUnsafeBytes { whole in
            var rest = whole
            while !rest.isEmpty {
                do throws(ConnectionError) {
                    let taken = try session.receive(rest, now: now) { id, payload in
                        delivered[id, default: []] += payload
                    }
                    rest = UnsafeRawBufferPointer(rebasing: rest[taken...])
                } catch {
                    self.error = error
                    rest = UnsafeRawBufferPointer(start: nil, count: 0)
                }
                drain()
            }
        }
    }

    func drain() {
        while let event = session.nextEvent() { events.append(event) }
    }

    /// Events since the last call.
    func takeEvents() -> [Event] {
        drain()
        defer { events = [] }
        return events
    }

    /// Bytes of one call of `nextOutput`.
    func outputBytes(room: Int = 1 << 20) -> [UInt8] {
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: room, alignment: 1)
        defer { memory.deallocate() }
        let count = session.nextOutput(into: memory, now: now)
        drain()
        written += memory[..<count]
        return Array(memory[..<count])
    }

    /// All frames that the session writes now.
    func output(room: Int = 1 << 20) -> [WireFrame] {
        var bytes: [UInt8] = []
        while session.hasOutput {
            let part = outputBytes(room: room)
            if part.isEmpty { break }
            bytes += part
        }
        return WireFrame.parse(bytes) ?? []
    }

    func wait(_ duration: Duration) {
        now = now + duration
    }

    /// Moves time to the next timeout and handles it.
    func timeout() {
        if let due = session.nextTimeout() { now = max(now, due) }
        session.handleTimeout(now: now)
        drain()
    }
}

extension StreamID: ExpressibleByIntegerLiteral {
    package init(integerLiteral value: UInt32) {
        self.init(rawValue: value)
    }
}

extension Buffer {
    convenience init(_ bytes: UInt8...) {
        self.init(copying: bytes)
    }

    convenience init(repeating byte: UInt8, count: Int) {
        self.init(copying: [UInt8](repeating: byte, count: count))
    }
}
