// SPDX-License-Identifier: Apache-2.0

import Baton
import BatonMessages

/// The question which of several applications opens a web page. The handoff goes on meanwhile, and may end before there
/// is an answer.
actor StandingQuestion {
    private var isOpen = false
    /// The failure of the question, for which the handoff was cancelled.
    private(set) var failure: (any Error)?

    /// Asks, and sends the answer to the node. If the command cannot ask, it cancels the handoff.
    func ask(_ applications: [WireInstalledApplication], of handoff: NodeHandoff) {
        isOpen = true
        // Do not wait for this: a read from a terminal ends only with a line.
        Task {
            let chosen: WireInstalledApplication
            do {
                chosen = try await ApplicationChooser.ask(applications)
            } catch {
                isOpen = false
                failure = error
                return await handoff.cancel()
            }
            isOpen = false
            // If the handoff is over, it has reported the reason.
            try? await handoff.choose(chosen)
        }
    }

    /// No answer is needed any more. The next message begins below the question.
    func end() {
        if isOpen { Output.say("") }
        isOpen = false
    }
}

enum ApplicationChooser {
    static func ask(_ applications: [WireInstalledApplication]) async throws -> WireInstalledApplication {
        guard NumberedChoice.isPossible else { throw ambiguous(applications) }
        return applications[try await NumberedChoice(lines: lines(applications)).ask("Continue it in which?")]
    }

    /// The error if the command cannot ask.
    static func ambiguous(_ applications: [WireInstalledApplication]) -> CommandError {
        CommandError(
            .usage, code: "ambiguousApplication",
            "\(applications.count) applications continue it: choose one with --application ID\n"
                + lines(applications).map { "  " + $0 }.joined(separator: "\n"))
    }

    private static func lines(_ applications: [WireInstalledApplication]) -> [String] {
        applications.map { "\(SafeText.escaped($0.name))  (\(SafeText.escaped($0.identifier)))" }
    }
}
