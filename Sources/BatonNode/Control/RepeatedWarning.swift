// SPDX-License-Identifier: Apache-2.0

/// A warning that anybody can provoke as often as he likes: said at once, then once a minute at most.
struct RepeatedWarning {
    static let interval = Duration.seconds(60)

    private var lastSaid: ContinuousClock.Instant?
    private var unsaid = 0

    /// There is reason to warn.
    ///
    /// - Returns: how often there was and nothing was said; `nil`: nothing is to be said now either.
    mutating func note(at now: ContinuousClock.Instant) -> Int? {
        if let lastSaid, now - lastSaid < Self.interval {
            unsaid += 1
            return nil
        }
        defer { unsaid = 0 }
        lastSaid = now
        return unsaid
    }
}
