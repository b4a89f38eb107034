// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

@testable import BatonCore

/// A bounded model check: every interleaving of the claim protocol with so many faults.
@Suite("All interleavings of claims", .timeLimit(.minutes(30)))
struct ClaimModelTests {
    private static let isNightly = ProcessInfo.processInfo.environment["BATON_NIGHTLY"] != nil

    /// How a state was reached.
    private final class Step {
        let action: ClaimModel.Action
        let before: Step?

        init(_ action: ClaimModel.Action, after before: Step?) {
            self.action = action
            self.before = before
        }

        var history: [String] { (before?.history ?? []) + ["\(action)"] }
    }

    /// - Returns: the number of states.
    private func explore(_ first: ClaimModel) -> Int {
        var seen: Set<String> = [first.key]
        var frontier: [(model: ClaimModel, step: Step?)] = [(first, nil)]
        while !frontier.isEmpty {
            var next: [(model: ClaimModel, step: Step?)] = []
            for (model, step) in frontier {
                for action in model.actions {
                    let after = model.after(action)
                    let reached = Step(action, after: step)
                    if let violation = after.violation {
                        Issue.record("\(violation)\n\(reached.history.joined(separator: "\n"))")
                        return seen.count
                    }
                    if seen.insert(after.key).inserted { next.append((after, reached)) }
                }
            }
            frontier = next
        }
        return seen.count
    }

    @Test(
        "An exclusive activity moves at most once, and each handoff ends once",
        arguments: [(1, 2, 3), (2, 1, 2)], [false, true])
    func movesOnce(_ size: (devices: Int, accepts: Int, faults: Int), hasDocument: Bool) {
        let states = explore(
            ClaimModel(
                devices: size.devices, accepts: size.accepts, faults: size.faults + (Self.isNightly ? 1 : 0),
                hasDocument: hasDocument))
        print("claims of \(size.devices) devices, \(size.faults) faults, document \(hasDocument): \(states) states")
        #expect(states > 100)
    }
}
