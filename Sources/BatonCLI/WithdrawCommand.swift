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
            A device that has accepted the activity keeps it, and goes on receiving its document; \
            `baton transfers cancel` ends that. Without an id, this command lists the offers of this device.

            EXAMPLES:
              baton withdraw 3f2a
            """)

    @Argument(help: "The activity's id, or enough of its beginning.", completion: .offers)
    var id: CommandArgument?

    @OptionGroup var output: JSONOption

    func validate() throws {
        if let id, ActivityPrefix(id.text) == nil { throw ValidationError(ActivityPrefix.problem(id.text)) }
    }

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
                    [JSONValue.Member("id", .string(id)), JSONValue.Member("title", .string(withdrawn.title))]
                        + TransferRendering.members(ofStillSent: transfers)))
        } else {
            Output.say("withdrawn: \(SafeText.escaped(withdrawn.title)) (\(id.prefix(8)))")
            for transfer in transfers { Output.say(TransferRendering.stillSent(transfer)) }
        }
    }

    private func withdraw(_ client: NodeClient) async throws -> WireWithdrawResponse {
        guard let prefix = id.flatMap({ ActivityPrefix($0.text) }) else {
            throw CommandError.usage("which offer? " + Self.choices(try await client.offers()))
        }
        do {
            return try await client.withdraw(idPrefix: prefix.text)
        } catch {
            guard error.code == .noSuchActivity else { throw error }
            let problem = SafeText.sentence(error.message)
            throw CommandError(
                .noSuchActivity, code: error.code.name, problem + "; " + Self.choices(try await client.offers()))
        }
    }

    /// The offers that can be withdrawn, as the end of a sentence.
    private static func choices(_ offers: [WireOwnOffer]) -> String {
        guard !offers.isEmpty else { return "this device offers nothing" }
        let lines = offers.map { offer in
            let activity = ListedActivity(offer.activity, device: "", deviceID: "")
            return "\n  \(activity.shortID)  \(activity.shownTitle)"
        }
        return "this device offers:" + lines.joined()
    }
}
