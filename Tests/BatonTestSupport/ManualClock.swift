public import BatonProtocol

/// Time that stands still until a test moves it.
public struct ManualClock: Sendable {
    /// The present. Starts at one second, so that "before the start" can be said as well.
    public private(set) var now = Instant(nanoseconds: 1_000_000_000)

    /// A clock that shows one second.
    public init() {}

    /// Moves the clock forward by `duration`.
    public mutating func advance(by duration: Duration) {
        now = now + duration
    }

    /// Moves the clock forward to `instant`; never back.
    public mutating func advance(to instant: Instant) {
        now = max(now, instant)
    }
}
