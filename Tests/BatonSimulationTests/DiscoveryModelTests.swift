// SPDX-License-Identifier: Apache-2.0

import BatonSimulation
import Testing

/// The model of discovery on one network, against what real hosts sent (``DiscoveryCapture``).
@Suite("Model of discovery")
struct DiscoveryModelTests {
    @Test("It sends within 25 % what hosts sent", arguments: DiscoveryCapture.all)
    func captured(capture: DiscoveryCapture) throws {
        let modelled = capture.modelled(seed: 1)
        for part in DiscoveryCapture.Part.allCases {
            let (real, model) = (try #require(capture.parts[part]), try #require(modelled[part]))
            for (name, value) in [
                ("packets", \DiscoveryTraffic.packets), ("bytes", \.bytes), ("probes", \.probes),
                ("questions", \.questions), ("responses", \.responses), ("known answers", \.knownAnswers),
            ] as [(String, KeyPath<DiscoveryTraffic, Int>)] {
                let (captured, said) = (Double(real[keyPath: value]), Double(model[keyPath: value]))
                #expect(
                    abs(said - captured) <= 0.25 * captured,
                    "\(capture.devices) devices, \(part), \(name): captured \(captured), modelled \(said)")
            }
        }
    }

    @Test("The captures are of 4, 12 and 20 hosts")
    func sizes() {
        #expect(DiscoveryCapture.all.map(\.devices) == [4, 12, 20])
    }
}
