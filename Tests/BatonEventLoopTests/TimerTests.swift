// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonTestSupport
import Testing

@Suite("Timer")
struct TimerTests {
    private let loop = EventLoop(name: "test-timer")

    @Test("Fires once, on the loop, and never early")
    func firesOnce() async throws {
        let fired = Box<[UInt64]>([])
        let onLoop = Box(true)
        let timer = Timer(on: loop) { [loop] in
            fired.change { $0.append(MonotonicClock.nanoseconds()) }
            if !loop.isCurrent { onLoop.value = false }
        }
        #expect(!timer.isScheduled)
        for round in 1...5 {
            let start = MonotonicClock.nanoseconds()
            timer.schedule(after: .milliseconds(20))
            #expect(timer.isScheduled)
            try await eventually("fired") { fired.value.count == round }
            #expect(fired.value[round - 1] >= start + 20_000_000)
            #expect(!timer.isScheduled)
        }
        // A later timer of the same loop shows that nothing more fired.
        let later = Box(false)
        let other = Timer(on: loop) { later.value = true }
        other.schedule(after: .milliseconds(40))
        try await eventually("the other fired") { later.value }
        #expect(fired.value.count == 5)
        #expect(onLoop.value)
    }

    @Test("Arming again replaces the earlier time, whether sooner or later")
    func rearming() async throws {
        let fired = Box(0)
        let timer = Timer(on: loop) { fired.change { $0 += 1 } }
        timer.schedule(after: .seconds(3600))
        timer.schedule(after: .milliseconds(1))
        try await eventually("the earlier one fired") { fired.value == 1 }

        timer.schedule(after: .milliseconds(1))
        timer.schedule(after: .seconds(3600))
        let later = Box(false)
        let other = Timer(on: loop) { later.value = true }
        other.schedule(after: .milliseconds(30))
        try await eventually("the other fired") { later.value }
        // The first arming may have fired before it was replaced, but not after.
        #expect(fired.value <= 2)
        #expect(timer.isScheduled)
    }

    @Test("Arming for later times causes no extra firing, and the last time counts")
    func postponing() async throws {
        let fired = Box<[UInt64]>([])
        let timer = Timer(on: loop) { fired.change { $0.append(MonotonicClock.nanoseconds()) } }
        var due: UInt64 = 0
        for _ in 0..<50 {
            due = MonotonicClock.nanoseconds() + 30_000_000
            timer.schedule(at: due)
            try? await Task.sleep(for: .milliseconds(2))
        }
        // If a round took longer than 30 ms, the timer fired before.
        try await eventually("fired when it was due") { [due] in fired.value.contains { $0 >= due } }
        timer.schedule(after: .milliseconds(5))
        timer.cancel()
        let count = fired.value.count
        let later = Box(false)
        let other = Timer(on: loop) { later.value = true }
        other.schedule(after: .milliseconds(30))
        try await eventually("the other fired") { later.value }
        #expect(fired.value.count == count)
        timer.schedule(after: .milliseconds(10))
        try await eventually("fired again") { fired.value.count == count + 1 }
    }

    @Test("A cancel on the loop is final for a firing that is already on its way")
    func cancelOnLoop() async throws {
        let fired = Box(false)
        let done = Box(false)
        let timer = Timer(on: loop) { fired.value = true }
        loop.execute {
            timer.schedule(after: .zero)
            let start = MonotonicClock.nanoseconds()
            // The timer comes due while the loop is busy.
            while MonotonicClock.nanoseconds() < start + 20_000_000 {}
            timer.cancel()
            done.value = true
        }
        try await eventually("cancelled") { done.value }
        let later = Box(false)
        let other = Timer(on: loop) { later.value = true }
        other.schedule(after: .milliseconds(20))
        try await eventually("the other fired") { later.value }
        #expect(!fired.value)
        #expect(!timer.isScheduled)
    }

    @Test("A deadline in the past is now, and one in the far future is never")
    func deadlines() async throws {
        let fired = Box(0)
        let timer = Timer(on: loop) { fired.change { $0 += 1 } }
        timer.schedule(at: 0)
        try await eventually("fired") { fired.value == 1 }
        let deadline = MonotonicClock.nanoseconds() + 15_000_000
        timer.schedule(at: deadline)
        try await eventually("fired") { fired.value == 2 }
        #expect(MonotonicClock.nanoseconds() >= deadline)
        timer.schedule(after: .seconds(-5))
        try await eventually("fired") { fired.value == 3 }

        timer.schedule(at: .max)
        #expect(timer.isScheduled)
        timer.schedule(after: .seconds(Int64.max))
        #expect(!timer.isScheduled)
        let later = Box(false)
        let other = Timer(on: loop) { later.value = true }
        other.schedule(after: .milliseconds(20))
        try await eventually("the other fired") { later.value }
        #expect(fired.value == 3)
    }

    @Test("A handler may arm its own timer")
    func rearmsItself() async throws {
        final class Ticker: Sendable {
            let count = Box(0)
            let timer = Box<Timer?>(nil)
            init(on loop: EventLoop) {
                timer.value = Timer(on: loop) { [weak self] in self?.tick() }
                timer.value?.schedule(after: .zero)
            }
            func tick() {
                count.change { $0 += 1 }
                if count.value < 50 { timer.value?.schedule(after: .microseconds(100)) }
            }
        }
        let ticker = Ticker(on: loop)
        try await eventually("ticked") { ticker.count.value == 50 }
    }

    @Test("Releasing a timer, armed or not, cancels it and releases what its handler holds")
    func release() async throws {
        for armed in [true, false] {
            let fired = Box(false)
            let held = WeakBox(fired)
            do {
                let timer = Timer(on: loop) { [fired] in fired.value = true }
                if armed { timer.schedule(after: .seconds(3600)) }
            }
            _ = consume fired
            try await eventually("released") { held.isReleased }
        }
    }
}

extension OwnProcess {
    @Suite("Timer")
    struct TimerResourceTests {
        @Test("Timers hold no descriptor")
        func descriptors() async throws {
            await #expect(processExitsWith: .success) {
                let loop = EventLoop(name: "test")
                let fired = Box(0)
                let first = Timer(on: loop) { fired.change { $0 += 1 } }
                first.schedule(after: .zero)
                try await eventually("fired") { fired.value == 1 }
                await Machine.warmUp()
                let before = Machine.openDescriptors()
                let timers = (0..<1000).map { _ in Timer(on: loop) { fired.change { $0 += 1 } } }
                for timer in timers { timer.schedule(after: .milliseconds(5)) }
                try await eventually("all fired") { fired.value == 1001 }
                try await eventually("no more are open") { Machine.openDescriptors() <= before }
            }
        }
    }
}
