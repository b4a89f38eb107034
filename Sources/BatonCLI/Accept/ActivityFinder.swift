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
        var known = Known()
        if let waiting {
            known.activities = try await watch(for: waiting)
            // Only a list says why there is nothing. A watch does not.
            if choice.pick(from: known.activities) == .none { known = try await list() }
        } else {
            known = try await list()
        }
        switch choice.pick(from: known.activities) {
        case .none:
            let withheld = choice.matches(in: known.refused.map { $0.activity } + known.switchedOff.map { $0.activity })
            if let first = known.refused.first(where: { withheld.contains($0.activity) }) {
                throw CommandError(
                    .refused, code: "refused",
                    "the accept policy of this device refuses \(first.activity.shownTitle) from"
                        + " \(SafeText.escaped(first.activity.device)), \(SafeText.escaped(first.rule));"
                        + " see `baton policy`"
                )
            }
            if let first = known.switchedOff.first(where: { withheld.contains($0.activity) }) {
                let application = SafeText.escaped(first.application)
                throw CommandError(
                    .refused, code: "handoffOff",
                    "Handoff is switched off for \(application), which continues \(first.activity.shownTitle) from"
                        + " \(SafeText.escaped(first.activity.device)): switch it on with"
                        + " `baton handoff on --application \(application)`")
            }
            throw choice.nothingFound(among: known.activities, gone: known.gone, waited: waiting)
        case .one(let activity): return Found(activity: activity, isNamed: choice.name != nil)
        case .several(let activities): return Found(activity: try await ask(activities), isNamed: true)
        }
    }

    /// The lists of the node.
    private struct Known {
        var activities: [ListedActivity] = []
        /// Activities that the accept policy refuses, and the rule.
        var refused: [(activity: ListedActivity, rule: String)] = []
        /// Activities that only applications with Handoff switched off continue, and one of these.
        var switchedOff: [(activity: ListedActivity, application: String)] = []
        /// Activities that were listed before.
        var gone: [ListedActivity] = []
    }

    private func list() async throws -> Known {
        var known = Known()
        for try await listing in try await client.activities(withRefused: true) where listing.hasActivity {
            let activity = ListedActivity(listing)
            if listing.change == .removed {
                known.gone.append(activity)
            } else if !listing.refusedBy.isEmpty {
                known.refused.append((activity, listing.refusedBy))
            } else if !listing.switchedOff.isEmpty {
                known.switchedOff.append((activity, listing.switchedOff))
            } else {
                known.activities.append(activity)
            }
        }
        return known
    }

    /// Waits until an activity matches, or the time is over, and returns the activities.
    private func watch(for duration: Duration) async throws -> [ListedActivity] {
        let seen = WatchedActivities()
        let (client, choice) = (client, choice)
        let limit = HumanUnits.duration(duration)
        return try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                for try await listing in try await client.activities(watch: true) {
                    guard await seen.add(listing) else { continue }
                    guard await choice.pick(from: seen.all) == .none else { return }
                    if listing.change == .listed { Output.say("waiting for up to \(limit) for an activity; ^C ends") }
                }
                throw CommandError(.noNode, code: "noNode", "the node has stopped; start `baton node` and try again")
            }
            group.addTask { try await Task.sleep(for: duration) }
            defer { group.cancelAll() }
            try await group.next()
            return await seen.all
        }
    }

    private func ask(_ activities: [ListedActivity]) async throws -> ListedActivity {
        guard NumberedChoice.isPossible else { throw ActivityChoice.ambiguous(activities) }
        let width = Terminal.width(of: .standardError) - 4
        let lines = ActivityRendering.lines(activities, width: width, now: Date().timeIntervalSince1970)
        return activities[
            try await NumberedChoice(heading: lines[0], lines: Array(lines.dropFirst())).ask("Which one?")]
    }
}

/// The activities of a watch.
private actor WatchedActivities {
    private(set) var all: [ListedActivity] = []
    private var isComplete = false

    /// Adds a change. It returns `true` when the list is complete.
    ///
    /// The present activities arrive one by one. A decision before the list is complete would choose the first of
    /// several.
    func add(_ listing: WireActivityListing) -> Bool {
        switch listing.change {
        case .listed:
            isComplete = true
        case .present, .added, .updated, .UNRECOGNIZED:
            let activity = ListedActivity(listing)
            all.removeAll { $0.id == activity.id && $0.deviceID == activity.deviceID }
            all.append(activity)
        case .removed:
            let activity = ListedActivity(listing)
            all.removeAll { $0.id == activity.id && $0.deviceID == activity.deviceID }
        }
        return isComplete
    }
}
