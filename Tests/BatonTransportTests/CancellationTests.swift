// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import BatonTestSupport
import Testing

@testable import BatonTransport

@Suite("Cancellation", .timeLimit(.minutes(3)))
struct CancellationTests {
    @Test("A read that waits is cancelled, and the next one works")
    func read() async throws {
        let pair = try await ConnectedPair()
        let (asker, answerer) = try await pair.stream()
        for round in 0..<50 {
            let reading = Task { await failure { _ = try await answerer.read() } }
            if round % 2 == 0 { await Task.yield() }
            reading.cancel()
            #expect(await reading.value == .cancelled)
        }
        try await asker.write(.pattern(5))
        #expect(try await answerer.read()?.count == 5)
        await pair.close()
    }

    @Test(
        "A write that is cancelled while it waits has sent its bytes; one that would have to wait sends none"
    )
    func write() async throws {
        let pair = try await ConnectedPair(limits: .windows(stream: 16 << 10, connection: 64 << 10))
        let (asker, answerer) = try await pair.stream()
        let total = Connection.sendQueueBound + (32 << 10)
        let writing = Task { try await asker.write(.pattern(total)) }
        try await eventually("it waits") { await asker.connection.isWritten(asker.id) }
        writing.cancel()
        // It throws no error, after which a caller may send the same bytes again.
        #expect(try await writing.value == total - (16 << 10))
        for _ in 0..<3 {
            let again = Task {
                withUnsafeCurrentTask { $0?.cancel() }
                return await failure { try await asker.write(.pattern(100)) }
            }
            #expect(await again.value == .cancelled)
        }
        let draining = Task { await failure { try await asker.drained() } }
        draining.cancel()
        #expect(await draining.value == .cancelled)
        await asker.finish()
        #expect(try await answerer.readAll() == pattern(total))
        await pair.close()
    }

    @Test("Waiting for an answer is cancelled")
    func response() async throws {
        let pair = try await ConnectedPair()
        let asker = try await pair.dialer.open([])
        let waiting = Task { await failure { _ = try await asker.response() } }
        let iterator = pair.acceptor.incoming.makeAsyncIterator()
        let incoming = try #require(await iterator.next())
        waiting.cancel()
        #expect(await waiting.value == .cancelled)
        try await incoming.stream.respond([7])
        #expect(try await asker.response() == [7])
        await pair.close()
    }

    @Test("Waiting for a peer that says nothing is cancelled: ready(), open() and the next stream")
    func silence() async throws {
        let (peer, connection) = try await RawPeer.facing(.dialer)
        let waiters = [
            Task { await failure { try await connection.ready() } },
            Task { await failure { _ = try await connection.open([]) } },
        ]
        let next = Task { await connection.incoming.makeAsyncIterator().next() == nil }
        for waiter in waiters {
            await Task.yield()
            waiter.cancel()
            #expect(await waiter.value == .cancelled)
        }
        next.cancel()
        #expect(await next.value)
        try await peer.send(Frame.hello())
        try await connection.ready()
        await peer.close()
    }
}
