// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import Testing

@testable import BatonDocuments

@Suite("What a transfer waits for")
struct BottleneckMeterTests {
    /// A transfer in simulated time, whose stages take their share of every step of 10 ms.
    private struct Simulation {
        private(set) var now: Instant
        var meter: BottleneckMeter
        var bottleneck: Bottleneck { meter.bottleneck(now: now) }

        init() {
            now = Instant(nanoseconds: 5_000_000_000)
            meter = BottleneckMeter(now: now)
        }

        mutating func run(_ milliseconds: Int, link: Int = 0, disk: Int = 0, processor: Int = 0) {
            for _ in 0..<milliseconds / 10 {
                now = now + .milliseconds(10)
                meter.add(.link, .milliseconds(10) * link / 100, now: now)
                meter.add(.disk, .milliseconds(10) * disk / 100, now: now)
                meter.add(.processor, .milliseconds(10) * processor / 100, now: now)
            }
        }

        /// Time in which no stage ends.
        mutating func pass(_ milliseconds: Int) { now = now + .milliseconds(milliseconds) }
    }

    @Test("Each stage that takes the most is named", arguments: [Bottleneck.link, .disk, .processor])
    func named(_ stage: Bottleneck) {
        for (most, other) in [(100, 0), (70, 20), (40, 30)] {
            var simulation = Simulation()
            simulation.run(
                1000, link: stage == .link ? most : other, disk: stage == .disk ? most : other,
                processor: stage == .processor ? most : other)
            #expect(simulation.bottleneck == stage, "\(most) %")
        }
    }

    @Test("Nothing is named before 100 ms were measured")
    func warmUp() {
        var simulation = Simulation()
        #expect(simulation.bottleneck == .unknown)
        simulation.run(80, disk: 100)
        #expect(simulation.bottleneck == .unknown)
        simulation.run(50, disk: 100)
        #expect(simulation.bottleneck == .disk)
    }

    @Test("A transfer that waits for nothing, or for what nobody knows, names nothing")
    func idle() {
        var simulation = Simulation()
        simulation.run(5000, link: 1)
        #expect(simulation.bottleneck == .unknown)
        simulation.meter.add(.unknown, .seconds(10), now: simulation.now)
        #expect(simulation.bottleneck == .unknown)
    }

    @Test("A change is named within 3 s, however long it was otherwise before", arguments: [1, 10, 600])
    func change(_ seconds: Int) {
        var simulation = Simulation()
        simulation.run(seconds * 1000, link: 90, disk: 10)
        #expect(simulation.bottleneck == .link)
        simulation.run(3000, link: 5, disk: 10, processor: 85)
        #expect(simulation.bottleneck == .processor)
        simulation.run(3000, link: 0, disk: 95, processor: 5)
        #expect(simulation.bottleneck == .disk)
    }

    @Test("What is over is forgotten")
    func forgotten() {
        var simulation = Simulation()
        simulation.run(2000, link: 100)
        simulation.run(60_000)
        #expect(simulation.bottleneck == .unknown)
    }

    @Test("A stage that hangs is named while it lasts", arguments: [Bottleneck.link, .disk])
    func hanging(_ stage: Bottleneck) {
        let other: Bottleneck = stage == .link ? .disk : .link
        var simulation = Simulation()
        simulation.run(10_000, link: other == .link ? 100 : 0, disk: other == .disk ? 100 : 0)
        simulation.meter.begin(other, now: simulation.now)
        simulation.meter.begin(stage, now: simulation.now)
        // A wait like any other says nothing yet.
        simulation.pass(990)
        #expect(simulation.bottleneck == other)
        simulation.pass(2000)
        #expect(simulation.bottleneck == stage)
        simulation.pass(60_000)
        #expect(simulation.bottleneck == stage)
        // The true cause is known when the wait has ended.
        simulation.meter.add(.processor, .seconds(63), now: simulation.now)
        simulation.meter.begin(other, now: simulation.now)
        #expect(simulation.bottleneck == .processor)
    }

    @Test("What hangs from the beginning on is named")
    func hangingAtOnce() {
        var simulation = Simulation()
        simulation.meter.begin(.disk, now: simulation.now)
        simulation.pass(990)
        #expect(simulation.bottleneck == .unknown)
        simulation.pass(10)
        #expect(simulation.bottleneck == .disk)
    }

    @Test("A clock that stands still or goes back does no harm")
    func clock() {
        var simulation = Simulation()
        simulation.run(1000, disk: 100)
        simulation.meter.add(.disk, .milliseconds(10), now: Instant(nanoseconds: 0))
        #expect(simulation.bottleneck == .disk)
        simulation.run(3000, link: 100)
        #expect(simulation.bottleneck == .link)
    }
}
