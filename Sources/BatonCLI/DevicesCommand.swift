// SPDX-License-Identifier: Apache-2.0

import ArgumentParser

/// `baton devices`
struct DevicesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "devices",
        abstract: "List the other devices of the account, rename this one, or lock one out.",
        subcommands: [
            DevicesListCommand.self, DevicesRenameCommand.self, DevicesForgetCommand.self, DevicesRevokeCommand.self,
        ], defaultSubcommand: DevicesListCommand.self)
}
