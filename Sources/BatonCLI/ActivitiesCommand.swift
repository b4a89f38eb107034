// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Baton
import BatonDocuments
import BatonMessages
import FoundationEssentials
import SystemPackage

struct ActivitiesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "activities",
        abstract: "List what other devices offer.",
        discussion: """
            With --watch, prints a line for each change until ^C: + for an added activity, - for a removed one, and * \
            for a changed one.

            EXAMPLES:
              baton activities
              baton activities --watch
              baton activities --json
            """)

    @Flag(name: .shortAndLong, help: "Keep running, and print every change.")
    var watch = false

    @OptionGroup var output: JSONOption

    func run() async throws {
        try await NodeAccess.withNode { client in
            if watch { try await follow(client) } else { try await list(client) }
        }
    }

    private func list(_ client: NodeClient) async throws {
        await ResponderWatch.look(client)
        var activities: [ListedActivity] = []
        for try await listing in try await client.activities() where listing.hasActivity {
            activities.append(ListedActivity(listing))
            if listing.incomplete { Output.say(ActivityRendering.incomplete(listing)) }
        }
        try Output.list(
            activities, asJSON: output.json, json: \.members.line,
            nothing: ActivityRendering.nothing,
            lines: { ActivityRendering.lines($0, width: $1, now: Date().timeIntervalSince1970) })
    }

    private func follow(_ client: NodeClient) async throws {
        let responder = Task { [isJSON = output.json] in
            try await ResponderWatch.run(client, EventOutput(isJSON: isJSON))
        }
        defer { responder.cancel() }
        for try await listing in try await client.activities(watch: true) {
            if listing.incomplete { Output.say(ActivityRendering.incomplete(listing)) }
            if output.json {
                try Output.line(ActivityRendering.json(listing))
            } else if let line = ActivityRendering.line(listing) {
                try Output.line(DisplayWidth.clip(line, to: Terminal.width(of: .standardOutput)))
            }
        }
        throw CommandError(.noNode, "the node has stopped; start `baton node` and watch again")
    }
}

enum ActivityRendering {
    static let nothing = """
        No other device offers anything now. To offer something, run `baton offer` there. `baton devices` shows \
        whether this device sees it.
        """

    static func incomplete(_ listing: WireActivityListing) -> String {
        "\(SafeText.escaped(listing.device)) did not answer in time: it may offer more than what it announced"
    }

    static func lines(_ activities: [ListedActivity], width: Int, now: Double) -> [String] {
        var table = ListedActivity.table
        let names = DeviceNames(activities.map { ($0.device, $0.deviceID) })
        table.rows = activities.map { $0.row(from: names.shown($0.device, $0.deviceID), now: now) }
        return table.lines(width: width)
    }

    static func json(_ listing: WireActivityListing, time: String = Moment.now) -> String {
        EventLine.text(
            listing.change.name, listing.hasActivity ? ListedActivity(listing).members : [], time: time)
    }

    /// One change for people; `nil` for the event that the list is complete.
    static func line(_ listing: WireActivityListing) -> String? {
        let sign: String
        switch listing.change {
        case .present, .added: sign = "+"
        case .removed: sign = "-"
        case .updated: sign = "*"
        case .listed, .UNRECOGNIZED: return nil
        }
        let activity = ListedActivity(listing)
        let size = activity.size.map { ", " + HumanUnits.bytes($0) } ?? ""
        return "\(sign) \(activity.shortID)  \(activity.shownTitle)\(size), from \(SafeText.escaped(activity.device))"
            + "  (\(SafeText.escaped(activity.type)))"
    }
}

extension WireActivityListing.Change {
    /// The name that `--json` prints as `event`.
    var name: String {
        if case .UNRECOGNIZED = self { "present" } else { "\(self)" }
    }
}
