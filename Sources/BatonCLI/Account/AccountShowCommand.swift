// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Baton
import BatonAccount

/// `baton account show`
struct AccountShowCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Show which account and which device this is; never the key.",
        discussion: """
            Devices of one account show the same account id.

            EXAMPLES:
              baton account show
              baton account show --json
            """)

    @OptionGroup var output: JSONOption

    func run() throws {
        let store = CommandEnvironment.accountStore(try CommandEnvironment.home())
        let account: Account
        do {
            account = try store.load()
        } catch {
            throw CommandError(error)
        }
        if output.json {
            try Output.line(
                JSONValue.object([
                    JSONValue.Member("accountID", .string(account.id.description)),
                    JSONValue.Member("device", .string(account.deviceName)),
                    JSONValue.Member("deviceID", .string(account.identity.id.description)),
                ]).text)
        } else {
            try Output.line("account    \(account.id)")
            try Output.line("device     \(SafeText.escaped(account.deviceName))")
            try Output.line("device id  \(account.identity.id)")
        }
    }
}
