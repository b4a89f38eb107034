// SPDX-License-Identifier: Apache-2.0

/// A one-shot timer on an event loop that can be armed again and again.
///
/// Arming replaces the time set before. The handler runs once per arming, on the loop, and never early. It does not run
/// after a ``cancel()`` or a new arming on the loop. Time is that of ``MonotonicClock``, so a timer that came due while
/// the machine slept fires when it wakes. A timer costs no descriptor. Releasing it cancels it. It holds its handler,
/// which should refer weakly to the timer's owner.
///
/// Every method is callable from anywhere, and costs next to nothing.
package final class Timer: Sendable {
    private let poll: ReadinessPoll
    private let handler: @Sendable () -> Void

    /// Makes a timer that is not armed. Stops the process if this is the first use of the loop and no descriptor is
    /// free for it.
    ///
    /// - Parameters:
    ///   - loop: the loop of the handler.
    ///   - handler: runs once per arming.
    package init(on loop: EventLoop, handler: @escaping @Sendable () -> Void) {
        do {
            poll = try loop.poll()
        } catch {
            preconditionFailure("a loop cannot have timers: \(error)")
        }
        self.handler = handler
    }

    deinit {
        cancel()
    }

    /// Arms the timer, in place of the time set before.
    ///
    /// - Parameter delay: from now; negative is zero, more than 100 years is never.
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
    package var isScheduled: Bool { poll.timers.isArmed(ObjectIdentifier(self)) }

    private func set(_ deadline: UInt64?) { poll.timers.set(ObjectIdentifier(self), at: deadline, handler) }
}
