// SPDX-License-Identifier: Apache-2.0

import BatonSimulation
import BatonTestSupport
import Testing

/// Devices in simulated time. `Scripts/simulate` runs more of them, and shortens the history of a violation.
@Suite("Simulated devices, with faults")
struct SimulationTests {
    /// Seeds whose runs once broke an invariant, with their numbers of devices and their seconds.
    private static let failed: [(seed: UInt64, devices: Int, seconds: Int)] = [
        (1, 6, 180), (1, 8, 180), (4, 8, 180), (5, 8, 180), (6, 8, 180), (60, 8, 180), (33672, 8, 180),
        (104, 8, 180), (70074, 8, 180), (501824, 8, 180), (990149, 8, 180),
    ]

    private func plan(_ seed: UInt64, devices: Int = 6, seconds: Int = 60) -> Plan {
        Plan(seed: seed, devices: devices, length: .seconds(seconds), faults: Set(Fault.allCases))
    }

    @Test("Fresh seeds break no invariant")
    func fresh() {
        let seed = SeededGenerator.chosenSeed
        var handoffs = 0
        for number in 0..<12 {
            let plan = plan(seed &+ UInt64(number))
            let outcome = Simulation.run(plan)
            handoffs += outcome.statistics.handoffs
            guard let violation = outcome.violation else { continue }
            let lines = Simulation.run(Simulation.shorten(plan, breaking: violation.invariant), isTraced: true).lines
            Issue.record("seed \(plan.seed): \(violation)\n\(lines.joined(separator: "\n"))")
            return
        }
        print("simulation: \(handoffs) handoffs from seed \(seed) on")
        #expect(handoffs > 100)
    }

    @Test("Seeds that failed once break no invariant")
    func failedBefore() {
        for (seed, devices, seconds) in Self.failed {
            let outcome = Simulation.run(plan(seed, devices: devices, seconds: seconds))
            #expect(outcome.violation == nil, "seed \(seed)")
        }
    }

    @Test("A seed runs the same way each time")
    func replay() {
        let plan = plan(7)
        let (first, second) = (Simulation.run(plan, isTraced: true), Simulation.run(plan, isTraced: true))
        #expect(first.lines == second.lines && first.statistics.events == second.statistics.events)
        #expect(first.lines.count > 100)
    }

    @Test("The traffic of an idle network grows with its devices, and not with their square")
    func scale() {
        let (few, many) = (ScaleReport.idleTraffic(of: 10, seed: 1), ScaleReport.idleTraffic(of: 100, seed: 1))
        #expect(many > 9 * few && many < 20 * few)
    }
}
