// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import Testing

@testable import BatonCore

@Suite("Bounded values")
struct ToolboxTests {
    @Test("So many events happen at once, and then one in each interval")
    func rateLimiter() {
        let start = Instant(nanoseconds: 1_000_000_000)
        var limiter = RateLimiter(capacity: 2, interval: .seconds(3))
        func take(_ seconds: Int) -> Bool { limiter.take(at: start + .seconds(seconds)) }
        #expect(take(0) && take(0) && !take(0) && !take(2))
        #expect(take(3) && !take(3) && limiter.left(at: start + .seconds(9)) == 2)
        #expect(take(60) && take(60) && !take(62))
    }
}
