// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import BatonAccount
import SystemPackage

/// `baton account rotate`
struct AccountRotateCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rotate",
        abstract: "Replace this device's account, because its key leaked.",
        discussion: """
            Anyone who has the account key can add devices to the account, and no revocation keeps them out. This \
            command makes a new account with a new key and moves this device into it. It removes the old account from \
            this device. The new key is printed alone on standard output.

            A device that keeps the account key under a passphrase asks for it, and keeps the new key under the same \
            one. If standard input is no terminal, the passphrase is its first line.

            Each other device stays in the old account until you run `baton account leave` there, and `baton account \
            join` again. Until then it and this device do not see each other.

            To lock out a lost device, `baton devices revoke` is enough if nobody has the key.

            EXAMPLES:
              baton account rotate
              (umask 077; baton account rotate --yes > key)
            """)

    @Flag(name: .shortAndLong, help: "Do not ask.")
    var yes = false

    func run() async throws {
        try Output.requireReader(of: "the new account key")
        let store = CommandEnvironment.accountStore(try CommandEnvironment.home())
        let old: Account
        let sealedKey: SealedAccountKey?
        do {
            old = try store.load()
            sealedKey = try store.sealedKey()
            try store.refuseNode()
        } catch {
            throw CommandError(error)
        }
        try await Confirmation.require(
            isGiven: yes,
            consequence: "the old account is removed from this device, and the others have to join the new one",
            question: """
                This removes the account \(old.id) from this device and makes a new one. Each other device has to \
                leave and join the new one before it sees this one again. Go on?
                """)
        var passphrase: SecretBytes?
        if let sealedKey { passphrase = try await PassphraseInput.require(for: sealedKey, of: old.id).passphrase }
        let new: Account
        do {
            new = try store.rotate(passphrase: passphrase) { key throws(AccountError) in
                try AccountCreateCommand.show(
                    key,
                    under: AccountCreateCommand.introduction(
                        "This is the new account key", isKept: passphrase != nil))
            }
        } catch {
            throw CommandError(error)
        }
        Output.say("Write it down. This device, \(SafeText.escaped(new.deviceName)), is in account \(new.id) now.")
        Output.say(
            """
            On each other device: stop the node (a service: `baton node uninstall`), run
            `baton account leave`, and then `baton` while `baton account invite` runs here.
            Start the node again here and there.
            """)
    }
}
