// SPDX-License-Identifier: Apache-2.0

/// Runs of the simulated world, and what came of them.
package enum Simulation {
    package struct Outcome: Sendable {
        package let violation: Violation?
        package let statistics: Statistics
        /// One line for each event, if it was asked for.
        package let lines: [String]
    }

    package static func run(_ plan: Plan, isTraced: Bool = false) -> Outcome {
        let world = SimulatedWorld(plan, isTraced: isTraced)
        world.run()
        return Outcome(violation: world.ledger.violation, statistics: world.statistics, lines: world.trace.lines)
    }

    /// Leaves out as many of a plan's faults and acts as it can, so that the same invariant is still broken.
    ///
    /// It tries large parts first, then smaller ones (Zeller's delta debugging), for at most so long.
    package static func shorten(
        _ plan: Plan, breaking invariant: Invariant, within time: Duration = .seconds(60)
    ) -> Plan {
        var shortest = plan
        let clock = ContinuousClock()
        let end = clock.now + time
        func isBroken(_ plan: Plan) -> Bool {
            clock.now < end && run(plan).violation?.invariant == invariant
        }
        let taken = run(plan).statistics.simulated
        shortest.entries.removeAll { $0.time > taken }
        for fault in Fault.allCases {
            let candidate = shortest.without(fault)
            if isBroken(candidate) { shortest = candidate }
        }
        var size = max(1, shortest.entries.count / 2)
        while clock.now < end {
            var (start, hasChanged) = (0, false)
            while start < shortest.entries.count, clock.now < end {
                var candidate = shortest
                candidate.entries.removeSubrange(start..<min(start + size, candidate.entries.count))
                if isBroken(candidate) {
                    (shortest, hasChanged) = (candidate, true)
                } else {
                    start += size
                }
            }
            if size == 1, !hasChanged { break }
            size = max(1, size / 2)
        }
        return shortest
    }
}

extension Plan {
    package var count: Int { entries.count }

    fileprivate func without(_ fault: Fault) -> Plan {
        var plan = self
        switch fault {
        case .loss: plan.noise.loss = 0
        case .duplication: plan.noise.duplication = 0
        case .delay: plan.noise.delay = 0.005
        case .cuts: plan.noise.cuts = 0
        case .clocks: plan.noise.drift = 0
        case .applications: plan.noise.failures = 0
        case .partitions, .oneway, .sleep, .crashes, .revocations: break
        }
        plan.entries = plan.entries.filter { $0.act.fault != fault }
        return plan
    }
}

extension Act {
    /// The kind of fault that it is.
    fileprivate var fault: Fault? {
        switch self {
        case .crash: .crashes
        case .sleep: .sleep
        case .cut: .cuts
        case .partition: .partitions
        case .block: .oneway
        case .setClock: .clocks
        case .revoke: .revocations
        case .offer, .update, .withdraw, .accept, .cancel, .cancelTransfer, .letGo, .setSwitch, .leave, .join: nil
        }
    }
}
