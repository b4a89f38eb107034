// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import BatonAccount
import SystemPackage

/// `baton account leave`
struct AccountLeaveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "leave",
        abstract: "Take this device out of its account.",
        discussion: """
            Removes this device's key and everything of the account from this device. The other devices stay in the \
            account. This one can join again like a new device.

            If this device keeps the account key, that goes too: `baton account show --key` prints it first.

            EXAMPLES:
              baton account leave
              baton account leave --yes     # without a question, for scripts
            """)

    @Flag(name: .shortAndLong, help: "Do not ask.")
    var yes = false

    func run() async throws {
        let store = CommandEnvironment.accountStore(try CommandEnvironment.home())
        let keepsKey: Bool
        do {
            try store.refuseNode()
            // A damaged account can be left as well.
            keepsKey = (try? store.sealedKey()) != nil
        } catch {
            throw CommandError(error)
        }
        let key = "The account key on this device is removed too: `baton account show --key` prints it.\n"
        try await Confirmation.require(
            isGiven: yes, consequence: "this device can only join again like a new one",
            question: (keepsKey ? key : "") + "Leave the account?")
        do {
            try store.leave()
        } catch {
            throw CommandError(error)
        }
        Output.say("This device is in no account any more.")
    }
}
