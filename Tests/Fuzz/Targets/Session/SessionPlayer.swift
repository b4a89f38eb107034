// SPDX-License-Identifier: Apache-2.0

@testable import BatonProtocol

/// A session with an application, a clock and a socket that do what an input says.
final class SessionPlayer {
    private static let payload = Buffer(copying: [UInt8](repeating: 7, count: 20_000))
    // reason for unsafe: one input at a time uses it
    nonisolated(unsafe) private static let socket = UnsafeMutableRawBufferPointer.allocate(
        byteCount: 70_000, alignment: 16)

    private var session: Session
    private var model: SessionModel
    private var now = Instant(nanoseconds: 1_000_000_000)
    private let limits: Limits

    init(role: Role, limits: Limits) {
        self.limits = limits
        session = Session(role: role, limits: limits, now: now)
        model = SessionModel(role: role, limits: limits)
    }

    var isDead: Bool { session.failure != nil }

    /// Bytes that the peer may still send on a stream.
    func creditLeft(of stream: UInt32) -> Int { model.creditLeft(of: stream) }

    // MARK: The peer

    /// Bytes of the peer, in pieces of this size, or of more where that would be too many; 0 is one piece.
    func receive(_ bytes: [UInt8], inPiecesOf size: Int) {
        for piece in bytes.pieces(of: size == 0 ? 0 : max(size, bytes.count / 32)) {
            model.feed(piece)
            piece.withUnsafeBytes { receive($0) }
            checkBounds()
        }
    }

    private func receive(_ bytes: UnsafeRawBufferPointer) {
        var rest = bytes
        while !rest.isEmpty {
            let known = session.failure
            do throws(ConnectionError) {
                let taken = try session.receive(rest, now: now) { id, payload in
                    expect(!payload.isEmpty, "no bytes were delivered")
                    model.deliver(id, payload.count)
                }
                rest = UnsafeRawBufferPointer(rebasing: rest[taken...])
                expect(known == nil, "a dead session takes bytes")
                expect(taken > 0 || !session.events.isEmpty, "nothing was taken, and no event waits")
            } catch {
                expect(error == session.failure, "the session threw another error than it failed with")
                rest = UnsafeRawBufferPointer(rebasing: rest[rest.endIndex...])
            }
            model.checkReceived(isDead: isDead)
            drain()
        }
    }

    // MARK: The application

    func open(_ count: Int) {
        if let id = try? session.open(Buffer(copying: [UInt8](repeating: 1, count: count)), now: now) { model.open(id) }
        settle()
    }

    func respond(_ id: StreamID, _ count: Int) {
        try? session.respond(id, Buffer(copying: [UInt8](repeating: 2, count: count)))
        settle()
    }

    func send(_ id: StreamID) {
        if session.queuedBytes(of: id) < 256 << 10 { session.send(id, Self.payload) }
        settle()
    }

    func consume(_ id: StreamID, _ count: Int) {
        session.consumed(id, count, now: now)
        settle()
    }

    func finish(_ id: StreamID) {
        session.finish(id)
        settle()
    }

    func reset(_ id: StreamID, _ code: UInt32) {
        session.reset(id, code: ApplicationErrorCode(rawValue: code))
        settle()
    }

    func goAway() {
        session.goAway()
        settle()
    }

    func ping() {
        session.ping()
        settle()
    }

    // MARK: Clock and socket

    func wait(_ duration: Duration) {
        now = now + duration
    }

    /// Lets the time come for which the session asked.
    func timeOut() {
        guard let due = session.nextTimeout() else { return expect(isDead, "a session that lives has a timeout") }
        now = max(now, due)
        session.handleTimeout(now: now)
        if let next = session.nextTimeout() { expect(next > now, "the timeout that was handled is still due") }
        settle()
    }

    /// Takes output, at most so many bytes.
    func flush(_ room: Int) {
        let room = min(max(room, Session.minimumOutput), Self.socket.count)
        let count = session.nextOutput(into: UnsafeMutableRawBufferPointer(rebasing: Self.socket[..<room]), now: now)
        expect(count <= room, "more was written than there was room")
        model.write(UnsafeRawBufferPointer(rebasing: Self.socket[..<count]))
        settle()
    }

    /// Takes all output, and looks whether the session is at rest.
    func end() {
        var rounds = 0
        while session.hasOutput {
            flush(Self.socket.count)
            rounds += 1
            expect(rounds < 100_000, "the output has no end")
        }
        model.checkWhole()
        expect(!isDead || session.nextTimeout() == nil, "a dead session has a timeout")
    }

    private func settle() {
        drain()
        checkBounds()
    }

    private func drain() {
        while let event = session.nextEvent() { model.hear(event) }
    }

    /// The session's limits bound its memory, whatever the peer did.
    private func checkBounds() {
        expect(session.control.count <= limits.queuedControlFrames + 1, "too many control frames wait")
        expect(session.partial.count <= Limits.messageBytes, "too much of a frame is kept")
        expect(session.streams.openPeer <= limits.openStreams, "the peer has too many streams")
        expect(session.streams.unansweredPeer <= limits.unansweredRequests, "too many requests wait")
        expect(session.streams.unread >= 0, "the counts of streams do not add up")
        let remembered = session.streams.all.count { !$0.isLocal }
        expect(remembered <= limits.openStreams + limits.unreadStreams, "too many streams are remembered")
        let window = max(limits.initialConnectionWindow, limits.maximumConnectionWindow)
        expect(session.receiveWindow.unconsumed <= window, "too many bytes are unconsumed")
        let unconsumed = session.streams.all.reduce(0) { $0 + $1.receiveWindow.unconsumed }
        expect(unconsumed <= session.receiveWindow.unconsumed, "streams hold more than the connection")
    }
}
