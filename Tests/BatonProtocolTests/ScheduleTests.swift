// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import BatonTestSupport
import Testing

@Suite struct ScheduleTests {
    @Test func controlGoesFirst() throws {
        let lone = Lone(.dialer, hello: .hello(connection: 1 << 30, stream: 1 << 30))
        let document = try lone.session.open(Buffer(1), now: lone.now)
        _ = lone.output()
        lone.session.send(document, Buffer(repeating: 1, count: 8 << 20))
        _ = lone.outputBytes(room: 100_000)
        lone.receive(.ping(5))
        let other = try lone.session.open(Buffer(2), now: lone.now)
        let frames = try #require(WireFrame.parse(lone.outputBytes(room: 100_000)))
        #expect(frames.prefix(2) == [.pong(5), .open(other.rawValue, [2])])
        #expect(frames.dropFirst(2).first?.type == 4)
    }

    /// A small answer leaves with the next output, whatever other streams have queued.
    @Test func aSmallStreamPassesADocument() throws {
        let lone = Lone(.dialer, hello: .hello(connection: 1 << 30, stream: 1 << 30))
        let document = try lone.session.open(Buffer(1), now: lone.now)
        lone.session.send(document, Buffer(repeating: 1, count: 64 << 20))
        _ = lone.outputBytes(room: 100_000)
        let small = try lone.session.open(Buffer(1), now: lone.now)
        lone.session.send(small, Buffer(repeating: 2, count: 100))
        lone.session.finish(small)
        let frames = try #require(WireFrame.parse(lone.outputBytes(room: 200_000)))
        let position = try #require(frames.firstIndex { $0.stream == small.rawValue && $0.type == 4 })
        #expect(frames[..<position].reduce(0) { $0 + $1.payload.count } <= 65_536 + 1)
        #expect(frames[position + 1] == .end(small.rawValue))
    }

    @Test func turnsAreEven() throws {
        let lone = Lone(.dialer, hello: .hello(connection: 1 << 30, stream: 1 << 30))
        let ids = try (0..<7).map { _ in try lone.session.open(Buffer(1), now: lone.now) }
        for id in ids { lone.session.send(id, Buffer(repeating: 1, count: 1 << 20)) }
        _ = lone.outputBytes(room: 1000)
        var sent: [UInt32: Int] = [:]
        for _ in 0..<20 {
            for frame in WireFrame.parse(lone.outputBytes(room: 100_000)) ?? [] {
                sent[frame.stream, default: 0] += frame.payload.count
            }
            let counts = ids.map { sent[$0.rawValue] ?? 0 }
            #expect(counts.max()! - counts.min()! <= 2 * 65_536)
        }
    }

    /// A stream of the greatest weight has eight slices at each of its turns. Then the other stream has its turn.
    @Test func theHeaviestKeepsNobodyWaitingForMoreThanItsTurn() throws {
        #expect(Limits.maximumWeight == 8)
        let lone = Lone(.dialer, hello: .hello(connection: 1 << 30, stream: 1 << 30))
        let (heavy, light) = (
            try lone.session.open(Buffer(1), now: lone.now), try lone.session.open(Buffer(1), now: lone.now)
        )
        lone.session.setWeight(Limits.maximumWeight, of: heavy)
        for id in [heavy, light] { lone.session.send(id, Buffer(repeating: 1, count: 8 << 20)) }
        let frames = try #require(WireFrame.parse(lone.outputBytes(room: 3 << 20))).filter { $0.type == 4 }
        let slice = Limits().sliceBytes
        var turns: [(stream: UInt32, bytes: Int)] = []
        for frame in frames {
            if turns.last?.stream != frame.stream { turns.append((frame.stream, 0)) }
            turns[turns.count - 1].bytes += frame.payload.count
        }
        // The last one may have been cut by the end of the output.
        #expect(turns.count > 4)
        for turn in turns.dropLast() {
            #expect(turn.bytes == (turn.stream == heavy.rawValue ? Limits.maximumWeight : 1) * slice)
        }
    }

    @Test(arguments: [0, 1, Limits.maximumWeight, Limits.maximumWeight + 1]) func weightsHaveTheirBounds(weight: Int)
        async
    {
        await #expect(processExitsWith: (1...Limits.maximumWeight).contains(weight) ? .success : .failure) { [weight] in
            let lone = Lone(.dialer)
            let id = try lone.session.open(Buffer(1), now: lone.now)
            lone.session.setWeight(weight, of: id)
        }
    }

    @Test func smallBuffersShareAFrame() throws {
        let lone = Lone(.dialer)
        let id = try lone.session.open(Buffer(1), now: lone.now)
        for byte in 0..<100 { lone.session.send(id, Buffer(UInt8(byte))) }
        #expect(lone.output() == [.open(1, [1]), .data(1, Array(0..<100))])
    }

    @Test func framesAreNotTornSmallAtTheEndOfAnOutput() throws {
        let lone = Lone(.dialer, hello: .hello(connection: 1 << 30, stream: 1 << 30))
        let id = try lone.session.open(Buffer(1), now: lone.now)
        lone.session.send(id, Buffer(repeating: 1, count: 1 << 20))
        let frames = try #require(WireFrame.parse(lone.outputBytes(room: 65_536 + 10 + 11 + 2000)))
        #expect(frames.map(\.payload.count) == [1, 65_526])
    }

    /// The OPEN takes eleven bytes of space. Without the rule, this turn and every later one would be cut.
    @Test func turnIsNotTornForNextToNothingOfIt() throws {
        let lone = Lone(.dialer, hello: .hello(connection: 1 << 30, stream: 1 << 30))
        let id = try lone.session.open(Buffer(1), now: lone.now)
        lone.session.send(id, Buffer(repeating: 1, count: 1 << 20))
        let outputs = try (0..<4).map { _ in
            try #require(WireFrame.parse(lone.outputBytes(room: 65_536))).map(\.payload.count)
        }
        #expect(outputs == [[1], [65_526], [65_526], [65_526]])
    }

    @Test(arguments: [128, 129, 200, 1000, 5000]) func anyRoomIsEnough(room: Int) throws {
        let lone = Lone(.dialer, hello: nil)
        let message = [UInt8](repeating: 3, count: 65_536)
        _ = try lone.session.open(Buffer(copying: message), now: lone.now)
        var bytes: [UInt8] = []
        lone.receive(.hello())
        lone.session.send(1, Buffer(repeating: 4, count: 100_000))
        lone.session.finish(1)
        while lone.hasOutput {
            let part = lone.outputBytes(room: room)
            try #require(!part.isEmpty)
            bytes += part
        }
        let frames = try #require(WireFrame.parse(bytes))
        #expect(frames.first?.type == 1)
        #expect(frames.dropFirst().first == .open(1, message))
        #expect(frames.filter { $0.type == 4 }.reduce(0) { $0 + $1.payload.count } == 100_000)
        #expect(frames.last == .end(1))
    }

    @Test func aBufferIsReleasedOnceItIsSent() throws {
        let lone = Lone(.dialer)
        let id = try lone.session.open(Buffer(1), now: lone.now)
        weak var released: Buffer?
        do {
            let buffer = Buffer(repeating: 1, count: 1000)
            released = buffer
            lone.session.send(id, buffer)
        }
        #expect(released != nil)
        _ = lone.output()
        #expect(released == nil)
    }
}
