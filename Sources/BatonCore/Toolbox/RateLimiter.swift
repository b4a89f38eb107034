// SPDX-License-Identifier: Apache-2.0

package import BatonProtocol

/// A token bucket: lets so many events happen at once, and then one in each interval.
package struct RateLimiter: Sendable {
    private let capacity: Int
    private let interval: Duration
    /// When the bucket is full again.
    private var fullAt = Instant(nanoseconds: 0)

    /// - Parameters:
    ///   - capacity: events that may happen at once; the bucket is full at first.
    ///   - interval: the time in which one token comes back.
    package init(capacity: Int, interval: Duration) {
        self.capacity = capacity
        self.interval = interval
    }

    /// The number of tokens that are left.
    package func left(at now: Instant) -> Int { capacity - Int((max(.zero, fullAt - now) / interval).rounded(.up)) }

    /// The time from which there is a token, and so many are left when it is taken.
    package func nextToken(keeping reserve: Int = 0) -> Instant { fullAt + interval * (1 + reserve - capacity) }

    /// Takes a token.
    ///
    /// - Returns: whether there was one.
    package mutating func take(at now: Instant) -> Bool {
        guard left(at: now) > 0 else { return false }
        fullAt = max(fullAt, now) + interval
        return true
    }
}
