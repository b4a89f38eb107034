// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Baton
import BatonDocuments
import BatonMessages

/// `baton transfers discard`
struct TransfersDiscardCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "discard",
        abstract: "Delete what has come of a document whose transfer ended early.",
        discussion: """
            The document itself is untouched on the device that offers it. Accepting it again begins anew.

            EXAMPLES:
              baton transfers discard k3x7
            """)

    @Argument(help: "The id of the kept part, or as much of its beginning as tells it apart.")
    var id: CommandArgument

    @OptionGroup var output: JSONOption

    func run() async throws {
        let part = try await NodeAccess.withNode { client in
            do {
                return try await client.discardPart(idPrefix: id.text)
            } catch let error as HandoffError where error.code == .noSuchActivity {
                throw CommandError(
                    .noSuchActivity, code: "noSuchPart",
                    "\(SafeText.sentence(error.message)); `baton transfers` lists them")
            }
        }
        if output.json {
            try Output.line(EventLine.text("discarded", TransferRendering.members(of: part)))
        } else {
            let size = "\(HumanUnits.bytes(part.bytes)) of \(HumanUnits.bytes(part.total))"
            Output.say("deleted: \(SafeText.escaped(path: part.name)), \(size)")
        }
    }
}
