// SPDX-License-Identifier: Apache-2.0

/// How long to wait before the responder is tried again: 1 s, doubling up to 5 s: the devices around are found within
/// ten, however long it was away, and one local connection in 5 s costs nothing. A value without a clock.
struct ReconnectBackoff {
    static let shortest: Duration = .seconds(1)
    static let longest: Duration = .seconds(5)
    /// A responder that ran for less than this has not recovered: the next failure waits longer than the last.
    static let recovery: Duration = .seconds(10)

    /// What it begins with.
    private let first: Duration
    private var next: Duration
    private var runningSince: Duration?

    init(first: Duration = shortest) {
        self.first = first
        next = first
    }

    /// The responder answers.
    mutating func succeed(now: Duration) {
        runningSince = now
    }

    /// The responder failed, or still does. Returns the time to wait.
    mutating func fail(now: Duration) -> Duration {
        if let runningSince, now - runningSince >= Self.recovery { next = first }
        runningSince = nil
        defer { next = min(next * 2, Self.longest) }
        return next
    }
}
