// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import BatonTestSupport
import Testing

@testable import BatonTransport

@Suite("Released streams", .timeLimit(.minutes(3)))
struct ReleasedStreamTests {
    @Test("An unfinished stream of this side is cancelled")
    func ownUnfinished() async throws {
        let pair = try await ConnectedPair()
        let answerer = try await pair.stream().answerer
        #expect(await failure { _ = try await answerer.read() } == .reset(.cancelled))
        await pair.close()
    }

    @Test("A finished stream of this side that was not read to its end is cancelled")
    func ownUnread() async throws {
        let pair = try await ConnectedPair()
        let answerer: BatonTransport.Stream
        do {
            let stream = try await pair.stream()
            answerer = stream.answerer
            await stream.asker.finish()
        }
        #expect(await failure { while try await answerer.write(.pattern(1)) >= 0 {} } == .reset(.cancelled))
        await pair.close()
    }

    @Test("A stream of this side that lacks only the peer's END is not cancelled")
    func ownAnswered() async throws {
        let pair = try await ConnectedPair()
        let answerer: BatonTransport.Stream
        do {
            let stream = try await pair.stream()
            answerer = stream.answerer
            await stream.asker.finish()
        }
        try await eventually("it is let go") { await pair.dialer.isIdle }
        #expect(try await answerer.read() == nil)
        await answerer.finish()
        try await answerer.drained()
        // Each END frees its place, so more streams can be opened than may be open at a time.
        for _ in 0..<200 {
            let (asker, other) = try await pair.stream()
            await asker.finish()
            await other.finish()
        }
        await pair.close()
    }

    @Test("A stream of the peer is cancelled if its answer is not finished")
    func unanswered() async throws {
        let pair = try await ConnectedPair()
        let asker = try await pair.stream().asker
        #expect(await failure { _ = try await asker.read() } == .reset(.cancelled))
        await pair.close()
    }

    @Test("A finished answer arrives whole, however slowly the peer reads")
    func answered() async throws {
        let pair = try await ConnectedPair(limits: .windows(stream: 16 << 10, connection: 32 << 10))
        let asker: BatonTransport.Stream
        do {
            let stream = try await pair.stream()
            asker = stream.asker
            try await stream.answerer.write(.pattern(1 << 20))
            await stream.answerer.finish()
        }
        #expect(try await asker.readAll() == pattern(1 << 20))
        await asker.finish()
        try await eventually("both sides have forgotten it") { await pair.acceptor.isIdle }
        _ = try await pair.stream()
        await pair.close()
    }

    @Test("A peer that continues to send on such a stream is told to stop")
    func unwantedInput() async throws {
        let pair = try await ConnectedPair()
        let asker: BatonTransport.Stream
        do {
            let stream = try await pair.stream()
            asker = stream.asker
            await stream.answerer.finish()
        }
        #expect(try await asker.read() == nil)
        #expect(await failure { while try await asker.write(.pattern(100)) >= 0 {} } == .reset(.cancelled))
        await pair.close()
    }

    @Test("A finished stream leaves nothing behind")
    func finished() async throws {
        let pair = try await ConnectedPair()
        for _ in 0..<300 {
            let (asker, answerer) = try await pair.stream()
            try await asker.write(.pattern(10))
            await asker.finish()
            _ = try await answerer.readAll()
            await answerer.finish()
            #expect(try await asker.readAll().isEmpty)
        }
        try await eventually("both sides have forgotten all") {
            let isIdle = await (pair.dialer.isIdle, pair.acceptor.isIdle)
            return isIdle.0 && isIdle.1
        }
        await pair.close()
    }
}
