// SPDX-License-Identifier: Apache-2.0

import BatonSimulation
import Glibc

/// The command behind `Scripts/simulate`.
@main
struct Simulate {
    private var devices = 8
    private var hours = 0.05
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

    /// Prints a line at once, also to a pipe.
    private static func say(_ text: String) {
        print(text)
        fflush(nil)
    }

    private func say(_ text: String) { Self.say(text) }

    private static func fail(_ text: String) -> Never {
        say("simulate: \(text)")
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
                scale = [4, 12, 20, 100, 200, 500, 1000, 2000, 5000]
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
            say(ScaleReport.table(of: scale, seed: seed))
            say("\ncaptures of real hosts, and the model:")
            say(ScaleReport.comparison(seed: seed))
            return true
        }
        say("seed \(seed), \(devices) devices, \(hours) h a run")
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
            if isTraced { say(outcome.lines.joined(separator: "\n")) }
            if let violation = outcome.violation {
                report(violation, of: plan, after: taken)
                return false
            }
            if taken > lastSaid + .seconds(30) {
                lastSaid = taken
                say("  \(done) runs, \(total.handoffs) handoffs, no violation")
            }
        }
        say(Report.text(total, runs: done, devices: devices, taken: taken))
        say("no violation")
        return true
    }

    private func plan(_ number: Int) -> Plan {
        Plan(seed: seed &+ UInt64(number), devices: devices, length: .seconds(hours * 3600), faults: faults)
    }

    private func report(_ violation: Violation, of plan: Plan, after taken: Duration) {
        say("VIOLATION of \(violation)")
        say("found after \(Report.number(taken / .seconds(1))) s; again with:")
        let list = faults.map(\.rawValue).sorted().joined(separator: ",")
        say("  Scripts/simulate --devices \(devices) --hours \(hours) --seed \(plan.seed) --faults \(list)")
        let shortest = Simulation.shorten(plan, breaking: violation.invariant)
        let outcome = Simulation.run(shortest, isTraced: true)
        say("the shortest history that was found, with \(shortest.count) of \(plan.count) acts and faults:")
        say(outcome.lines.joined(separator: "\n"))
        if let violation = outcome.violation { say("violation of \(violation)") }
    }
}
