// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import BatonTestSupport
import Testing

@testable import BatonCore

@Suite("Known devices, at random")
struct PeersWalkTests {
    private func record(of device: DeviceID, at place: UInt8) -> HeardAdvertisement {
        let content = AdvertisementContent(
            timeToLive: 100, port: 4000, addresses: [NetworkAddress(bytes: [192, 0, 2, place])].compactMap(\.self),
            deviceName: "\(device)", otherActivities: 1)
        let advertisement = Advertisement(
            device: device, publicKey: [], epoch: 1, sequence: 1, gateNonce: [], content: content)
        return HeardAdvertisement(advertisement, under: GenerationID(number: 0, list: nil))
    }

    @Test("No bound is passed, proved devices stay, and everything ends in time")
    func walk() {
        var random = SeededGenerator()
        print("PeersWalkTests: \(random)")
        var peers = PeerTable()
        var now = Instant(nanoseconds: 1_000_000_000)
        let proved = (1000..<1008).map(DeviceID.init(number:))
        for device in proved { peers.prove(device) }
        for step in 0..<3000 {
            now = now + .seconds(Int.random(in: 0...3, using: &random))
            peers.expire(now: now)
            let isProved = Int.random(in: 0..<4, using: &random) == 0
            let device = isProved ? proved[step % 8] : DeviceID(number: .random(in: 0..<200, using: &random))
            let record = record(of: device, at: UInt8.random(in: 1...6, using: &random))
            let instance = "\(Int.random(in: 0..<40, using: &random))"
            let freshness: Freshness
            switch Int.random(in: 0..<6, using: &random) {
            case 0..<3: freshness = Bool.random(using: &random) ? .accepted : .standing(secondsLeft: 5)
            case 3: freshness = .duplicate
            case 4: freshness = .replayed
            case _:
                peers.remove(instance: instance)
                continue
            }
            let version = peers.version
            let before = peers[device]
            let (orders, _) = peers.hear(
                record, as: freshness, isOutdated: false, instance: instance, interface: 1, now: now, unixTime: 1)
            switch freshness {
            case .accepted, .standing:
                #expect(orders.contains(.keep(instance)) && peers.version != version, "\(random), step \(step)")
            case .duplicate, .expired, .replayed:
                #expect(peers[device]?.news == before?.news, "\(random), step \(step)")
            }
            #expect(peers.peers.count <= PeerTable.bound, "\(random), step \(step)")
            #expect(peers.present.allSatisfy { $0.end > now }, "\(random), step \(step)")
            #expect(proved.allSatisfy(peers.isProved), "\(random), step \(step)")
            #expect((peers.nextExpiry == nil) == peers.present.isEmpty, "\(random), step \(step)")
        }
        peers.expire(now: now + .seconds(100))
        #expect(peers.present.isEmpty)
    }
}

extension DeviceID {
    /// A made-up device.
    init(number: Int) {
        self.init(digest: [UInt8(number >> 8), UInt8(number & 0xff)] + [UInt8](repeating: 0, count: Self.count - 2))
    }
}
