// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Baton
import BatonDocuments
import BatonMessages
import FoundationEssentials
import SystemPackage

struct TransfersCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "transfers",
        abstract: "List what this device offers, sends, receives and keeps; cancel a transfer.",
        subcommands: [TransfersListCommand.self, TransfersCancelCommand.self, TransfersDiscardCommand.self],
        defaultSubcommand: TransfersListCommand.self)
}

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
        try Output.list(
            listings, asJSON: output.json, json: TransferRendering.json, nothing: TransferRendering.nothing
        ) { TransferRendering.lines($0, width: $1, now: Date().timeIntervalSince1970) }
    }
}

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
        let (transfer, offers) = try await TransferAccess.withNode {
            (try await $0.cancelTransfer(idPrefix: id.text), (try? await $0.offers()) ?? [])
        }
        if output.json {
            try Output.line(EventLine.text("cancelled", TransferRendering.members(of: transfer)))
        } else {
            for line in TransferRendering.cancelled(transfer, offers: offers) { Output.say(line) }
        }
    }
}

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
        let part = try await TransferAccess.withNode { try await $0.discardPart(idPrefix: id.text) }
        if output.json {
            try Output.line(EventLine.text("discarded", TransferRendering.members(of: part)))
        } else {
            let size = "\(HumanUnits.bytes(part.bytes)) of \(HumanUnits.bytes(part.total))"
            Output.say("deleted: \(SafeText.escaped(path: part.name)), \(size)")
        }
    }
}

private enum TransferAccess {
    /// Runs `body` with a node, and names the command that lists what there is if it finds nothing.
    static func withNode<Result: Sendable>(_ body: (NodeClient) async throws -> Result) async throws -> Result {
        do {
            return try await NodeAccess.withNode(body)
        } catch let error as HandoffError where error.code == .noSuchActivity {
            throw CommandError(.noSuchActivity, "\(SafeText.sentence(error.message)); `baton transfers` lists them")
        }
    }
}
