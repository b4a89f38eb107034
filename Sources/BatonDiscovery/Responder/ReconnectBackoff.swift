/// How long to wait before the responder is tried again: 1 s, doubling up to 60 s. A value without a clock.
struct ReconnectBackoff {
    static let shortest: Duration = .seconds(1)
    static let longest: Duration = .seconds(60)
    /// A responder that ran for less than this has not recovered: the next failure waits longer than the last.
    static let recovery: Duration = .seconds(10)

    private var next = shortest
    private var runningSince: Duration?

    /// The responder answers.
    mutating func succeed(now: Duration) {
        runningSince = now
    }

    /// The responder failed, or still does. Returns the time to wait.
    mutating func fail(now: Duration) -> Duration {
        if let runningSince, now - runningSince >= Self.recovery { next = Self.shortest }
        runningSince = nil
        defer { next = min(next * 2, Self.longest) }
        return next
    }
}
