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
            account. To join again, this one needs the account key.

            EXAMPLES:
              baton account leave
              baton account leave --yes     # without a question, for scripts
            """)

    @Flag(name: .shortAndLong, help: "Do not ask.")
    var yes = false

    func run() async throws {
        let store = CommandEnvironment.accountStore(try CommandEnvironment.home())
        do {
            try store.refuseNode()
        } catch {
            throw CommandError(error)
        }
        try await Confirmation.require(
            isGiven: yes, consequence: "leaving cannot be undone without the account key",
            question: "Joining again will need the account key. Leave the account?")
        do {
            try store.leave()
        } catch {
            throw CommandError(error)
        }
        Output.say("This device is in no account any more.")
    }
}
