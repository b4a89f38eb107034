// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Baton
import BatonMessages
import FoundationEssentials
import SystemPackage

/// `baton transfers list`
struct TransfersListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List what this device offers, sends, receives and keeps.",
        discussion: """
            OFFER lists the activities that this device offers. `baton withdraw ID` ends an offer.

            TRANSFER lists the documents on their way, to and from other devices. A transfer that is waiting was \
            interrupted and goes on by itself when the other device is back. `baton transfers cancel ID` ends one.

            KEPT PART lists what has come of documents whose transfers ended early. `baton accept` goes on from there; \
            `baton transfers discard ID` deletes the part, and so does the node after a week.

            EXAMPLES:
              baton transfers
              baton transfers --json
            """)

    @OptionGroup var output: JSONOption

    func run() async throws {
        let listings = try await NodeAccess.withNode { try await $0.transfers() }
        if output.json {
            for listing in listings { try Output.line(TransferRendering.json(listing)) }
            return
        }
        guard !listings.isEmpty else {
            Output.say(TransferRendering.nothing)
            return
        }
        let width = Terminal.width(of: .standardOutput)
        for line in TransferRendering.lines(listings, width: width, now: Date().timeIntervalSince1970) {
            try Output.line(line)
        }
    }
}
