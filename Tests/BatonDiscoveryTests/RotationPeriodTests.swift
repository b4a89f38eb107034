// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import BatonDiscovery

@Suite("How long a name is used")
struct RotationPeriodTests {
    @Test("15 minutes, give or take a tenth, and another time each")
    func jitter() {
        let configuration = DiscoveryConfiguration()
        #expect(configuration.rotationPeriod == .seconds(15 * 60))
        let times = (0..<1_000).map { _ in configuration.nextRotation }
        // The whole range is used, and nothing beyond it.
        let ends = (times.min() ?? .zero, times.max() ?? .zero)
        #expect(ends.0 >= .seconds(810) && ends.0 < .seconds(820), "\(ends)")
        #expect(ends.1 <= .seconds(990) && ends.1 > .seconds(980), "\(ends)")
        #expect(Set(times).count > 990)
    }
}
