// SPDX-License-Identifier: Apache-2.0

@testable import BatonProtocol

/// Frames as an attacker writes them, valid or not.
enum Frame {
    static func make(_ type: UInt8, stream: UInt32 = 0, _ payload: [UInt8] = []) -> [UInt8] {
        header(type, stream: stream, length: UInt32(payload.count)) + payload
    }

    /// A header that may promise what never comes.
    static func header(_ type: UInt8, stream: UInt32 = 0, length: UInt32) -> [UInt8] {
        [type, 0] + bigEndian(stream) + bigEndian(length)
    }

    static func hello() -> [UInt8] {
        make(
            0x01,
            Array("BATN".utf8) + bigEndian(UInt16(1)) + bigEndian(UInt16(1)) + [UInt8](repeating: 0, count: 16)
                + bigEndian(UInt32(65_536)) + bigEndian(UInt32(128)) + bigEndian(UInt32(32)) + bigEndian(UInt32(0))
                + bigEndian(UInt64(4 << 20)) + bigEndian(UInt64(1 << 20)))
    }

    static func open(_ stream: UInt32, _ request: [UInt8] = [7]) -> [UInt8] { make(0x02, stream: stream, request) }
    static func data(_ stream: UInt32, _ bytes: [UInt8]) -> [UInt8] { make(0x04, stream: stream, bytes) }
    static func credit(_ stream: UInt32, _ offset: UInt64) -> [UInt8] { make(0x05, stream: stream, bigEndian(offset)) }
    static func end(_ stream: UInt32) -> [UInt8] { make(0x06, stream: stream) }
    static func reset(_ stream: UInt32) -> [UInt8] { make(0x07, stream: stream, bigEndian(UInt32(1))) }
    static func ping(_ value: UInt64) -> [UInt8] { make(0x08, bigEndian(value)) }
    static func pong(_ value: UInt64) -> [UInt8] { make(0x09, bigEndian(value)) }

    static func bigEndian(_ value: some FixedWidthInteger) -> [UInt8] {
        withUnsafeBytes(of: value.bigEndian) { Array($0) }
    }
}

/// A node's side of a connection, in simulated time, facing an attacker that says anything.
final class HostileSession {
    var session: Session
    private(set) var now = Instant(nanoseconds: 1_000_000_000)
    private(set) var events: [Event] = []
    /// Bytes that were handed to the application.
    private(set) var delivered = 0
    private(set) var failure: ConnectionError?

    init(_ role: Role = .acceptor, limits: Limits = Limits()) {
        session = Session(role: role, limits: limits, now: now)
    }

    /// The attacker has introduced himself, and answers the first PING.
    static func introduced(_ role: Role = .acceptor, limits: Limits = Limits()) -> HostileSession {
        let hostile = HostileSession(role, limits: limits)
        hostile.send(Frame.hello())
        hostile.answerPings()
        return hostile
    }

    /// Requests that reached the application.
    var openedStreams: [StreamID] {
        events.compactMap { event in if case .opened(let id, _) = event { id } else { nil } }
    }

    func send(_ bytes: [UInt8]) {
        bytes.withUnsafeBytes { whole in
            var rest = whole
            while !rest.isEmpty, failure == nil {
                do throws(ConnectionError) {
                    let taken = try session.receive(rest, now: now) { _, payload in delivered += payload.count }
                    rest = UnsafeRawBufferPointer(rebasing: rest[taken...])
                } catch {
                    failure = error
                }
                drain()
            }
        }
    }

    /// The output of the node, in whole frames.
    @discardableResult
    func read() -> [(type: UInt8, payload: [UInt8])] {
        var bytes: [UInt8] = []
        while session.hasOutput {
            let part = [UInt8](unsafeUninitializedCapacity: 1 << 16) { buffer, count in
                count = session.nextOutput(into: UnsafeMutableRawBufferPointer(buffer), now: now)
            }
            if part.isEmpty { break }
            bytes += part
        }
        drain()
        var frames: [(UInt8, [UInt8])] = []
        var rest = bytes[...]
        while rest.count >= 10 {
            let length = rest.dropFirst(6).prefix(4).reduce(0) { $0 << 8 | Int($1) }
            frames.append((rest[rest.startIndex], Array(rest.dropFirst(10).prefix(length))))
            rest = rest.dropFirst(10 + length)
        }
        return frames
    }

    /// Answers each PING, as someone does who wants to stay.
    func answerPings() {
        for frame in read() where frame.type == 0x08 { send(Frame.make(0x09, frame.payload)) }
    }

    /// Lets time pass, timers included.
    func wait(_ duration: Duration) {
        let end = now + duration
        while failure == nil, let due = session.nextTimeout(), due <= end {
            now = max(now, due)
            session.handleTimeout(now: now)
            drain()
        }
        now = end
    }

    private func drain() {
        while let event = session.nextEvent() {
            events.append(event)
            if case .dead(let error) = event { failure = failure ?? error }
        }
    }
}
