// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import BatonAccount
import SystemPackage

/// `baton account rotate`
struct AccountRotateCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rotate",
        abstract: "Make a new account in place of this device's, because its key leaked.",
        discussion: """
            Whoever has the account key can add devices to the account, and no revocation keeps them out. So this makes \
            a new account, with a new key, and takes this device into it; the old account is wiped from here. The new \
            key is printed once, alone on standard output.

            Each other device stays in the old account until you run `baton account leave` and `baton account join` \
            there, with the new key. Until then it and this one do not see each other.

            To lock a lost device out whose account key nobody has, use `baton devices revoke`.

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
        do {
            old = try store.load()
            try store.refuseNode()
        } catch {
            throw CommandError(error)
        }
        try await Confirmation.require(
            isGiven: yes, consequence: "the old account goes from this device, and the others have to join the new one",
            question: """
                The account \(old.id) goes from this device, and a new one is made. Each other device has to leave and \
                join the new one before it sees this one again. Go on?
                """)
        let new: Account
        do {
            new = try store.rotate { key throws(AccountError) in
                try AccountCreateCommand.show(key, as: "This is the new account key.")
            }
        } catch {
            throw CommandError(error)
        }
        Output.say("Write it down. This device, \(SafeText.escaped(new.deviceName)), is in account \(new.id) now.")
        Output.say("On each other device: stop `baton node`, run `baton account leave`, then `baton account join` with")
        Output.say("the new key. Start `baton node` here and there.")
    }
}
