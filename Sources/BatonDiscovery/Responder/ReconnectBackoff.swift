// SPDX-License-Identifier: Apache-2.0

/// The pause before the responder is tried again. A value without a clock.
///
/// It is 1 s at first and doubles up to 5 s, so that devices are found within 10 s after any outage. One local
/// connection in 5 s costs nothing.
struct ReconnectBackoff {
    static let shortest: Duration = .seconds(1)
    static let longest: Duration = .seconds(5)
    /// A responder that ran for less than this has not recovered, and the next pause is longer than the last.
    static let recovery: Duration = .seconds(10)

    private var next = shortest
    private var runningSince: Duration?

    /// Notes that the responder answers.
    mutating func succeed(now: Duration) {
        runningSince = now
    }

    /// Notes that the responder failed, and returns the time to wait.
    mutating func fail(now: Duration) -> Duration {
        if let runningSince, now - runningSince >= Self.recovery { next = Self.shortest }
        runningSince = nil
        defer { next = min(next * 2, Self.longest) }
        return next
    }
}
