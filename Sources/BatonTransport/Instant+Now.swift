import BatonEventLoop
public import BatonProtocol

extension Instant {
    /// The time of this machine's monotonic clock, which all drivers of a session go by.
    public static var now: Instant { Instant(nanoseconds: MonotonicClock.nanoseconds()) }
}
