// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop

/// The activities of one application, the current one among them, and the listener for changes.
///
/// It retains neither activities nor the application. Strong references are never released under its lock, because
/// their `deinit` calls back into it.
final class ActivityRoster: Sendable {
    private struct Entry: Sendable {
        weak var activity: UserActivity?
        /// Learns when the document's activity becomes current and when it no longer is.
        weak var document: Watchers<Document.Change>?
    }

    private struct State {
        weak var application: Application?
        var activities: [ActivityIdentifier: Entry] = [:]
        var current: ActivityIdentifier?
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

    /// Makes a document's watchers hear, in order, when the activity becomes current and when it no longer is; `nil`:
    /// they hear nothing further.
    func follow(_ id: ActivityIdentifier, for document: Watchers<Document.Change>?) {
        state.withLock { $0.activities[id]?.document = document }
    }

    func remove(_ id: ActivityIdentifier) {
        note { state in
            state.activities[id] = nil
            if state.current == id { state.current = nil }
        }
    }

    func becomeCurrent(_ id: ActivityIdentifier) {
        note { state in
            // An activity that was invalidated meanwhile stays out.
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

    /// The current activity, and how often an activity has become current so far.
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

    func tell(_ changes: AsyncStream<Void>.Continuation?) {
        state.withLock { $0.changes = changes }
        changes?.yield()
    }

    /// Signals that the node's view may be out of date.
    func raise() {
        note { _ in }
    }

    private func note(_ change: (inout State) -> Void) {
        let changes = state.withLock { state in
            let before = state.current
            let document = before.flatMap { state.activities[$0]?.document }
            change(&state)
            // Called under the lock, so that all watchers hear of changes in one order. Watchers never call back into
            // the roster.
            if state.current != before {
                document?.tell(.resignedFront)
                state.current.flatMap { state.activities[$0]?.document }?.tell(.becameFront)
            }
            return state.changes
        }
        changes?.yield()
    }
}
