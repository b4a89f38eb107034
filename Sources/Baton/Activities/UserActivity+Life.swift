// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop

/// The life of an activity.
extension UserActivity {
    /// Makes this the application's current activity, and starts the application if needed.
    ///
    /// The activity that was current resigns. The node announces this one as the device's newest. If ``needsSave`` is
    /// set, it is cleared, and the delegate is asked for the state once, shortly after this returns. After
    /// ``invalidate()`` this does nothing.
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

    /// Withdraws the activity until it becomes current again. A device that continues it already keeps it.
    public func resignCurrent() {
        application.roster.resignCurrent(id)
    }

    /// Ends the activity for good. It is withdrawn, cannot become current again, and releases a continued activity.
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
