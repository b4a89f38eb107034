// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import BatonTestSupport
import Testing

@testable import BatonTransport

@Suite("Back-pressure", .timeLimit(.minutes(3)))
struct BackPressureTests {
    private static let window = 64 << 10

    @Test("Unread bytes stay queued at the sender, and write returns how many", arguments: Side.allCases)
    func writeTellsWhatIsQueued(side: Side) async throws {
        let pair = try await ConnectedPair(limits: .windows(stream: Self.window, connection: 4 * Self.window))
        let (near, far) = try await pair.stream(from: side)
        #expect(try await near.write(.pattern(1 << 20)) == (1 << 20) - Self.window)
        #expect(try await near.write(.pattern(10)) == (1 << 20) - Self.window + 10)
        #expect(try await near.write(.pattern(0)) == (1 << 20) - Self.window + 10)
        // The receiver never holds more than one window.
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
        // It does not wait at the bound itself.
        #expect(try await near.write(.pattern(total)) == Connection.sendQueueBound)
        let returned = Flag()
        let writing = Task {
            let queued = try await near.write(.pattern(1, from: total))
            await returned.raise()
            return queued
        }
        // Other streams open and end meanwhile, because the wait holds up no other stream.
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

    @Test("A second task that would have to wait to write fails and sends nothing, and the first continues")
    func secondWriter() async throws {
        let pair = try await ConnectedPair(limits: .windows(stream: Self.window, connection: 4 * Self.window))
        let (near, far) = try await pair.stream()
        let total = Connection.sendQueueBound + Self.window
        let writing = Task { try await near.write(.pattern(total + 1)) }
        try await eventually("it waits") { try await near.drained(to: .max) > Connection.sendQueueBound }
        for _ in 0..<3 { #expect(await failure { try await near.write(.pattern(1)) } == .alreadyWaiting) }
        #expect(await failure { try await near.drained() } == .alreadyWaiting)
        // A write that fits does not wait.
        try await near.write(.pattern(1, from: total + 1), queueBound: .max)
        async let received = far.readAll()
        #expect(try await writing.value <= Connection.sendQueueBound)
        await near.finish()
        // The refused bytes were not sent.
        let all = try await received
        #expect(all == pattern(total + 2))
        await pair.close()
    }

    @Test("If tasks begin to wait to write at the same moment, one continues and the others send nothing")
    func writersAtOnce() async throws {
        let pair = try await ConnectedPair(limits: .windows(stream: Self.window, connection: 4 * Self.window))
        let (near, far) = try await pair.stream()
        try await near.write(.pattern(Self.window))
        async let received = far.readAll()
        let size = 2 * Self.window
        var accepted = 0
        for _ in 0..<100 {
            accepted += await withTaskGroup(of: TransportError.Code?.self) { group in
                for _ in 0..<3 {
                    group.addTask { await failure { try await near.write(.pattern(size), queueBound: 0) } }
                }
                return await group.reduce(0) { sum, code in
                    #expect(code == nil || code == .alreadyWaiting)
                    return code == nil ? sum + 1 : sum
                }
            }
        }
        await near.finish()
        #expect(accepted >= 100)
        #expect(try await received.count == Self.window + accepted * size)
        await pair.close()
    }

    @Test("A second task that would have to wait to read fails, and the first continues")
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

    @Test("A reader that is refused and cancelled neither wakes the waiting one nor changes its bound")
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

    /// Each leaves the actor between its check and its wait.
    @Test("If tasks begin to wait to read at the same moment, one continues and the others fail")
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

    @Test("All unread streams together hold no more than the connection's window")
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
