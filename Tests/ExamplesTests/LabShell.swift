// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Foundation
import Testing

/// A terminal of a lab host with a shell that has `baton` in its path.
struct LabShell {
    let terminal: LabTerminal

    /// Opens the terminal, in the home folder.
    init(_ lab: HandoffLab, _ host: Int) async throws {
        terminal = LabTerminal(lab, host)
        try await terminal.openShell()
        try await terminal.shows("prompt>")
        let folder = URL(filePath: Lab.product("baton")).deletingLastPathComponent().path
        try await type("PATH='\(folder)':$PATH; cd")
    }

    /// Types a line.
    func type(_ line: String) async throws {
        try await terminal.type(line)
        try await terminal.press("Enter")
    }

    /// Starts a command on an empty screen. It prints `ended` and the exit status behind it.
    func start(_ command: String) async throws {
        try await type("clear")
        // Only what a node prints in the background may be there.
        try await eventually("the screen is empty") { !(try await terminal.screen().contains("ended")) }
        try await type("\(command); echo ended $?")
    }

    /// The six digits that `baton account join` shows.
    func digits() async throws -> String {
        try await terminal.shows("Type these digits on the inviting device:")
        var digits: String?
        try await eventually("digits are shown") {
            digits = try await terminal.screen().firstMatch(of: /(?m)^\d{3} \d{3}$/).map { String($0.output) }
            return digits != nil
        }
        return try #require(digits)
    }
}
