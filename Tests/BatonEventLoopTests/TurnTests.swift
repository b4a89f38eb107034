// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Dispatch
import Glibc
import Testing

@testable import BatonEventLoop

@Suite("A turn of a loop")
struct TurnTests {
    /// A loop whose turn waits for longer than any test.
    private final class Waiting: Sendable {
        let loop: EventLoop
        let far: Socket
        let received = Box(0)
        private let near: Socket  // Held by its handler until it is closed.

        init(idleWait: Int32 = 3_600_000) throws {
            loop = EventLoop(name: "test", idleWait: idleWait)
            (near, far) = try Socket.pair(on: loop, EventLoop(name: "far"))
            near.start(
                onReadable: { [near, received] in
                    var bytes = [UInt8](repeating: 0, count: 100)
                    guard case .bytes(let count)? = try? bytes.withUnsafeMutableBytes({ try near.read(into: $0) })
                    else { return }
                    received.change { $0 += count }
                }, onWritable: {})
        }

        deinit { near.close() }

        func receive() async throws {
            let before = received.value
            #expect(try Peer.writeOnce(far, [1]) == 1)
            try await eventually("received") { received.value == before + 1 }
        }

        /// A box that becomes true when the loop's queue has run something else.
        func queueIsFree() -> Box<Bool> {
            let isFree = Box(false)
            loop.queue.async { isFree.value = true }
            return isFree
        }
    }

    @Test("Continues while events come, and work that is added meanwhile runs at once and in order")
    func goesOn() async throws {
        let waiting = try Waiting()
        try await waiting.receive()
        let isFree = waiting.queueIsFree()
        let seen = Box<[Int]>([])
        for number in 0..<200 {
            waiting.loop.execute { seen.change { $0.append(number) } }
            guard number.isMultiple(of: 2) else { continue }
            try await eventually("ran") { seen.value.count == number + 1 }
            try await waiting.receive()
        }
        try await eventually("all ran") { seen.value.count == 200 }
        #expect(seen.value == Array(0..<200))
        let fired = Box(false)
        let timer = Timer(on: waiting.loop) { [loop = waiting.loop] in fired.value = loop.isCurrent }
        timer.schedule(after: .milliseconds(5))
        try await eventually("fired on the loop") { fired.value }
        #expect(!isFree.value)
    }

    /// Work that puts itself on the loop again each time, until something was received or a bound is reached.
    private final class Spinning: Sendable {
        private let waiting: Waiting
        private let before: Int
        private let written: Int
        private let work: UInt64
        private let rounds = Box(0)
        /// The round in which it saw that something was received.
        let heard = Box<Int?>(nil)

        /// Makes work for a loop.
        ///
        /// - Parameters:
        ///   - written: the round in which a byte is sent.
        ///   - work: the least time of each round, in nanoseconds.
        init(_ waiting: Waiting, sendingIn written: Int, working work: UInt64) {
            self.waiting = waiting
            self.written = written
            self.work = work
            before = waiting.received.value
        }

        func run() {
            rounds.change { $0 += 1 }
            guard waiting.received.value == before, rounds.value < 10_000 else {
                heard.value = rounds.value
                return
            }
            if rounds.value == written, (try? Peer.writeOnce(waiting.far, [1])) != 1 {
                Issue.record("nothing was sent")
            }
            let end = MonotonicClock.nanoseconds() + work
            while MonotonicClock.nanoseconds() < end {}
            waiting.loop.execute { self.run() }
        }
    }

    @Test("Work that adds work runs for some rounds, and then events have their turn")
    func rounds() async throws {
        let waiting = try Waiting()
        try await waiting.receive()
        @Sendable func heard(sendingIn written: Int, working work: UInt64 = 0) async throws -> Int {
            let spinning = Spinning(waiting, sendingIn: written, working: work)
            waiting.loop.execute { spinning.run() }
            try await eventually("heard") { spinning.heard.value != nil }
            return try #require(spinning.heard.value)
        }
        // One more round sees that the byte was received.
        #expect(try await heard(sendingIn: 100) <= 100 + LoopWork.rounds + 1)
        // The first round takes all of the time.
        #expect(try await heard(sendingIn: 1, working: LoopWork.roundsTime) == 2)
        // All rounds run at once, unless they take too long on a busy machine.
        try await eventually("all rounds at once") {
            (try? await heard(sendingIn: 1)) == LoopWork.rounds + 1
        }
    }

    @Test("Ends with the loop")
    func endsWithLoop() async throws {
        var waiting: Waiting? = try Waiting()
        try await waiting!.receive()
        let isFree = waiting!.queueIsFree()
        let released = WeakBox(waiting!.loop)
        waiting = nil
        try await eventually("released") { released.isReleased && isFree.value }
    }

    @Test("Ends after a while without events, and the next event begins another turn")
    func endsByItself() async throws {
        let waiting = try Waiting(idleWait: 1)
        for _ in 0..<20 {
            try await waiting.receive()
            let isFree = waiting.queueIsFree()
            try await eventually("ended") { isFree.value }
        }
    }

    @Test("Leaves no work behind that was added as it ended")
    func endings() async throws {
        let waiting = try Waiting(idleWait: 1)
        let ran = Box(0)
        for round in 1...300 {
            try await waiting.receive()
            usleep(UInt32(round % 20) * 100)
            waiting.loop.execute { ran.change { $0 += 1 } }
            try await eventually("ran") { ran.value == round }
        }
    }

    @Test("Time on events and work counts as busy, and waiting does not")
    func busyTime() async throws {
        let waiting = try Waiting()
        try await waiting.receive()
        let before = waiting.loop.busyTime
        let done = Box(false)
        waiting.loop.execute {
            let end = MonotonicClock.nanoseconds() + 20_000_000
            while MonotonicClock.nanoseconds() < end {}
            done.value = true
        }
        try await eventually("ran") { done.value }
        try await eventually("counted") { waiting.loop.busyTime - before >= .milliseconds(20) }
        // The loop waits for longer than it works.
        let start = ContinuousClock.now
        let idle = waiting.loop.busyTime
        while ContinuousClock.now - start < .milliseconds(100) { try await Task.sleep(for: .milliseconds(10)) }
        #expect(waiting.loop.busyTime - idle < .milliseconds(50))
    }
}
