// SPDX-License-Identifier: Apache-2.0

import ArgumentParser

/// `baton transfers`
struct TransfersCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "transfers",
        abstract: "List what this device offers, sends, receives and keeps; cancel a transfer.",
        subcommands: [TransfersListCommand.self, TransfersCancelCommand.self, TransfersDiscardCommand.self],
        defaultSubcommand: TransfersListCommand.self)
}
