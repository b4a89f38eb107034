// SPDX-License-Identifier: Apache-2.0

import ArgumentParser

/// `baton account`: the set of a person's devices.
struct AccountCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "account",
        abstract: "Make, extend, join, show, leave or replace the account that your devices share.",
        subcommands: [
            AccountCreateCommand.self, AccountInviteCommand.self, AccountJoinCommand.self, AccountShowCommand.self,
            AccountLeaveCommand.self, AccountRotateCommand.self,
        ])
}
