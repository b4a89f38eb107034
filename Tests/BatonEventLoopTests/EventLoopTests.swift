// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonTestSupport
import Dispatch
import Testing

/// An actor of a loop.
private actor Counter {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    private(set) var value = 0

    init(on loop: EventLoop) { self.loop = loop }

    func add() { value += 1 }
    func isOnLoop() -> Bool { loop.isCurrent }
}

@Suite("Event loop")
struct EventLoopTests {
    @Test("An actor of the loop runs on the loop")
    func actorRunsOnLoop() async throws {
        let loop = EventLoop(name: "test")
        #expect(!loop.isCurrent)
        #expect(await Counter(on: loop).isOnLoop())
    }

    @Test("A handler on the loop enters the actor synchronously")
    func handlerEntersActor() async throws {
        let loop = EventLoop(name: "test")
        let counter = Counter(on: loop)
        let entered = Box(false)
        loop.execute {
            counter.assumeIsolated { $0.add() }
            entered.value = true
        }
        try await eventually("entered") { entered.value }
        #expect(await counter.value == 1)
    }

    @Test("Work and jobs of actors run in the order in which they were added")
    func order() async throws {
        let loop = EventLoop(name: "test")
        let seen = Box<[Int]>([])
        for number in 0..<1000 {
            loop.execute { seen.change { $0.append(number) } }
        }
        try await eventually("all ran") { seen.value.count == 1000 }
        #expect(seen.value == Array(0..<1000))
    }

    @Test("A loop ends with its last reference, and pending work keeps it alive")
    func release() async throws {
        var loop: EventLoop? = EventLoop(name: "test")
        let released = WeakBox(loop!)
        var counter: Counter? = Counter(on: loop!)
        let ran = Box(0)
        for _ in 0..<10 {
            loop!.execute { ran.change { $0 += 1 } }
        }
        await counter!.add()
        loop = nil
        counter = nil
        try await eventually("released") { released.isReleased && ran.value == 10 }
    }

    @Test("A group gives its loops in turn and has at least 1 and at most 64")
    func group() {
        let group = EventLoopGroup(name: "test", count: 3)
        let turns = (0..<6).map { _ in group.next() }
        #expect(turns.map(\.name) == ["test-0", "test-1", "test-2", "test-0", "test-1", "test-2"])
        #expect(EventLoopGroup(name: "test", count: 0).loops.count == 1)
        #expect(EventLoopGroup(name: "test", count: 64).loops.count == 64)
        #expect(EventLoopGroup(name: "test", count: 65).loops.count == 64)
    }

    @Test("The clock rises and runs no slower than the clock that stops during sleep")
    func clock() {
        let first = MonotonicClock.nanoseconds()
        let second = MonotonicClock.nanoseconds()
        #expect(first <= second)
        #expect(second >= DispatchTime.now().uptimeNanoseconds - 1_000_000)
    }
}

extension OwnProcess {
    @Suite("Event loop")
    struct EventLoopEntryTests {
        @Test("Entering an actor from another thread stops the process")
        func wrongEntryStops() async throws {
            await #expect(processExitsWith: .failure) {
                let counter = Counter(on: EventLoop(name: "test"))
                let enter: @Sendable () -> Void = { counter.assumeIsolated { $0.add() } }
                enter()
            }
        }
    }
}
