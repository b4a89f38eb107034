// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

@testable import BatonCLI

/// `baton` without a command.
@Suite("The first run", .timeLimit(.minutes(2)))
final class FirstRunTests {
    private let home = FileManager.default.temporaryDirectory.path + "/baton-first-\(UUID().uuidString)"

    deinit { try? FileManager.default.removeItem(atPath: home) }

    @Test("At a terminal it asks one question, and makes the account")
    func create() throws {
        let made = try TerminalDialogue.run(
            [], home: home, answers: [("Which one? (1-2) ", "3"), ("Which one? (1-2) ", "1"), ("Passphrase: ", "")])
        #expect(made.status == 0, "\(made.shown)")
        #expect(made.shown.contains("Join the account of my other device"))
        #expect(made.shown.contains(/baton1(-[0-9a-z]{1,4})+/))
        #expect(made.shown.contains("The node was not started as a service, because BATON_HOME is set"))
        #expect(made.shown.contains("Next: `baton node` runs it in this terminal."))
        for line in made.shown.split(whereSeparator: \.isNewline) { #expect(line.count <= 80, "\(line)") }
        // From then on it shows the state of the node.
        let later = try TerminalDialogue.run([], home: home, answers: [])
        #expect(later.status == ExitStatus.noNode.rawValue && later.shown.contains("start one with `baton node`"))
    }

    @Test("The other answer looks for an invitation, and ^C leaves everything as it is")
    func join() throws {
        let left = try TerminalDialogue.run(
            [], home: home,
            answers: [("Which one? (1-2) ", "2"), ("invite` on a device of yours.\r\n", "\u{3}")])
        #expect(
            left.status == ExitStatus.interrupted.rawValue || left.shown.contains("cannot be looked for"), "\(left)")
        #expect(!FileManager.default.fileExists(atPath: home + "/state/account"))
    }

    @Test("In a pipe it prints the two commands")
    func pipe() async throws {
        let result = try await BuiltCommand.run([], home: home)
        #expect(result.status == 0 && result.errors.isEmpty)
        #expect(result.output == "baton account create\nbaton account join\n")
        // The same at a terminal whose output is a pipe.
        let piped = try TerminalDialogue.run(
            [], environment: ["BATON_HOME": home], answers: [], wrapper: ["sh", "-c", "\"$@\" | cat", "sh"])
        #expect(piped.shown == "baton account create\r\nbaton account join\r\n")
    }
}
