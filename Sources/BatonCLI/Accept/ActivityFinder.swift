import Baton
import BatonMessages
import FoundationEssentials
import SystemPackage

/// Finds the activity that the user means: in what is there, or by waiting for it.
struct ActivityFinder {
    let client: NodeClient
    let choice: ActivityChoice

    /// - Parameter waiting: how long to wait for one that matches; `nil` looks once.
    func find(waiting: Duration?) async throws -> ListedActivity {
        let activities: [ListedActivity]
        var refused: [(activity: ListedActivity, rule: String)] = []
        if let waiting {
            activities = try await watch(for: waiting)
        } else {
            (activities, refused) = try await list()
        }
        switch choice.pick(from: activities) {
        case .none:
            if let first = refused.first(where: { choice.matches($0.activity) }) {
                throw CommandError(
                    .refused, code: "refused",
                    "the accept policy of this device refuses \(first.activity.shownTitle) from"
                        + " \(SafeText.escaped(first.activity.device)), \(SafeText.escaped(first.rule)); see `baton policy`"
                )
            }
            throw choice.nothingFound(among: activities, waited: waiting)
        case .one(let activity): return activity
        case .several(let activities): return try await ask(activities)
        }
    }

    private func list() async throws -> ([ListedActivity], refused: [(activity: ListedActivity, rule: String)]) {
        var activities: [ListedActivity] = []
        var refused: [(activity: ListedActivity, rule: String)] = []
        for try await listing in try await client.activities(withRefused: true) where listing.hasActivity {
            if listing.refusedBy.isEmpty {
                activities.append(ListedActivity(listing))
            } else {
                refused.append((ListedActivity(listing), listing.refusedBy))
            }
        }
        return (activities, refused)
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
