// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import BatonTestSupport
import Testing

@testable import BatonCore

@Suite("Known devices, at random")
struct PeersWalkTests {
    private struct TestRecord: PeerRecord {
        struct Activity: Sendable, Identifiable { let id: Int }
        struct Address: PeerAddress { let host: Int? }
        struct Names: NameHistory { mutating func add(_ name: String) {} }
        typealias Device = String

        let device: String
        let place: Int
        var name: String { device }
        var generation: UInt32 { 0 }
        var current: Activity? { Activity(id: place) }
        var age: UInt64 { 0 }
        var others: Int { 1 }
        var timeToLive: UInt16 { 100 }
        func addresses(over interfaces: Set<UInt32>) -> [Address] { [Address(host: place)] }
    }

    @Test("No bound is passed, proved devices stay, and everything ends in time")
    func walk() {
        var random = SeededGenerator()
        print("PeersWalkTests: \(random)")
        typealias Table = Peers<TestRecord>
        var peers = Table()
        var now = Instant(nanoseconds: 1_000_000_000)
        let proved = (0..<8).map { "proved \($0)" }
        for device in proved { peers.prove(device) }
        for step in 0..<3000 {
            now = now + .seconds(Int.random(in: 0...3, using: &random))
            peers.expire(now: now)
            let isProved = Int.random(in: 0..<4, using: &random) == 0
            let device = isProved ? proved[step % 8] : "invented \(Int.random(in: 0..<200, using: &random))"
            let record = TestRecord(device: device, place: Int.random(in: 0..<6, using: &random))
            let instance = "\(Int.random(in: 0..<40, using: &random))"
            let freshness: Table.Freshness
            switch Int.random(in: 0..<6, using: &random) {
            case 0..<3: freshness = .new(lasting: Bool.random(using: &random) ? nil : 5)
            case 3: freshness = .repeated
            case 4: freshness = .old
            case _:
                peers.remove(instance: instance)
                continue
            }
            let version = peers.version
            let before = peers[device]
            let orders = peers.hear(
                record, as: freshness, isOutdated: false, instance: instance, interface: 1, now: now, unixTime: 1)
            if case .new = freshness {
                #expect(orders.contains(.keep(instance)) && peers.version != version, "\(random), step \(step)")
            } else {
                #expect(peers[device]?.news == before?.news, "\(random), step \(step)")
            }
            #expect(peers.peers.count <= Table.bound, "\(random), step \(step)")
            #expect(peers.present.allSatisfy { $0.end > now }, "\(random), step \(step)")
            #expect(proved.allSatisfy(peers.isProved), "\(random), step \(step)")
            #expect((peers.nextExpiry == nil) == peers.present.isEmpty, "\(random), step \(step)")
        }
        #expect(peers.takePresence(at: now).count <= Table.sentenceBound)
        peers.expire(now: now + .seconds(100))
        #expect(peers.present.isEmpty)
    }
}
