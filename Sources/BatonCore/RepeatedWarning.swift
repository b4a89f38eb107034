// SPDX-License-Identifier: Apache-2.0

package import BatonProtocol

/// A warning that others can provoke as often as they like. It is logged at once, and then once a minute at most.
package struct RepeatedWarning: Sendable {
    private static let interval = Duration.seconds(60)

    private var lastSaid: Instant?
    private var unsaid = 0

    package init() {}

    /// Notes a reason to warn.
    ///
    /// - Returns: the number of reasons since the last warning; nil if nothing is to be logged now.
    package mutating func note(at now: Instant) -> Int? {
        if let lastSaid, now - lastSaid < Self.interval {
            unsaid += 1
            return nil
        }
        defer { unsaid = 0 }
        lastSaid = now
        return unsaid
    }
}
