// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import BatonTestSupport
import Testing

@testable import BatonTransport

@Suite("Back-pressure", .timeLimit(.minutes(3)))
struct BackPressureTests {
    private static let window = 64 << 10

    @Test("What a reader does not take stays queued at the sender, and write tells how much", arguments: Side.allCases)
    func writeTellsWhatIsQueued(side: Side) async throws {
        let pair = try await ConnectedPair(limits: .windows(stream: Self.window, connection: 4 * Self.window))
        let (near, far) = try await pair.stream(from: side)
        #expect(try await near.write(.pattern(1 << 20)) == (1 << 20) - Self.window)
        #expect(try await near.write(.pattern(10)) == (1 << 20) - Self.window + 10)
        #expect(try await near.write(.pattern(0)) == (1 << 20) - Self.window + 10)
        // All that ever lies in the receiver's memory is one window.
        var arrived = 0
        while arrived < Self.window { arrived += try #require(try await far.read()).count }
        #expect(arrived == Self.window)
        await pair.close()
    }

    @Test("A writer waits at the bound, until the receiver reads", arguments: Side.allCases)
    func writerWaits(side: Side) async throws {
        let pair = try await ConnectedPair(limits: .windows(stream: Self.window, connection: 4 * Self.window))
        let (near, far) = try await pair.stream(from: side)
        let total = Connection.sendQueueBound + Self.window
        // At the bound itself it does not wait.
        #expect(try await near.write(.pattern(total)) == Connection.sendQueueBound)
        let returned = Flag()
        let writing = Task {
            let queued = try await near.write(.pattern(1, from: total))
            await returned.raise()
            return queued
        }
        // Another stream's whole life happens meanwhile: the waiting holds up nobody else.
        for _ in 0..<20 {
            let (asker, answerer) = try await pair.stream()
            await asker.finish()
            await answerer.finish()
            #expect(try await asker.read() == nil)
            #expect(try await answerer.read() == nil)
        }
        #expect(await !returned.isRaised)
        async let received = far.readAll()
        #expect(try await writing.value <= Connection.sendQueueBound)
        await near.finish()
        let all = try await received
        #expect(all == pattern(total + 1))
        await pair.close()
    }

    @Test("Where one task waits to write, another one that would have to fails, and the first goes on")
    func secondWriter() async throws {
        let pair = try await ConnectedPair(limits: .windows(stream: Self.window, connection: 4 * Self.window))
        let (near, far) = try await pair.stream()
        let total = Connection.sendQueueBound + Self.window
        let writing = Task { try await near.write(.pattern(total + 1)) }
        try await eventually("it waits") { try await near.drained(to: .max) > Connection.sendQueueBound }
        #expect(await failure { try await near.write(.pattern(1, from: total + 1)) } == .alreadyWaiting)
        #expect(await failure { try await near.drained() } == .alreadyWaiting)
        // What fits is sent without waiting.
        try await near.write(.pattern(1, from: total + 2), queueBound: .max)
        async let received = far.readAll()
        #expect(try await writing.value <= Connection.sendQueueBound)
        await near.finish()
        let all = try await received
        #expect(all == pattern(total + 3))
        await pair.close()
    }

    @Test("Where one task waits to read, another one that would have to fails, and the first goes on")
    func secondReader() async throws {
        let pair = try await ConnectedPair(limits: .windows(stream: Self.window, connection: 4 * Self.window))
        let (near, far) = try await pair.stream()
        let reading = Task { try await far.read()?.count }
        try await eventually("it waits") { await far.connection.isRead(far.id) }
        #expect(await failure { _ = try await far.read() } == .alreadyWaiting)
        try await near.write(.pattern(5))
        #expect(try await reading.value == 5)
        await pair.close()
    }

    @Test("A reader that is refused and cancelled wakes none that waits, and changes nothing of what it waits for")
    func cancelledSecondReader() async throws {
        let pair = try await ConnectedPair(limits: .windows(stream: Self.window, connection: 4 * Self.window))
        let (near, far) = try await pair.stream()
        let reading = Task { try await far.read(atLeast: 2)?.count }
        try await eventually("it waits") { await far.connection.isRead(far.id) }
        for _ in 0..<500 {
            let other = Task { await failure { _ = try await far.read() } }
            other.cancel()
            #expect(await other.value == .alreadyWaiting)
            #expect(await far.connection.isRead(far.id))
        }
        try await near.write(.pattern(1))
        try await near.write(.pattern(1, from: 1))
        #expect(try await reading.value == 2)
        await pair.close()
    }

    /// Each leaves the actor between its look and its wait.
    @Test("Of tasks that begin to wait to read at the same moment one goes on, and the others fail")
    func readersAtOnce() async throws {
        let pair = try await ConnectedPair(limits: .windows(stream: Self.window, connection: 4 * Self.window))
        let (near, far) = try await pair.stream()
        for _ in 0..<300 {
            let codes = try await withThrowingTaskGroup(of: TransportError.Code?.self) { group in
                for _ in 0..<3 { group.addTask { await failure { _ = try await far.read() } } }
                var codes: [TransportError.Code?] = []
                for _ in 0..<2 { codes.append(try #require(await group.next())) }
                try await near.write(.pattern(1))
                codes.append(try #require(await group.next()))
                return codes
            }
            #expect(codes == [.alreadyWaiting, .alreadyWaiting, nil])
        }
        await pair.close()
    }

    @Test("Streams that nobody reads hold no more than the connection's window in all")
    func connectionWindow() async throws {
        let pair = try await ConnectedPair(limits: .windows(stream: Self.window, connection: 2 * Self.window))
        var streams: [(asker: BatonTransport.Stream, answerer: BatonTransport.Stream)] = []
        var sent = 0
        for _ in 0..<8 {
            let stream = try await pair.stream()
            sent += Self.window - (try await stream.asker.write(.pattern(Self.window)))
            streams.append(stream)
        }
        #expect(sent == 2 * Self.window)
        for stream in streams { await stream.asker.finish() }
        try await withThrowingTaskGroup { group in
            for stream in streams {
                group.addTask {
                    let all = try await stream.answerer.readAll()
                    #expect(all == pattern(Self.window))
                }
            }
            try await group.waitForAll()
        }
        await pair.close()
    }

    @Test("drained() waits until nothing is queued")
    func drained() async throws {
        let pair = try await ConnectedPair(limits: .windows(stream: Self.window, connection: 4 * Self.window))
        let (asker, answerer) = try await pair.stream()
        try await asker.drained()
        try await asker.write(.pattern(3 * Self.window))
        let draining = Task {
            try await asker.drained()
            return try await asker.write(Buffer(capacity: 0))
        }
        var arrived = 0
        while arrived < 3 * Self.window { arrived += try #require(try await answerer.read()).count }
        #expect(try await draining.value == 0)
        await pair.close()
    }
}
