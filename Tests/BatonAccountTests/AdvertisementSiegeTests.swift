// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonProtocol
import BatonTestSupport
import Testing

/// An attacker that records advertisements, changes them, and sends them again.
@Suite struct AdvertisementSiegeTests {
    /// A tenth of the million, which takes minutes in a debug build: `Scripts/fuzz` sends all of it.
    @Test func noneIsAcceptedAndNoStateChanges() throws {
        let account = try TestAccount(devices: 4)
        var records: [[[UInt8]]] = []
        for device in account.devices.dropFirst() {
            var sealer = try device.makeSealer()
            for period in 0..<2 {
                if period > 0 { sealer.beginPeriod() }
                for title in ["A note", "Another"] {
                    let activity = AdvertisedActivity(
                        id: [UInt8](repeating: 1, count: 16), type: "com.example.note",
                        teamTag: [UInt8](repeating: 2, count: 8), version: 1, title: title)
                    records.append(
                        try sealer.seal(
                            AdvertisementContent(port: 40_000, addresses: [], deviceName: "d", current: activity)))
                }
            }
        }
        var random = SeededGenerator()
        print("AdvertisementSiege: \(random)")
        var siege = try AdvertisementSiege(records: records, opener: account.devices[0].makeOpener())
        siege.run(rounds: 100_000, using: &random)
        #expect(siege.breaches == [], "\(random)")
        #expect(siege.isStateUnchanged, "\(random)")
        // Both ways were taken, and nearly all were refused.
        #expect(siege.refused > 90_000 && siege.known > 0, "\(random)")
    }
}
