// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Baton
import BatonDocuments
import BatonMessages

/// `baton transfers cancel`
struct TransfersCancelCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cancel",
        abstract: "End a transfer, to or from another device.",
        discussion: """
            The receiving device keeps what has come, and accepting the document again goes on from there. An offer \
            stays: a device that was away for longer than 30 seconds may take it anew, unless you withdraw it first.

            EXAMPLES:
              baton transfers cancel 3f2a
            """)

    @Argument(help: "The transfer's id, or as much of its beginning as tells it apart.")
    var id: CommandArgument

    @OptionGroup var output: JSONOption

    func run() async throws {
        let (transfer, offers) = try await NodeAccess.withNode { client in
            do {
                return (try await client.cancelTransfer(idPrefix: id.text), (try? await client.offers()) ?? [])
            } catch let error as HandoffError where error.code == .noSuchActivity {
                throw CommandError(
                    .noSuchActivity, code: "noSuchTransfer",
                    "\(SafeText.sentence(error.message)); `baton transfers` lists them")
            }
        }
        if output.json {
            try Output.line(EventLine.text("cancelled", TransferRendering.members(of: transfer)))
        } else {
            for line in TransferRendering.cancelled(transfer, offers: offers) { Output.say(line) }
        }
    }
}
