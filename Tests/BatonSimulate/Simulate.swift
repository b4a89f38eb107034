// SPDX-License-Identifier: Apache-2.0

import BatonSimulation
import Glibc

/// The command behind `Scripts/simulate`.
@main
struct Simulate {
    private var devices = 8
    private var hours = 1.0
    private var seed = UInt64.random(in: 0 ... .max)
    private var faults = Set(Fault.allCases)
    private var runs = 1
    /// Runs are added until there were so many handoffs.
    private var handoffs = 0
    private var isTraced = false
    private var scale: [Int] = []

    static func main() {
        var command = Simulate()
        command.read(Array(CommandLine.arguments.dropFirst()))
        exit(command.run() ? 0 : 1)
    }

    private static func fail(_ text: String) -> Never {
        print("simulate: \(text)")
        exit(2)
    }

    private mutating func read(_ arguments: [String]) {
        var arguments = arguments[...]
        while let option = arguments.popFirst() {
            switch option {
            case "--trace":
                isTraced = true
                continue
            case "--scale":
                scale = [4, 12, 20, 100, 500, 1000, 2000, 5000]
                continue
            default: break
            }
            guard let value = arguments.popFirst() else { Self.fail("\(option) takes a value") }
            switch (option, Int(value)) {
            case ("--devices", let number?) where (2...64).contains(number): devices = number
            case ("--runs", let number?) where number > 0: runs = number
            case ("--handoffs", let number?) where number > 0: (handoffs, runs) = (number, .max)
            case ("--hours", _):
                guard let number = Double(value), number > 0, number <= 1000 else {
                    Self.fail("--hours takes a number of hours")
                }
                hours = number
            case ("--seed", _):
                guard let number = UInt64(value) else { Self.fail("a seed is a number") }
                seed = number
            case ("--faults", _):
                faults = Set(
                    value.split(separator: ",").filter { $0 != "none" }.map { name in
                        guard let fault = Fault(rawValue: String(name)) else {
                            let names = Fault.allCases.map(\.rawValue).joined(separator: ",")
                            Self.fail("there is no fault \(name); there are \(names), and none")
                        }
                        return fault
                    })
            default: Self.fail("there is no option \(option) \(value)")
            }
        }
    }

    /// - Returns: whether no invariant was broken.
    private func run() -> Bool {
        if !scale.isEmpty {
            print(ScaleReport.table(of: scale, seed: seed))
            return true
        }
        print("seed \(seed), \(devices) devices, \(hours) h a run")
        var total = Statistics()
        var (done, taken, lastSaid) = (0, Duration.zero, Duration.zero)
        let clock = ContinuousClock()
        while done < runs, handoffs == 0 || total.handoffs < handoffs {
            let plan = plan(done)
            var outcome: Simulation.Outcome?
            taken += clock.measure { outcome = Simulation.run(plan, isTraced: isTraced) }
            done += 1
            guard let outcome else { return false }
            total += outcome.statistics
            if isTraced { print(outcome.lines.joined(separator: "\n")) }
            if let violation = outcome.violation {
                report(violation, of: plan, after: taken)
                return false
            }
            if taken > lastSaid + .seconds(30) {
                lastSaid = taken
                print("  \(done) runs, \(total.handoffs) handoffs, no violation")
            }
        }
        print(Report.text(total, runs: done, devices: devices, taken: taken))
        print("no violation")
        return true
    }

    private func plan(_ number: Int) -> Plan {
        Plan(seed: seed &+ UInt64(number), devices: devices, length: .seconds(hours * 3600), faults: faults)
    }

    private func report(_ violation: Violation, of plan: Plan, after taken: Duration) {
        print("VIOLATION of \(violation)")
        print("found after \(Report.number(taken / .seconds(1))) s; again with:")
        let list = faults.map(\.rawValue).sorted().joined(separator: ",")
        print("  Scripts/simulate --devices \(devices) --hours \(hours) --seed \(plan.seed) --faults \(list)")
        let shortest = Simulation.shorten(plan, breaking: violation.invariant)
        let outcome = Simulation.run(shortest, isTraced: true)
        print("the shortest history that was found, with \(shortest.count) of \(plan.count) acts and faults:")
        print(outcome.lines.joined(separator: "\n"))
        if let violation = outcome.violation { print("violation of \(violation)") }
    }
}
