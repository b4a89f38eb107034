// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop

/// The life of an activity.
extension UserActivity {
    /// Makes this the application's current activity, and starts the application if it has not been started.
    ///
    /// The one that was current resigns. The node announces the activity, as this device's newest. Where ``needsSave``
    /// is set it is cleared, and the delegate is asked for the state once, a moment after this has returned. After
    /// ``invalidate()`` it does nothing.
    public func becomeCurrent() {
        let (isInvalidated, asksToSave) = state.withLock { state in
            guard !state.isInvalidated else { return (true, false) }
            let asks = state.needsSave && !state.isSaveQueued
            if state.needsSave { state.needsSave = false }
            if asks { state.isSaveQueued = true }
            return (false, asks)
        }
        guard !isInvalidated else { return }
        application.roster.becomeCurrent(id)
        application.start()
        if asksToSave { saveSoon() }
    }

    /// Withdraws the activity: nothing offers it until it becomes current again. Who continues it keeps it.
    public func resignCurrent() {
        application.roster.resignCurrent(id)
    }

    /// Ends the activity for good: it is withdrawn, can never become current again, and lets go of what it continues.
    public func invalidate() {
        let wasValid = state.withLock { state in
            defer { state.isInvalidated = true }
            return !state.isInvalidated
        }
        guard wasValid else { return }
        application.roster.remove(id)
        handoff?.letGo()
    }

    /// Whether this is its application's current activity.
    public var isCurrent: Bool { application.roster.isCurrent(id) }

    /// Whether ``invalidate()`` has ended it.
    public var isInvalidated: Bool { state.withLock { $0.isInvalidated } }
}
