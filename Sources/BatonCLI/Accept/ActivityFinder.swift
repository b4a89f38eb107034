// SPDX-License-Identifier: Apache-2.0

import Baton
import BatonDocuments
import BatonMessages
import FoundationEssentials
import SystemPackage

/// Finds the activity that the user means: in the present list, or by waiting.
struct ActivityFinder {
    let client: NodeClient
    let choice: ActivityChoice

    /// An activity. If the user has named it, no other one may take its place.
    struct Found {
        let activity: ListedActivity
        let isNamed: Bool
    }

    /// - Parameter waiting: the longest time to wait for a match; `nil` to look once.
    func find(waiting: Duration?) async throws -> Found {
        if let waiting, let found = try await choose(among: try await watch(for: waiting)) { return found }
        // Only a list says why there is nothing. A watch does not.
        let (activities, withheld, gone) = try await list()
        if let found = try await choose(among: activities) { return found }
        let matching = choice.matches(in: withheld.map(\.activity))
        if let first = withheld.first(where: { matching.contains($0.activity) }) { throw first.reason }
        throw choice.nothingFound(among: activities, gone: gone, waited: waiting)
    }

    private func choose(among activities: [ListedActivity]) async throws -> Found? {
        let matching = choice.pick(from: activities)
        guard matching.count > 1 else {
            return matching.first.map { Found(activity: $0, isNamed: choice.name != nil) }
        }
        return Found(activity: try await ask(matching), isNamed: true)
    }

    /// - Returns: also the activities that the accept policy refuses, or that only applications with Handoff switched
    ///   off continue.
    private func list() async throws -> (
        activities: [ListedActivity], withheld: [(activity: ListedActivity, reason: CommandError)],
        gone: [ListedActivity]
    ) {
        var (activities, withheld) = ([ListedActivity](), [(activity: ListedActivity, reason: CommandError)]())
        var gone: [ListedActivity] = []
        for try await listing in try await client.activities(withRefused: true) where listing.hasActivity {
            let activity = ListedActivity(listing)
            if listing.change == .removed {
                gone.append(activity)
            } else if let reason = Self.withholding(listing, activity) {
                withheld.append((activity, reason))
            } else {
                activities.append(activity)
            }
        }
        return (activities, withheld, gone)
    }

    private static func withholding(_ listing: WireActivityListing, _ activity: ListedActivity) -> CommandError? {
        let what = "\(activity.shownTitle) from \(SafeText.escaped(activity.device))"
        if !listing.refusedBy.isEmpty {
            let rule = SafeText.escaped(listing.refusedBy)
            return CommandError(
                .refused, "the accept policy of this device refuses \(what), \(rule); see `baton policy`")
        }
        guard !listing.switchedOff.isEmpty else { return nil }
        let application = SafeText.escaped(listing.switchedOff)
        return CommandError(
            .refused, code: "handoffOff",
            "Handoff is switched off for \(application), which continues \(what): switch it on with"
                + " `baton handoff on --application \(application)`")
    }

    /// Waits until an activity matches, or the time is over, and returns the activities.
    private func watch(for duration: Duration) async throws -> [ListedActivity] {
        let (client, choice, limit) = (client, choice, HumanUnits.duration(duration))
        let watching = Task {
            var seen: [ListedActivity] = []
            var isComplete = false
            do {
                for try await listing in try await client.activities(watch: true) {
                    let activity = ListedActivity(listing)
                    switch listing.change {
                    case .listed: isComplete = true
                    case .present, .added, .updated, .removed, .UNRECOGNIZED:
                        seen.removeAll { $0.id == activity.id && $0.deviceID == activity.deviceID }
                        if listing.change != .removed { seen.append(activity) }
                    }
                    // The present ones arrive one by one: a decision before would choose the first of several.
                    guard isComplete else { continue }
                    guard choice.pick(from: seen).isEmpty else { return seen }
                    if listing.change == .listed { Output.say("waiting for up to \(limit) for an activity; ^C ends") }
                }
                throw CommandError(.noNode, "the node has stopped; start `baton node` and try again")
            } catch {
                guard Task.isCancelled else { throw error }
                return seen
            }
        }
        let timer = Task {
            try await Task.sleep(for: duration)
            watching.cancel()
        }
        defer { timer.cancel() }
        return try await watching.value
    }

    private func ask(_ activities: [ListedActivity]) async throws -> ListedActivity {
        guard NumberedChoice.isPossible else { throw ActivityChoice.ambiguous(activities) }
        let width = Terminal.width(of: .standardError) - 4
        let lines = ActivityRendering.lines(activities, width: width, now: Date().timeIntervalSince1970)
        return activities[
            try await NumberedChoice(heading: lines[0], lines: Array(lines.dropFirst())).ask("Which one?")]
    }
}
