// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import BatonAccount
import SystemPackage

/// `baton` without a command: the way into an account, and the state of the node once there is one.
enum FirstRun {
    /// The commands that give a device an account, one a line.
    static let commands = ["baton account create", "baton account join"]

    static func run() async throws {
        do {
            _ = try CommandEnvironment.accountStore(try CommandEnvironment.home()).load()
        } catch AccountError.noAccount {
            return try await begin()
        }
        try await StatusCommand.parse([]).run()
        try Output.line("")
        try await ActivitiesCommand.parse([]).run()
    }

    /// Gives this device an account. In a pipe it prints how to.
    private static func begin() async throws {
        guard NumberedChoice.isPossible, Terminal.isTerminal(.standardOutput) else {
            for command in commands { try Output.line(command) }
            return
        }
        Output.say("Baton carries what you are doing from one of your machines to another.")
        let choice = NumberedChoice(lines: [
            "This is my first device: make an account", "Join the account of my other device",
        ])
        if try await choice.ask("Which one?") == 0 {
            try await AccountCreateCommand.parse([]).create()
            await startNode(AccountCreateCommand.next)
        } else {
            try await AccountJoinCommand.parse([]).join()
            await startNode(AccountJoinCommand.next)
        }
    }

    /// Starts the node as a service, and says what to do then.
    private static func startNode(_ then: String) async {
        do {
            try await NodeInstallCommand.parse([]).run()
            Output.say("Next: \(then).")
        } catch {
            let reason = CommandError(translating: error)?.message ?? "\(error)"
            Output.say("The node was not started as a service, because \(reason).")
            Output.say("Next: `baton node` runs it in this terminal. Then, in another one, \(then).")
        }
    }

    /// Says how to start the node of a device that has got an account, and what to do then.
    static func sayNext(_ then: String) {
        Output.say("Next: start the node with `baton node install`, or for now with `baton node`. Then \(then).")
    }
}
