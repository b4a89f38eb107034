// SPDX-License-Identifier: Apache-2.0

import Baton
import BatonMessages
import FoundationEssentials
import SystemPackage

/// Finds the activity that the user means: in what is there, or by waiting for it.
struct ActivityFinder {
    let client: NodeClient
    let choice: ActivityChoice

    /// An activity, and whether the user has named it: another one in its place is not what he means then.
    struct Found {
        let activity: ListedActivity
        let isNamed: Bool
    }

    /// - Parameter waiting: how long to wait for one that matches; `nil` looks once.
    func find(waiting: Duration?) async throws -> Found {
        var known = Known()
        if let waiting {
            known.activities = try await watch(for: waiting)
            // Why there is nothing is told to who looks, and not to who watches.
            if choice.pick(from: known.activities) == .none { known = try await list() }
        } else {
            known = try await list()
        }
        switch choice.pick(from: known.activities) {
        case .none:
            if let first = known.refused.first(where: { choice.matches($0.activity) }) {
                throw CommandError(
                    .refused, code: "refused",
                    "the accept policy of this device refuses \(first.activity.shownTitle) from"
                        + " \(SafeText.escaped(first.activity.device)), \(SafeText.escaped(first.rule)); see `baton policy`"
                )
            }
            if let first = known.switchedOff.first(where: { choice.matches($0.activity) }) {
                let application = SafeText.escaped(first.application)
                throw CommandError(
                    .refused, code: "handoffOff",
                    "Handoff is switched off for \(application), which continues \(first.activity.shownTitle) from"
                        + " \(SafeText.escaped(first.activity.device)): switch it on with"
                        + " `baton handoff on --application \(application)`")
            }
            throw choice.nothingFound(among: known.activities, gone: known.gone, waited: waiting)
        case .one(let activity): return Found(activity: activity, isNamed: choice.prefix != nil)
        case .several(let activities): return Found(activity: try await ask(activities), isNamed: true)
        }
    }

    /// What the node tells.
    private struct Known {
        var activities: [ListedActivity] = []
        /// What the accept policy refuses, and by which rule.
        var refused: [(activity: ListedActivity, rule: String)] = []
        /// What no application continues for which Handoff is on, and one for which it is off.
        var switchedOff: [(activity: ListedActivity, application: String)] = []
        /// What this user was told of before.
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

    /// What there is as soon as something matches, or when the time is over.
    private func watch(for duration: Duration) async throws -> [ListedActivity] {
        let seen = SeenActivities()
        let (client, choice) = (client, choice)
        return try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                for try await listing in try await client.activities(watch: true) {
                    if await seen.take(listing), await choice.pick(from: seen.all) != .none { return }
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

/// What a watch has told so far.
private actor SeenActivities {
    private(set) var all: [ListedActivity] = []
    private var isComplete = false

    /// Takes a change in; `true` once the list can be looked at.
    ///
    /// What was there before the watch began comes piece by piece: deciding before it is complete would take the first
    /// where there are several.
    func take(_ listing: WireActivityListing) -> Bool {
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
