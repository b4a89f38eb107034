// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop

/// The activities of one application, which of them is current, and who is told when that changes.
///
/// It keeps no activity alive, and not the application. Strong references are never let go under its lock: their end
/// comes back here.
final class ActivityRoster: Sendable {
    private struct Entry: Sendable {
        weak var activity: UserActivity?
        /// Where a document's watchers hear that it comes to the front and goes.
        weak var document: DocumentChanges?
    }

    private struct State {
        weak var application: Application?
        var activities: [ActivityIdentifier: Entry] = [:]
        var current: ActivityIdentifier?
        /// How many times an activity became current.
        var generation: UInt64 = 0
        var isInFront = false
        var changes: AsyncStream<Void>.Continuation?
    }

    private let state = Lock(State())

    var application: Application? { state.withLock { $0.application } }

    func setApplication(_ application: Application) {
        state.withLock { $0.application = application }
    }

    var isInFront: Bool {
        get { state.withLock { $0.isInFront } }
        set { note { $0.isInFront = newValue } }
    }

    func add(_ activity: UserActivity) {
        state.withLock { $0.activities[activity.id] = Entry(activity: activity) }
    }

    /// An activity is a document's, whose watchers are told from now on when it becomes current and when it ceases to
    /// be, in the order in which that happens, whatever makes it happen; `nil`: they are told no more.
    func follow(_ id: ActivityIdentifier, for document: DocumentChanges?) {
        state.withLock { $0.activities[id]?.document = document }
    }

    /// The activity has ended.
    func remove(_ id: ActivityIdentifier) {
        note { state in
            state.activities[id] = nil
            if state.current == id { state.current = nil }
        }
    }

    func becomeCurrent(_ id: ActivityIdentifier) {
        note { state in
            // One that was invalidated meanwhile stays away.
            guard state.activities[id] != nil else { return }
            state.current = id
            state.generation += 1
        }
    }

    func resignCurrent(_ id: ActivityIdentifier) {
        note { if $0.current == id { $0.current = nil } }
    }

    func resignAll() {
        note { $0.current = nil }
    }

    func isCurrent(_ id: ActivityIdentifier) -> Bool {
        state.withLock { $0.current == id }
    }

    func activityChanged(_ id: ActivityIdentifier) {
        let changes = state.withLock { $0.current == id ? $0.changes : nil }
        changes?.yield()
    }

    /// The current activity, and the how-manieth time that one became current.
    var current: (activity: UserActivity, generation: UInt64)? {
        let (activity, generation) = state.withLock { state in
            (state.current.flatMap { state.activities[$0]?.activity }, state.generation)
        }
        return activity.map { ($0, generation) }
    }

    subscript(id: ActivityIdentifier) -> UserActivity? {
        state.withLock { $0.activities[id]?.activity }
    }

    var all: [UserActivity] {
        state.withLock { $0.activities.values.compactMap(\.activity) }
    }

    /// Who is told from now on that something changed; `nil`: nobody.
    func tell(_ changes: AsyncStream<Void>.Continuation?) {
        state.withLock { $0.changes = changes }
        changes?.yield()
    }

    /// Something that the node was told of is to be looked at again.
    func raise() {
        note { _ in }
    }

    private func note(_ change: (inout State) -> Void) {
        let changes = state.withLock { state in
            let before = state.current
            let document = before.flatMap { state.activities[$0]?.document }
            change(&state)
            // Under the lock, so that nobody hears of it in another order. Boards and their watchers never come back
            // here.
            if state.current != before {
                document?.tell(.resignedFront)
                state.current.flatMap { state.activities[$0]?.document }?.tell(.becameFront)
            }
            return state.changes
        }
        changes?.yield()
    }
}
