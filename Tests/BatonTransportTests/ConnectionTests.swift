// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonProtocol
import BatonTestSupport
import Testing

@testable import BatonTransport

/// Two connections over a real socket pair, each on a loop of its own.
struct ConnectedPair {
    let dialer: Connection
    let acceptor: Connection

    /// Makes the pair.
    ///
    /// - Parameter budget: the acceptor's budget.
    init(limits: Limits = .patient, budget: ReceiveBudget? = nil) async throws {
        let loops = (EventLoop(name: "dialer"), EventLoop(name: "acceptor"))
        let (first, second) = try Socket.pair(on: loops.0, loops.1)
        try await self.init(first, second, on: loops, limits: limits, budget: budget)
    }

    init(
        _ first: Socket, _ second: Socket, on loops: (EventLoop, EventLoop), limits: Limits = .patient,
        budget: ReceiveBudget? = nil
    ) async throws {
        dialer = Connection(
            socket: first, channel: PlainChannel(peer: .localUser(0)), role: .dialer, limits: limits, on: loops.0)
        acceptor = Connection(
            socket: second, channel: PlainChannel(peer: .localUser(0)), role: .acceptor, limits: limits,
            budget: budget, on: loops.1)
        await dialer.start()
        await acceptor.start()
        try await dialer.ready()
        try await acceptor.ready()
    }

    /// Echoes the bytes of every stream until its END.
    func echo() -> Task<Void, Never> {
        Task { [acceptor] in
            await withDiscardingTaskGroup { group in
                for await incoming in acceptor.incoming {
                    group.addTask {
                        do {
                            try await incoming.stream.respond(incoming.request)
                            while let buffer = try await incoming.stream.read() {
                                try await incoming.stream.write(buffer)
                            }
                            await incoming.stream.finish()
                        } catch {
                            await incoming.stream.reset(.internalError)
                        }
                    }
                }
            }
        }
    }

    func close() async {
        await dialer.close()
        await acceptor.close()
    }
}

extension BatonTransport.Stream {
    /// All bytes until the peer's END.
    func readAll() async throws -> [UInt8] {
        var all: [UInt8] = []
        var buffer = try await read()
        while let received = buffer {
            all.append(contentsOf: received.bytes)
            buffer = try await read(reusing: received)
        }
        return all
    }
}

@Suite("Connection", .timeLimit(.minutes(1)))
struct ConnectionTests {
    @Test("A request, its response, bytes both ways and half-close, many times over")
    func echoes() async throws {
        let pair = try await ConnectedPair()
        let echoing = pair.echo()
        for round in 0..<500 {
            let stream = try await pair.dialer.open([1, 2, UInt8(round & 0xFF)])
            #expect(try await stream.response() == [1, 2, UInt8(round & 0xFF)])
            try await stream.write(Buffer(copying: "hello \(round)".utf8))
            await stream.finish()
            #expect(try await stream.readAll() == Array("hello \(round)".utf8))
        }
        await pair.close()
        await echoing.value
    }

    @Test("Many streams at once, each with more than its window")
    func manyStreams() async throws {
        let pair = try await ConnectedPair()
        let echoing = pair.echo()
        try await withThrowingTaskGroup { group in
            for number in 0..<20 {
                group.addTask {
                    let content = (0..<(300_000 + number)).map { UInt8(truncatingIfNeeded: $0 &* (number + 3)) }
                    let stream = try await pair.dialer.open([])
                    _ = try await stream.response()
                    async let echoed = stream.readAll()
                    for start in stride(from: 0, to: content.count, by: 70_001) {
                        let end = min(start + 70_001, content.count)
                        try await stream.write(Buffer(copying: content[start..<end]))
                    }
                    await stream.finish()
                    #expect(try await echoed == content)
                }
            }
            try await group.waitForAll()
        }
        await pair.close()
        await echoing.value
    }
}
