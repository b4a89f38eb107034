// SPDX-License-Identifier: Apache-2.0

import Glibc

@testable import BatonAccount

/// A million mutated advertisements, or as many as are asked for: none is accepted, and no state changes.
enum AdvertisementMutation {
    /// Sends them and prints what became of them.
    static func run(rounds: Int, seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        print("\(rounds) mutated advertisements, \(random)")
        let secrets = AccountSecrets(AccountKey())
        var records: [[[UInt8]]] = []
        for _ in 0..<3 {
            var sealer = AdvertisementSealer(
                identity: try DeviceIdentity(issuedBy: secrets), keys: secrets.keys(generation: 0), epoch: 9)
            for content in AdvertisementTarget.Fixture.contents + AdvertisementTarget.Fixture.contents {
                if records.count % 3 == 0 { sealer.beginPeriod() }
                records.append(try sealer.seal(content))
            }
        }
        let opener = AdvertisementOpener(
            keys: [secrets.keys(generation: 0)], ownDevice: try DeviceIdentity(issuedBy: secrets).id)
        var siege = try AdvertisementSiege(records: records, opener: opener)
        siege.run(rounds: rounds, using: &random)
        print("\(siege.refused) refused, \(siege.known) were real ones again, \(siege.breaches.count) accepted")
        if let record = siege.breaches.first { print("the first of them:", record) }
        guard siege.breaches.isEmpty, siege.isStateUnchanged else { throw FuzzError("an advertisement got through") }
    }
}
