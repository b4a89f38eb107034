/// A one-shot timer on an event loop that can be armed again and again.
///
/// Arming replaces what was armed before; the handler runs once per arming, on the loop, never early, and not at all
/// after a ``cancel()`` or a new arming made on the loop. Time is that of ``MonotonicClock``, so what came due while
/// the machine slept fires when it wakes. A timer costs one Dispatch source and no descriptor. Releasing it cancels
/// it. It holds its handler: let that refer weakly to whoever owns the timer.
///
/// Every method is callable from anywhere.
public final class Timer: Sendable {
    private let source: EventSource
    private let armed: ArmedDeadline

    /// Makes a timer that is not armed.
    ///
    /// - Parameters:
    ///   - loop: where the handler runs.
    ///   - handler: runs once per arming.
    public init(on loop: EventLoop, handler: @escaping @Sendable () -> Void) {
        let armed = ArmedDeadline()
        self.armed = armed
        source = EventSource.timer(on: loop) {
            if armed.takeIfDue() { handler() }
        }
        source.resume()
    }

    deinit {
        armed.set(nil)
        source.cancel()
    }

    /// Arms the timer, or arms it anew.
    ///
    /// - Parameter delay: from now; negative is zero, more than 100 years is never. Up to a millisecond of lateness is
    ///   allowed, so that wake-ups join.
    public func schedule(after delay: Duration) {
        arm(MonotonicClock.deadline(after: delay))
    }

    /// Arms the timer for a time on the ``MonotonicClock``, or arms it anew. A time that has passed is now.
    ///
    /// - Parameter nanoseconds: a reading of that clock.
    public func schedule(at nanoseconds: UInt64) {
        arm(nanoseconds)
    }

    /// Disarms the timer. It can be armed again.
    public func cancel() {
        arm(nil)
    }

    /// Whether the timer is armed and has not fired.
    public var isScheduled: Bool { armed.isSet }

    private func arm(_ deadline: UInt64?) {
        armed.set(deadline)
        source.fire(at: deadline)
    }
}

/// The deadline that a timer was last armed with.
///
/// A firing that Dispatch had already queued when the timer was armed anew or cancelled finds it gone or not yet due,
/// and does nothing.
private final class ArmedDeadline: Sendable {
    private let deadline = Lock<UInt64?>(nil)

    func set(_ value: UInt64?) {
        deadline.withLock { $0 = value }
    }

    var isSet: Bool { deadline.withLock { $0 != nil } }

    func takeIfDue() -> Bool {
        let now = MonotonicClock.nanoseconds()
        return deadline.withLock { deadline in
            guard let due = deadline, due <= now else { return false }
            deadline = nil
            return true
        }
    }
}
