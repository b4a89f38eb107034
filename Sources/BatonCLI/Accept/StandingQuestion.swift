// SPDX-License-Identifier: Apache-2.0

import Baton
import BatonMessages

/// Which of several applications opens a web page: the user is asked while the handoff is followed, which may end
/// before there is an answer.
actor StandingQuestion {
    private var isOpen = false
    /// Why there was no answer, for which the handoff was cancelled.
    private(set) var failure: (any Error)?

    /// Asks, and tells the node the answer; where nobody can be asked the handoff is cancelled.
    func ask(_ applications: [WireInstalledApplication], of handoff: NodeHandoff) {
        isOpen = true
        // Not waited for: a read from a terminal ends with a line and not before.
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
            // A handoff that is over has said why.
            try? await handoff.choose(chosen)
        }
    }

    /// Nobody waits for an answer any more: what is said next stands below the question.
    func end() {
        if isOpen { Output.say("") }
        isOpen = false
    }
}
