// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import Testing

@testable import BatonCore

@Suite("Bounded values")
struct ToolboxTests {
    @Test("The entry that was inserted longest ago makes room")
    func boundedMap() {
        var map = BoundedMap<Int, String>(bound: 2)
        map.insert("a", for: 1)
        map.insert("b", for: 2)
        map.insert("A", for: 1)
        map.insert("c", for: 3)
        #expect(map[1] == "A" && map[2] == nil && map[3] == "c" && map.keys == [1, 3])
        map.remove(1)
        #expect(map.count == 1 && map[1] == nil)
    }

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
