// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Baton
import BatonMessages

struct WithdrawCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "withdraw",
        abstract: "Stop offering one of this device's activities.",
        discussion: """
            A device that has accepted the activity keeps it, and goes on receiving its document; \
            `baton transfers cancel` ends that. Without an argument, this command lists the offers of this device.

            EXAMPLES:
              baton withdraw 3f2a
              baton withdraw report.pdf
            """)

    @Argument(
        help: ArgumentHelp("The activity's id or title, or enough of its beginning.", valueName: "activity"),
        completion: .offers)
    var name: CommandArgument?

    @OptionGroup var output: JSONOption

    func run() async throws {
        let (withdrawn, transfers) = try await NodeAccess.withNode { client in
            let withdrawn = try await withdraw(client)
            return (withdrawn, (try? await client.transfers(of: Array(withdrawn.activityID))) ?? [])
        }
        let id = ListedActivity.text(ofID: [UInt8](withdrawn.activityID))
        if output.json {
            try Output.line(
                EventLine.text(
                    "withdrawn",
                    [.text("id", id), .text("title", withdrawn.title)]
                        + TransferRendering.members(ofStillSent: transfers)))
        } else {
            Output.say("withdrawn: \(SafeText.escaped(withdrawn.title)) (\(id.prefix(8)))")
            for transfer in transfers { Output.say(TransferRendering.stillSent(transfer)) }
        }
    }

    private func withdraw(_ client: NodeClient) async throws -> WireWithdrawResponse {
        let offers = try await client.offers().map { ListedActivity($0.activity, device: "", deviceID: "") }
        guard let name = name.map({ ActivityName(text: $0.text) }) else {
            throw CommandError.usage("which offer? " + Self.choices(offers))
        }
        let matching = name.matches(in: offers)
        guard let offer = matching.first else {
            throw CommandError(
                .noSuchActivity, "no offer has an id or a title that begins with \(name.shown); " + Self.choices(offers)
            )
        }
        guard matching.count == 1 else {
            throw CommandError.usage("\(matching.count) offers match: give more of an id" + Self.list(matching))
        }
        return try await client.withdraw(idPrefix: offer.idText)
    }

    /// The offers that can be withdrawn, as the end of a sentence.
    private static func choices(_ offers: [ListedActivity]) -> String {
        offers.isEmpty ? "this device offers nothing" : "this device offers:" + list(offers)
    }

    private static func list(_ offers: [ListedActivity]) -> String {
        offers.map { "\n  \($0.shortID)  \($0.shownTitle)" }.joined()
    }
}
