// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Baton
import BatonMessages

/// `baton withdraw`
struct WithdrawCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "withdraw",
        abstract: "Stop offering one of this device's activities.",
        discussion: """
            Who has accepted it keeps what it has, and a document under way is still sent.

            EXAMPLES:
              baton withdraw 3f2a
            """)

    @Argument(help: "The activity's id, or as much of its beginning as tells it apart.")
    var id: String

    @OptionGroup var output: JSONOption

    func validate() throws {
        guard ActivityPrefix(id) != nil else { throw ValidationError(ActivityPrefix.problem(id)) }
    }

    func run() async throws {
        guard let prefix = ActivityPrefix(id) else { throw CommandError.usage(ActivityPrefix.problem(id)) }
        let withdrawn = try await NodeAccess.withNode { try await $0.withdraw(idPrefix: prefix.text) }
        let id = ListedActivity.text(ofID: [UInt8](withdrawn.activityID))
        if output.json {
            try Output.line(
                EventLine.text(
                    "withdrawn",
                    [JSONValue.Member("id", .string(id)), JSONValue.Member("title", .string(withdrawn.title))]))
        } else {
            Output.say("withdrawn: \(SafeText.escaped(withdrawn.title)) (\(id.prefix(8)))")
        }
    }
}
