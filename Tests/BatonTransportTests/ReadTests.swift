// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import BatonTestSupport
import Testing

@testable import BatonTransport

@Suite("Stream.read(atLeast:)", .timeLimit(.minutes(3)))
struct ReadTests {
    @Test("Waits for a number of bytes, in whatever pieces they come")
    func waitsForEnough() async throws {
        let pair = try await ConnectedPair()
        let (asker, answerer) = try await pair.stream()
        async let first = answerer.read(atLeast: 1000)
        for part in 0..<10 {
            try await asker.write(.pattern(100, from: part * 100))
            try await asker.drained()
        }
        let buffer = try #require(try await first)
        #expect(Array(buffer.bytes) == pattern(1000))
        await pair.close()
    }

    @Test("The peer's END returns fewer bytes, and then nil for good")
    func endBeforeEnough() async throws {
        let pair = try await ConnectedPair()
        let (asker, answerer) = try await pair.stream()
        async let first = answerer.read(atLeast: Connection.readBound)
        try await asker.write(.pattern(10))
        await asker.finish()
        let buffer = try #require(try await first)
        #expect(buffer.count == 10)
        #expect(try await answerer.read(atLeast: 100, reusing: buffer) == nil)
        #expect(try await answerer.read() == nil)
        await pair.close()
    }

    @Test("lowerReadBound() lets a reader return with any bytes that have come or come next")
    func settles() async throws {
        let pair = try await ConnectedPair()
        let (asker, answerer) = try await pair.stream()
        async let first = answerer.read(atLeast: Connection.readBound)
        // The call must come while it reads, or the reader would wait.
        try await eventually("it waits") { await answerer.connection.isRead(answerer.id) }
        try await asker.write(.pattern(10))
        try await eventually("ten came") { await answerer.connection.unread(of: answerer.id) == 10 }
        await answerer.lowerReadBound()
        let some = try #require(try await first)
        #expect(Array(some.bytes) == pattern(10))
        // The call was for one read only.
        async let second = answerer.read(atLeast: 100, reusing: some)
        try await eventually("it waits") { await answerer.connection.isRead(answerer.id) }
        try await asker.write(.pattern(50))
        try await eventually("fifty came") { await answerer.connection.unread(of: answerer.id) == 50 }
        #expect(await answerer.connection.isRead(answerer.id))
        try await asker.write(.pattern(50, from: 50))
        let more = try #require(try await second)
        #expect(Array(more.bytes) == pattern(100))
        async let third = answerer.read(atLeast: 100, reusing: more)
        try await eventually("it waits") { await answerer.connection.isRead(answerer.id) }
        await answerer.lowerReadBound()
        try await asker.write(.pattern(1))
        #expect(try await third?.count == 1)
        await pair.close()
    }

    @Test("END alone is nil, whatever the reader waits for", arguments: [1, 1000, Int.max])
    func endAlone(bound: Int) async throws {
        let pair = try await ConnectedPair()
        let (asker, answerer) = try await pair.stream()
        async let nothing = answerer.read(atLeast: bound)
        await asker.finish()
        #expect(try await nothing == nil)
        await pair.close()
    }

    @Test("A bound above the credit does not wait for ever", arguments: [16 << 10, 64 << 10, 4 << 20])
    func boundOverCredit(window: Int) async throws {
        let pair = try await ConnectedPair(limits: .windows(stream: window, connection: window))
        let (asker, answerer) = try await pair.stream()
        let content = pattern(3 * window + 17)
        let reading = Task {
            var all: [UInt8] = []
            var buffer: Buffer?
            while let next = try await answerer.read(atLeast: Int.max, reusing: buffer) {
                all.append(contentsOf: next.bytes)
                buffer = next
            }
            return all
        }
        for start in stride(from: 0, to: content.count, by: 10_007) {
            try await asker.write(Buffer(copying: content[start..<min(start + 10_007, content.count)]))
        }
        await asker.finish()
        #expect(try await reading.value == content)
        await pair.close()
    }

    @Test("Many streams, each with less than its reader waits for, on a connection with little credit")
    func crowd() async throws {
        // Many streams together fill the window. No reader has enough bytes, and the peer may send none of them more.
        let pair = try await ConnectedPair(limits: .windows(stream: 64 << 10, connection: 96 << 10))
        try await withThrowingTaskGroup { group in
            for number in 0..<32 {
                let (asker, answerer) = try await pair.stream()
                let content = pattern(20_000 + number * 3_001, from: number)
                group.addTask {
                    for start in stride(from: 0, to: content.count, by: 4_001) {
                        try await asker.write(Buffer(copying: content[start..<min(start + 4_001, content.count)]))
                    }
                    await asker.finish()
                    #expect(try await asker.read() == nil)
                }
                group.addTask {
                    var all: [UInt8] = []
                    while let next = try await answerer.read(atLeast: Connection.readBound) {
                        all.append(contentsOf: next.bytes)
                    }
                    #expect(all == content)
                    await answerer.finish()
                }
            }
            try await group.waitForAll()
        }
        await pair.close()
    }

    @Test("A buffer that one application holds does not make another wait for more than the peer may send")
    func inHand() async throws {
        let pair = try await ConnectedPair(limits: .windows(stream: 64 << 10, connection: 96 << 10))
        let (first, slow) = try await pair.stream()
        let (second, patient) = try await pair.stream()
        try await first.write(.pattern(64 << 10))
        try await first.drained()
        // Nobody reads the rest or releases this buffer, so the peer gets no credit for either.
        let kept = try await slow.read(atLeast: 64 << 10)
        try await second.write(.pattern(1_000))
        let read = try #require(try await patient.read(atLeast: Connection.readBound))
        #expect(read.count == 1_000)
        withExtendedLifetime((kept, slow)) {}
        await pair.close()
    }
}

extension Connection {
    /// The unread bytes of a stream.
    fileprivate func unread(of id: StreamID) -> Int? { streams[id]?.unread }

    /// Whether a task waits for bytes of a stream.
    func isRead(_ id: StreamID) -> Bool { streams[id]?.reader.hasWaiter == true }

    func isWritten(_ id: StreamID) -> Bool { streams[id]?.writer.hasWaiter == true }
}
