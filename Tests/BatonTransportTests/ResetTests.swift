// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import BatonTestSupport
import Testing

@testable import BatonTransport

@Suite("Stream.reset", .timeLimit(.minutes(3)))
struct ResetTests {
    @Test(
        "The code reaches the peer, whichever side resets, and both directions end",
        arguments: Side.allCases,
        [ApplicationErrorCode.refused, .sourceChanged, ApplicationErrorCode(rawValue: 70_000)])
    func codeReachesThePeer(side: Side, code: ApplicationErrorCode) async throws {
        let pair = try await ConnectedPair()
        let (near, far) = try await pair.stream(from: side)
        async let waiting = failure { _ = try await far.read() }
        await near.reset(code)
        #expect(await waiting == .reset(code))
        #expect(await failure { try await far.write(.pattern(1)) } == .reset(code))
        #expect(await failure { try await far.drained() } == .reset(code))
        #expect(await failure { _ = try await near.read() } == .streamClosed)
        #expect(await failure { try await near.write(.pattern(1)) } == .streamClosed)
        // The connection continues.
        _ = try await pair.stream()
        await pair.close()
    }

    @Test("A reset before the answer fails the task that waits for it")
    func insteadOfAnAnswer() async throws {
        let pair = try await ConnectedPair()
        let asker = try await pair.dialer.open([])
        async let waiting = failure { _ = try await asker.response() }
        let iterator = pair.acceptor.incoming.makeAsyncIterator()
        await iterator.next()?.stream.reset(.limitExceeded)
        #expect(await waiting == .reset(.limitExceeded))
        await pair.close()
    }

    @Test("A reset fails a write that waits", arguments: Side.allCases)
    func duringWrite(side: Side) async throws {
        let pair = try await ConnectedPair(limits: .windows(stream: 16 << 10, connection: 64 << 10))
        let (near, far) = try await pair.stream(from: side)
        async let writing = failure { try await near.write(.pattern(Connection.sendQueueBound + (64 << 10))) }
        _ = try await far.read()
        await far.reset(.destinationFailed)
        #expect(await writing == .reset(.destinationFailed))
        // Discarded bytes return their credit, so the connection's window is whole again.
        for _ in 0..<8 {
            let (asker, answerer) = try await pair.stream()
            async let all = answerer.readAll()
            try await asker.write(.pattern(100_000))
            await asker.finish()
            #expect(try await all.count == 100_000)
        }
        await pair.close()
    }

    @Test("Unread bytes are dropped")
    func dropsUnread() async throws {
        let pair = try await ConnectedPair()
        let (asker, answerer) = try await pair.stream()
        try await asker.write(.pattern(1000))
        _ = try await answerer.read(atLeast: 1000)
        try await asker.write(.pattern(1000))
        await asker.reset(.cancelled)
        try await eventually("the reset arrives") {
            await failure { try await answerer.drained() } == .reset(.cancelled)
        }
        #expect(await failure { _ = try await answerer.read() } == .reset(.cancelled))
        await pair.close()
    }

    @Test("Writing after finish fails")
    func writeAfterFinish() async throws {
        let pair = try await ConnectedPair()
        let (asker, answerer) = try await pair.stream()
        await asker.finish()
        #expect(await failure { try await asker.write(.pattern(1)) } == .streamClosed)
        #expect(try await answerer.read() == nil)
        await pair.close()
    }

    @Test("A request is answered once, and only by the side that was asked")
    func answers() async throws {
        let pair = try await ConnectedPair()
        let (asker, answerer) = try await pair.stream()
        #expect(await failure { try await answerer.respond([3]) } == .streamClosed)
        #expect(await failure { try await asker.respond([3]) } == .streamClosed)
        await pair.close()
    }

    @Test("A program's failure comes behind all that it wrote", arguments: Side.allCases)
    func programFailure(side: Side) async throws {
        let pair = try await ConnectedPair(limits: .windows(stream: 64 << 10, connection: 256 << 10))
        let (near, far) = try await pair.stream(from: side)
        let content = pattern(200_000)
        try await far.write(.pattern(1000))
        async let failed: Void = { () async throws in
            try await near.write(.pattern(200_000))
            await near.fail(status: 3)
        }()
        var read: [UInt8] = []
        let code = await failure { while let buffer = try await far.read() { read += buffer.bytes } }
        try await failed
        #expect(read == content && code == .reset(.programFailed(status: 3)))
        #expect(await failure { try await far.write(.pattern(1)) } == .reset(.programFailed(status: 3)))
        #expect(await failure { _ = try await near.read() } == .streamClosed)
        // The connection's window is whole again.
        for _ in 0..<4 {
            let (asker, answerer) = try await pair.stream()
            async let all = answerer.readAll()
            try await asker.write(.pattern(100_000))
            await asker.finish()
            #expect(try await all.count == 100_000)
        }
        await pair.close()
    }

    @Test("A reset without an error, behind the end, takes nothing away that is unread")
    func resetBehindTheEnd() async throws {
        let pair = try await ConnectedPair()
        let (near, far) = try await pair.stream()
        try await near.write(.pattern(1000))
        await near.finish()
        try await near.drained()
        await near.reset(.noError)
        try await eventually("the reset arrives") {
            await failure { try await far.write(.pattern(1)) } == .reset(.noError)
        }
        #expect(try await far.readAll() == pattern(1000))
        await pair.close()
    }

    @Test("What is let go unread after a program's failure gives its credit back")
    func unreadProgramFailure() async throws {
        let pair = try await ConnectedPair(limits: .windows(stream: 64 << 10, connection: 128 << 10))
        for _ in 0..<8 {
            let (near, far) = try await pair.stream()
            try await near.write(.pattern(50_000))
            await near.fail(status: 1)
            try await eventually("the failure arrives") { await failure { try await far.drained() } != nil }
        }
        await pair.close()
    }
}
