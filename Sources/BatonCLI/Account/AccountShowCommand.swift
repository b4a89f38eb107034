// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Baton
import BatonAccount

/// `baton account show`
struct AccountShowCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Show which account and which device this is, or the account key.",
        discussion: """
            Devices of one account show the same account id.

            With --key it asks for the passphrase of `baton account create`, and prints the account key, alone on \
            standard output. If standard input is no terminal, the passphrase is its first line. --qr draws the key \
            as a QR code below it.

            EXAMPLES:
              baton account show
              baton account show --json
              baton account show --key
              baton account show --key --qr
            """)

    @Flag(name: .long, help: "Print the account key, if this device keeps it.")
    var key = false

    @Flag(name: .long, help: "With --key: draw it as a QR code too.")
    var qr = false

    @OptionGroup var output: JSONOption

    func run() async throws {
        let store = CommandEnvironment.accountStore(try CommandEnvironment.home())
        do {
            let account = try store.load()
            let sealedKey = try store.sealedKey()
            if key { try await show(sealedKey, of: account) } else { try show(account, isKeyKept: sealedKey != nil) }
        } catch let error as AccountError {
            throw CommandError(error)
        }
    }

    func validate() throws {
        if qr, !key { throw ValidationError("--qr goes with --key") }
        if key, output.json { throw ValidationError("--key prints the key alone: leave out --json") }
    }

    private func show(_ sealedKey: SealedAccountKey?, of account: Account) async throws {
        guard let sealedKey else {
            throw CommandError(
                .account, code: "account",
                "the account key is not kept on this device: run this on the device that made the account")
        }
        let unlocked = try await PassphraseInput.require(for: sealedKey, of: account.id)
        // Before the key is printed, so that a missing library is said first.
        let drawing = qr ? try KeyCode.drawing(of: unlocked.key) : nil
        try AccountCreateCommand.show(unlocked.key, under: "This is the account key:")
        if let drawing { try Output.secret(drawing) }
    }

    private func show(_ account: Account, isKeyKept: Bool) throws {
        if output.json {
            try Output.line(
                JSONValue.object([
                    JSONValue.Member("accountID", .string(account.id.description)),
                    JSONValue.Member("device", .string(account.deviceName)),
                    JSONValue.Member("deviceID", .string(account.identity.id.description)),
                    JSONValue.Member("keyKept", .boolean(isKeyKept)),
                ]).text)
        } else {
            try Output.line("account    \(account.id)")
            try Output.line("device     \(SafeText.escaped(account.deviceName))")
            try Output.line("device id  \(account.identity.id)")
            try Output.line("key        " + (isKeyKept ? "kept here, under your passphrase" : "not kept here"))
        }
    }
}
