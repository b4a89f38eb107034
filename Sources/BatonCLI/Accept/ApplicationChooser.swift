// SPDX-License-Identifier: Apache-2.0

import Baton
import BatonMessages

/// The question which of several applications continues an activity.
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
