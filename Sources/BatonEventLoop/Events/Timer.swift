// SPDX-License-Identifier: Apache-2.0

/// A one-shot timer on an event loop that can be armed again and again.
///
/// Arming replaces the time set before. The handler runs once per arming, on the loop, and never early. It does not run
/// after a ``cancel()`` or a new arming on the loop. Time is that of ``MonotonicClock``, so a timer that came due while
/// the machine slept fires when it wakes. A timer costs one Dispatch source and no descriptor. Releasing it cancels it.
/// It holds its handler, which should refer weakly to the timer's owner.
///
/// Arming for a later time costs next to nothing, which a connection does whenever it sends. Dispatch keeps the earlier
/// time, because each change wakes its thread, and is given the later time when the earlier one comes.
///
/// Every method is callable from anywhere.
package final class Timer: Sendable {
    private struct State {
        var deadline: UInt64?
        /// The time at which the source fires, no later than the deadline.
        var firing: UInt64?
        /// Nil only during `init`.
        var source: EventSource?
    }

    private let state = Lock(State())

    /// Makes a timer that is not armed.
    ///
    /// - Parameters:
    ///   - loop: the loop of the handler.
    ///   - handler: runs once per arming.
    package init(on loop: EventLoop, handler: @escaping @Sendable () -> Void) {
        let source = EventSource.timer(on: loop) { [weak self] in
            if self?.takeIfDue() == true { handler() }
        }
        state.withLock { $0.source = source }
    }

    deinit {
        state.withLock { $0.source }?.cancel()
    }

    /// Arms the timer, in place of the time set before.
    ///
    /// - Parameter delay: from now; negative is zero, more than 100 years is never. It may fire up to a millisecond
    ///   late, so that wake-ups join.
    package func schedule(after delay: Duration) {
        set(MonotonicClock.deadline(after: delay))
    }

    /// Arms the timer for a time on the ``MonotonicClock``, in place of the time set before. A past time is now.
    ///
    /// - Parameter nanoseconds: a reading of that clock.
    package func schedule(at nanoseconds: UInt64) {
        set(nanoseconds)
    }

    /// Disarms the timer. It can be armed again.
    package func cancel() {
        set(nil)
    }

    /// Whether the timer is armed and has not fired.
    package var isScheduled: Bool { state.withLock { $0.deadline != nil } }

    private func set(_ deadline: UInt64?) {
        state.withLock { state in
            state.deadline = deadline
            guard let deadline, deadline < state.firing ?? .max else { return }
            Self.fire(at: deadline, &state)
        }
    }

    /// Takes the deadline if it has passed.
    ///
    /// Dispatch may have queued a firing when the timer is armed again or cancelled. That firing finds the deadline
    /// gone or not yet due, and runs nothing.
    private func takeIfDue() -> Bool {
        let now = MonotonicClock.nanoseconds()
        return state.withLock { state in
            state.firing = nil
            guard let deadline = state.deadline else { return false }
            guard deadline <= now else {
                Self.fire(at: deadline, &state)
                return false
            }
            state.deadline = nil
            return true
        }
    }

    /// Called under the lock, so that Dispatch gets the times in the order in which they were set.
    private static func fire(at deadline: UInt64, _ state: inout State) {
        state.firing = deadline
        state.source?.fire(at: deadline)
    }
}
