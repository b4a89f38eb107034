import ArgumentParser

/// `baton account`: the set of a person's devices.
struct AccountCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "account",
        abstract: "Make, join, show or leave the account that your devices share.",
        subcommands: [
            AccountCreateCommand.self, AccountJoinCommand.self, AccountShowCommand.self, AccountLeaveCommand.self,
        ])
}
