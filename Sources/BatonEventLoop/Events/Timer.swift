// SPDX-License-Identifier: Apache-2.0

/// A one-shot timer on an event loop that can be armed again and again.
///
/// Arming replaces what was armed before; the handler runs once per arming, on the loop, never early, and not at all
/// after a ``cancel()`` or a new arming made on the loop. Time is that of ``MonotonicClock``, so what came due while
/// the machine slept fires when it wakes. A timer costs one Dispatch source and no descriptor. Releasing it cancels
/// it. It holds its handler: let that refer weakly to whoever owns the timer.
///
/// To arm for a later time, as a connection does with all that it sends, costs next to nothing: Dispatch keeps the
/// earlier one, for each change of its mind wakes its thread, and is told of the later one when that comes.
///
/// Every method is callable from anywhere.
package final class Timer: Sendable {
    private let armed: ArmedDeadline

    /// Makes a timer that is not armed.
    ///
    /// - Parameters:
    ///   - loop: where the handler runs.
    ///   - handler: runs once per arming.
    package init(on loop: EventLoop, handler: @escaping @Sendable () -> Void) {
        let armed = ArmedDeadline()
        self.armed = armed
        armed.begin(
            EventSource.timer(on: loop) { [weak armed] in
                if armed?.takeIfDue() == true { handler() }
            })
    }

    deinit {
        armed.end()
    }

    /// Arms the timer, or arms it anew.
    ///
    /// - Parameter delay: from now; negative is zero, more than 100 years is never. Up to a millisecond of lateness is
    ///   allowed, so that wake-ups join.
    package func schedule(after delay: Duration) {
        armed.set(MonotonicClock.deadline(after: delay))
    }

    /// Arms the timer for a time on the ``MonotonicClock``, or arms it anew. A time that has passed is now.
    ///
    /// - Parameter nanoseconds: a reading of that clock.
    package func schedule(at nanoseconds: UInt64) {
        armed.set(nanoseconds)
    }

    /// Disarms the timer. It can be armed again.
    package func cancel() {
        armed.set(nil)
    }

    /// Whether the timer is armed and has not fired.
    package var isScheduled: Bool { armed.isSet }
}

/// The deadline that a timer was last armed with, and the Dispatch source that fires then or earlier.
///
/// A firing that Dispatch had already queued when the timer was armed anew or cancelled finds the deadline gone or not
/// yet due, and runs nothing.
private final class ArmedDeadline: Sendable {
    private struct State {
        var deadline: UInt64?
        /// When the source fires: no later than the deadline.
        var firing: UInt64?
        var source: EventSource?
    }

    private let state = Lock(State())

    func begin(_ source: EventSource) {
        state.withLock { $0.source = source }
        source.resume()
    }

    func end() {
        let source = state.withLock { state in
            defer { state = State() }
            return state.source
        }
        source?.cancel()
    }

    func set(_ deadline: UInt64?) {
        state.withLock { state in
            state.deadline = deadline
            guard let deadline, deadline < state.firing ?? .max else { return }
            Self.fire(at: deadline, &state)
        }
    }

    var isSet: Bool { state.withLock { $0.deadline != nil } }

    /// Called when the source has fired.
    func takeIfDue() -> Bool {
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

    /// Under the lock, so that Dispatch hears of the times in the order in which they were set.
    private static func fire(at deadline: UInt64, _ state: inout State) {
        state.firing = deadline
        state.source?.fire(at: deadline)
    }
}
