// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonProtocol
import BatonTestSupport
import Testing

@testable import BatonTransport

@Suite("The end of a connection", .timeLimit(.minutes(3)))
struct ConnectionEndTests {
    /// Starts every call that can wait on a connection, and returns the errors that they end with.
    private func everyWaiter(
        of pair: ConnectedPair, whileEnding end: () async throws -> Void
    ) async throws -> [TransportError.Code?] {
        let (asker, answerer) = try await pair.stream()
        let (second, unread) = try await pair.stream()
        let unanswered = try await pair.dialer.open([])
        try await second.write(.pattern(Connection.sendQueueBound))
        defer { withExtendedLifetime(unread) {} }
        let waiters = [
            Task { await failure { _ = try await asker.read() } },
            Task { await failure { try await asker.write(.pattern(Connection.sendQueueBound + (1 << 20))) } },
            Task { await failure { try await second.drained() } },
            Task { await failure { _ = try await unanswered.response() } },
            Task { TransportError.Code?.some(await pair.dialer.ended().code) },
            Task {
                for await _ in pair.dialer.incoming {}
                return TransportError.Code?.some(await pair.dialer.ended().code)
            },
        ]
        _ = try await answerer.read()
        try await end()
        var codes: [TransportError.Code?] = []
        for waiter in waiters { codes.append(await waiter.value) }
        return codes
    }

    private var small: Limits { .windows(stream: 16 << 10, connection: 64 << 10) }

    @Test("close() on this side wakes every waiting task")
    func closedHere() async throws {
        let pair = try await ConnectedPair(limits: small)
        let codes = try await everyWaiter(of: pair) { await pair.dialer.close() }
        #expect(codes.allSatisfy { $0 == .connectionLost }, "\(codes)")
        #expect(await failure { _ = try await pair.dialer.open([]) } == .connectionLost)
        #expect(await failure { try await pair.dialer.ready() } == .connectionLost)
        await pair.close()
    }

    @Test("close() on the other side wakes every waiting task")
    func closedThere() async throws {
        let pair = try await ConnectedPair(limits: small)
        let codes = try await everyWaiter(of: pair) { await pair.acceptor.close(.internalError) }
        #expect(codes.allSatisfy { $0 == .connectionLost }, "\(codes)")
        await pair.close()
    }

    @Test("A socket that breaks wakes every waiting task")
    func cut() async throws {
        let (peer, connection) = try await RawPeer.facing(.dialer)
        try await peer.send(Frame.hello())
        let stream = try await connection.open([])
        async let waiting = failure { _ = try await stream.response() }
        async let streams: Void = { for await _ in connection.incoming {} }()
        await peer.close()
        #expect(await waiting == .connectionLost)
        #expect(await connection.ended().code == .connectionLost)
        await streams
        #expect(await failure { _ = try await connection.open([]) } == .connectionLost)
        #expect(await failure { _ = try await stream.read() } == .connectionLost)
    }

    @Test("close() sends queued bytes")
    func closeFlushes() async throws {
        let (peer, connection) = try await RawPeer.facing(.dialer, limits: .patientAtTheEnd)
        try await peer.send(Frame.hello())
        let stream = try await connection.open([9])
        try await stream.write(.pattern(1 << 20))
        await stream.finish()
        let closing = Task { await connection.close() }
        try await eventually("the end arrives") { await peer.hasEnded }
        let frames = await peer.frames
        #expect(frames.filter { $0.type == 0x04 }.flatMap(\.payload) == pattern(1 << 20))
        #expect(frames.contains { $0.type == 0x06 })
        #expect(frames.contains { $0.type == 0x0A && $0.payload.last == 0 })
        await peer.close()
        await closing.value
        await connection.close()
    }

    /// A socket that is closed with unread bytes resets the connection, which can destroy the last bytes that were
    /// sent.
    @Test("close() keeps the socket until the other side has ended its direction too")
    func lingers() async throws {
        let loops = (EventLoop(name: "connection"), EventLoop(name: "raw"))
        let (socket, other) = try Socket.pair(on: loops.0, loops.1)
        let peer = await RawPeer.start(other, on: loops.1)
        let connection = Connection(
            socket: socket, channel: PlainChannel(peer: .localUser(0)), role: .acceptor,
            limits: .patientAtTheEnd, on: loops.0)
        await connection.start()
        try await peer.send(Frame.hello())
        try await connection.ready()
        let closing = Task { await connection.close() }
        _ = await connection.ended()
        try await eventually("the end has come") { await peer.hasEnded }
        #expect(await peer.goAwayCode == 0)
        #expect(!socket.isClosed)
        await peer.close()
        await closing.value
        #expect(socket.isClosed)
    }

    @Test("close() does not wait for ever for a peer that never ends its direction")
    func lingersBounded() async throws {
        var limits = Limits.patient
        limits.closeDeadline = .seconds(1)
        let (peer, connection) = try await RawPeer.facing(.acceptor, limits: limits)
        try await peer.send(Frame.hello())
        try await connection.ready()
        await connection.close()
        #expect(await peer.goAwayCode == 0)
        await peer.close()
    }

    @Test("close() twice, and at once, ends both times")
    func closeTwice() async throws {
        let pair = try await ConnectedPair()
        await withDiscardingTaskGroup { group in
            for _ in 0..<4 { group.addTask { await pair.dialer.close() } }
            for _ in 0..<4 { group.addTask { await pair.acceptor.close() } }
        }
        #expect(await pair.dialer.ended().code == .connectionLost)
        #expect(await pair.acceptor.ended().code == .connectionLost)
    }

    @Test("After a GOAWAY no stream opens, old ones finish, and then the connection closes")
    func goAway() async throws {
        let (peer, connection) = try await RawPeer.facing(.dialer)
        try await peer.send(Frame.hello())
        let stream = try await connection.open([9])
        let unheard = try await connection.open([9])
        try await peer.send(Frame.goAway(last: 1, code: 0))
        #expect(await failure { _ = try await unheard.response() } == .reset(.goingAway))
        #expect(await failure { _ = try await connection.open([]) } == .goingAway)
        #expect(!connection.isOpen)
        try await peer.send(Frame.make(0x03, stream: 1, [5]))
        #expect(try await stream.response() == [5])
        try await peer.send(Frame.make(0x04, stream: 1, [1, 2, 3]))
        #expect(try await stream.read().map { Array($0.bytes) } == [1, 2, 3])
        try await peer.send(Frame.make(0x06, stream: 1))
        #expect(try await stream.read() == nil)
        await stream.finish()
        #expect(await connection.ended().code == .connectionLost)
        try await eventually("the socket is closed") { await peer.hasEnded }
    }

    @Test("An ended connection releases everything")
    func leavesNothing() async throws {
        weak var dialer: Connection?
        weak var acceptor: Connection?
        var sockets: [Socket] = []
        do {
            let loops = (EventLoop(name: "dialer"), EventLoop(name: "acceptor"))
            let (first, second) = try Socket.pair(on: loops.0, loops.1)
            sockets = [first, second]
            let pair = try await ConnectedPair(first, second, on: loops)
            dialer = pair.dialer
            acceptor = pair.acceptor
            let (asker, answerer) = try await pair.stream()
            async let reading = failure { _ = try await answerer.read() }
            try await asker.write(.pattern(10))
            _ = await reading
            await pair.close()
        }
        try await eventually("both are gone") { dialer == nil && acceptor == nil }
        #expect(sockets.allSatisfy { $0.isClosed })
    }

    @Test("A connection with streams that nobody took is released")
    func untaken() async throws {
        weak var gone: Connection?
        let peer: RawPeer
        do {
            let (raw, connection) = try await RawPeer.facing(.acceptor)
            peer = raw
            gone = connection
            try await raw.send(Frame.hello() + Frame.make(0x02, stream: 1, [1]))
            try await eventually("the stream is there") { await !connection.isIdle }
        }
        try await eventually("it is gone") { gone == nil }
        try await eventually("its socket is closed") { await peer.hasEnded }
    }

    @Test("A stream that came before the connection ended can still be taken and read")
    func takenLate() async throws {
        let (peer, connection) = try await RawPeer.facing(.acceptor)
        try await peer.send(
            Frame.hello() + Frame.make(0x02, stream: 1, [1]) + Frame.make(0x04, stream: 1, [7])
                + Frame.make(0x06, stream: 1))
        await peer.close()
        _ = await connection.ended()
        let iterator = connection.incoming.makeAsyncIterator()
        let incoming = try #require(await iterator.next())
        #expect(incoming.request == [1])
        #expect(try await incoming.stream.read().map { Array($0.bytes) } == [7])
        #expect(await iterator.next() == nil)
    }

    @Test("A connection that is released without close() closes its socket")
    func letGo() async throws {
        weak var gone: Connection?
        let peer: RawPeer
        do {
            let (raw, connection) = try await RawPeer.facing(.acceptor)
            peer = raw
            gone = connection
            try await raw.send(Frame.hello())
            try await connection.ready()
        }
        try await eventually("it is gone") { gone == nil }
        try await eventually("its socket is closed") { await peer.hasEnded }
    }
}
