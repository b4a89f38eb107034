// SPDX-License-Identifier: Apache-2.0

import BatonCore
import BatonEventLoop
import BatonProtocol
import BatonTestSupport
import Testing

@testable import BatonAccount
@testable import BatonNode

@Suite("Devices that were seen, in simulated time")
struct PeerTableTests {
    private let start = Instant(nanoseconds: 1_000_000_000)

    private static let generation = GenerationID(number: 0, list: nil)

    private func device(_ number: UInt8) throws -> DeviceID {
        DeviceID(ed25519PublicKey: [UInt8](repeating: number, count: 32))
    }

    private func advertisement(
        _ number: UInt8, addresses: [String]? = nil, port: UInt16 = 4000, timeToLive: UInt16 = 120,
        activity: UInt8? = nil, age: UInt32 = 0, others: UInt8 = 0, name: String? = nil
    ) throws -> HeardAdvertisement {
        let current = activity.map {
            AdvertisedActivity(
                id: [UInt8](repeating: $0, count: 16), type: "org.example.note",
                teamTag: [UInt8](repeating: 0, count: 8), version: 1, age: age, title: "Note")
        }
        let advertisement = Advertisement(
            device: try device(number), publicKey: [UInt8](repeating: number, count: 32), epoch: 1, sequence: 1,
            gateNonce: [UInt8](repeating: 0, count: 16),
            content: AdvertisementContent(
                timeToLive: timeToLive, port: port,
                addresses: try (addresses ?? ["10.0.0.\(number)"]).map { try #require(NetworkAddress($0)) },
                deviceName: name ?? "device \(number)", current: current, otherActivities: others))
        return HeardAdvertisement(advertisement, under: Self.generation)
    }

    private func receive(
        _ advertisement: HeardAdvertisement, in table: inout PeerTable, instance: String = "a", interface: UInt32 = 2,
        now: Instant? = nil, unixTime: UInt64 = 1000
    ) {
        table.receive(
            advertisement, instance: instance, interface: interface, now: now ?? start, unixTime: unixTime)
    }

    @Test("Each advertisement that counts is news, and one that says so is not to be believed alone")
    func uncounted() throws {
        var table = PeerTable()
        receive(try advertisement(1, activity: 9, others: 254), in: &table)
        #expect(table.present.map(\.isUncounted) == [false] && table.present.map(\.news) == [1])
        let uncounted = try advertisement(1, others: AdvertisementContent.uncountedActivities)
        receive(uncounted, in: &table)
        table.receiveAgain(uncounted, instance: "a", interface: 3, now: start)
        #expect(table.present.map(\.isUncounted) == [true] && table.present.map(\.news) == [2])
        table.remove(instance: "a")
        #expect(table.peers.values.map(\.isUncounted) == [false] && table.peers.values.map(\.news) == [2])
    }

    @Test("One entry a device, whichever instances and interfaces show it")
    func folding() throws {
        var table = PeerTable()
        let first = try advertisement(1, activity: 9)
        receive(first, in: &table)
        table.receiveAgain(first, instance: "a", interface: 3, now: start)
        receive(try advertisement(1, activity: 9), in: &table, instance: "b", interface: 2)
        #expect(table.present.count == 1)
        #expect(table.present.first?.instances == ["a", "b"])
        #expect(table.present.first?.interfaces == [2, 3])
        #expect(["a", "b", "c"].map { table.records(shownBy: $0).count } == [1, 1, 0])
        table.remove(instance: "a")
        #expect(table.records(shownBy: "a").isEmpty)
        #expect(table.present.first?.current != nil)
        table.remove(instance: "unheard of")
        #expect(table.present.count == 1)
        table.remove(instance: "b")
        #expect(table.present.isEmpty)
        // It is remembered, idle.
        let gone = try #require(table.peers[try device(1)])
        #expect(gone.current == nil && gone.others == 0 && gone.interfaces.isEmpty)
        // Whoever is not in the table is not brought in by a repetition.
        table.receiveAgain(try advertisement(2), instance: "c", interface: 2, now: start)
        #expect(table.peers.count == 1)
    }

    @Test("A record of an earlier run counts for the rest of its time, and a repetition prolongs nothing")
    func standing() throws {
        var table = PeerTable()
        let advertised = try advertisement(1)
        table.receive(
            advertised, instance: "a", interface: 2, now: start, lasting: 40, unixTime: 1000)
        let end = start + .seconds(40)
        #expect(table.nextExpiry == end)
        table.receiveAgain(advertised, instance: "b", interface: 2, now: start + .seconds(39))
        table.expire(now: start + .seconds(39))
        #expect(table.present.first?.instances == ["a", "b"])
        table.expire(now: end)
        table.receiveAgain(advertised, instance: "b", interface: 2, now: end)
        #expect(table.present.isEmpty)
    }

    @Test("A device that had gone and is seen again says the same as before, for the rest of its time")
    func back() throws {
        var table = PeerTable()
        let advertised = try advertisement(1, activity: 9, age: 5, others: 2)
        receive(advertised, in: &table, unixTime: 1000)
        let end = try #require(table.nextExpiry)
        func seeAgain(isOutdated: Bool = false, at time: Instant) -> Bool {
            let version = table.version
            table.receiveAgain(advertised, isOutdated: isOutdated, instance: "b", interface: 3, now: time)
            return table.version != version
        }
        let isSecond = seeAgain(at: start)
        #expect(!isSecond)
        for instance in ["a", "b"] { table.remove(instance: instance) }
        let isBack = seeAgain(at: start + .seconds(10))
        let peer = try #require(table.present.first)
        #expect(isBack && peer.current?.title == "Note" && peer.others == 2 && peer.currentSince == 995)
        #expect(peer.interfaces == [3] && table.nextExpiry == end)
        table.remove(instance: "b")
        let isIdleBack = seeAgain(isOutdated: true, at: start + .seconds(10))
        #expect(isIdleBack && table.present.map(\.others) == [0] && table.present.first?.current == nil)
        table.remove(instance: "b")
        let isLateBack = seeAgain(at: end)
        #expect(!isLateBack && table.present.isEmpty)
    }

    @Test("Ever new devices at one address push out no other that nothing has proved")
    func oneAddress() throws {
        var table = PeerTable()
        receive(try advertisement(1), in: &table, unixTime: 1)
        let longest = try advertisement(2, addresses: ["192.0.2.7"])
        for _ in 0..<2 { receive(longest, in: &table, unixTime: 1) }
        for number in UInt8(10)..<250 {
            receive(try advertisement(number, addresses: ["192.0.2.7"]), in: &table, unixTime: UInt64(number))
        }
        #expect(table.peers.count == 1 + PeerTable.boundUnprovedAtAddress)
        // A device that has said more than they stays as well.
        #expect(try table.peers[device(1)] != nil && table.peers[device(2)] != nil && table.peers[device(249)] != nil)
    }

    @Test("A connection that is there before the first advertisement proves the device as well")
    func provedBefore() throws {
        var table = PeerTable()
        let (early, removed) = (try device(1), try device(2))
        table.prove(early)
        table.prove(removed)
        table.remove(device: removed)
        #expect(table.peers.isEmpty && table.isProved(early) && !table.isProved(removed))
        for number in 1...3 { receive(try advertisement(UInt8(number)), in: &table, instance: "\(number)") }
        #expect(table.peers.values.filter(\.isProved).map(\.device) == [early])
        #expect(table.known.entries.count(where: { $0.isProved == true }) == 1)
        // Of so many it is remembered, the last ones.
        var full = PeerTable()
        for number in 0...PeerTable.bound { full.prove(try device(UInt8(number))) }
        #expect(!full.isProved(try device(0)))
        #expect(try (1...PeerTable.bound).allSatisfy { full.isProved(try device(UInt8($0))) })
        // Again is no second place.
        full.prove(try device(1))
        full.prove(try device(1))
        #expect(full.isProved(try device(2)))
    }

    @Test("Whoever was proved by a connection makes no room for who was not, also after a restart")
    func proved() throws {
        var table = PeerTable()
        receive(try advertisement(1), in: &table, unixTime: 1)
        receive(try advertisement(2), in: &table, unixTime: 2)
        let (one, two) = (try device(1), try device(2))
        table.prove(one)
        for number in 3...200 {
            receive(try advertisement(UInt8(number)), in: &table, instance: "\(number)", unixTime: 9)
        }
        #expect(table.peers.count == PeerTable.bound)
        #expect(table.peers[one]?.isProved == true && table.peers[two] == nil)
        var next = PeerTable(table.known)
        #expect(next.peers[one]?.isProved == true)
        for device in next.peers.keys { next.prove(device) }
        // Where all are, one that is not announced makes room; and then whoever took its place.
        receive(try advertisement(2), in: &next, unixTime: 100)
        #expect(next.peers[two] != nil && next.peers.count == PeerTable.bound)
        for number in 201...240 { receive(try advertisement(UInt8(number)), in: &next, unixTime: 100) }
        #expect(next.peers[two] == nil && next.peers.values.count(where: \.isProved) == PeerTable.bound - 1)
        // That one is proved still when it comes back.
        let gone = table.peers.keys.filter { next.peers[$0] == nil }
        #expect(gone.count == 1 && gone.allSatisfy(next.isProved))
    }

    @Test("The names that a proved device had are remembered, the first ones, also after a restart; others' are not")
    func formerNames() throws {
        var table = PeerTable()
        let (one, two) = (try device(1), try device(2))
        func names(_ device: DeviceID) -> [String]? { table.peers[device]?.formerNames.other(than: "") }
        func rename(_ number: UInt8, _ name: String) throws {
            receive(try advertisement(number, name: name), in: &table, instance: "\(number)")
        }
        // Nobody vouches for the name that it had before it was proved.
        try rename(1, "early")
        try rename(1, "host2")
        table.prove(one)
        for name in ["decoy", "host2"] { try rename(2, name) }
        #expect(names(one) == [] && names(two) == [])
        try rename(1, "host2")
        #expect(names(one) == [])
        try rename(1, "tv")
        #expect(names(one) == ["host2"] && table.peers[one]?.name == "tv")
        // Also one that it takes again, and drops again when there is no room any more.
        try rename(1, "host2")
        for number in 1...20 { try rename(1, "\(number)") }
        table = PeerTable(table.known)
        try rename(1, "host2")
        try rename(1, "last")
        #expect(names(one) == ["host2", "tv"] + (1...6).map(String.init) && names(two) == [])
        #expect(names(one)?.count == FormerNames.bound)
    }

    @Test("Where the keys change, whoever showed only the old ones is but a name, and who was proved is not")
    func oldKeys() throws {
        var table = PeerTable()
        receive(try advertisement(1), in: &table)
        receive(try advertisement(2), in: &table, instance: "b")
        table.prove(try device(1))
        table.distrustUnproved(before: 0)
        #expect(table.present.count == 2)
        table.distrustUnproved(before: 1)
        let (one, two) = (try device(1), try device(2))
        #expect(table.present.map(\.device) == [one])
        #expect(table.peers[two]?.name == "device 2" && table.peers[two]?.current == nil)
    }

    @Test("An advertisement is believed for its time to live")
    func expiry() throws {
        var table = PeerTable()
        receive(try advertisement(1, timeToLive: 10), in: &table)
        receive(try advertisement(2, timeToLive: 20), in: &table, instance: "b")
        #expect(table.nextExpiry == start + .seconds(10))
        table.expire(now: start + .seconds(10) + .nanoseconds(-1))
        #expect(table.present.count == 2)
        table.expire(now: start + .seconds(10))
        #expect(table.present.map(\.name) == ["device 2"])
        #expect(table.nextExpiry == start + .seconds(20))
        receive(try advertisement(2, timeToLive: 20), in: &table, instance: "b", now: start + .seconds(15))
        table.expire(now: start + .seconds(20))
        #expect(table.present.count == 1)
        table.expire(now: start + .seconds(35))
        #expect(table.present.isEmpty && table.nextExpiry == nil)
    }

    @Test("An activity keeps the time that it was first seen with, and a new one gets its own")
    func currentSince() throws {
        var table = PeerTable()
        receive(try advertisement(1, activity: 9, age: 5), in: &table, unixTime: 1000)
        let id = try device(1)
        #expect(table.peers[id]?.currentSince == 995)
        receive(try advertisement(1, activity: 9, age: 66), in: &table, unixTime: 1060)
        #expect(table.peers[id]?.currentSince == 995)
        #expect(table.peers[id]?.seen == 1060)
        receive(try advertisement(1, activity: 8), in: &table, unixTime: 1070)
        #expect(table.peers[id]?.currentSince == 1070)
        // An age above the clock is no time before 1970.
        receive(try advertisement(1, activity: 7, age: .max), in: &table, unixTime: 1080)
        #expect(table.peers[id]?.currentSince == 0)
    }

    @Test("The table is bounded, and the device that was gone longest makes room")
    func bound() throws {
        var table = PeerTable()
        for number in 0..<UInt8(PeerTable.bound) {
            receive(
                try advertisement(number), in: &table, instance: "\(number)", unixTime: 1000 + UInt64(number))
        }
        #expect(table.peers.count == PeerTable.bound)
        // A known one needs no room.
        receive(try advertisement(0), in: &table, instance: "0", unixTime: 1000)
        #expect(table.peers.count == PeerTable.bound)
        // A device that has gone makes room before one that is there, however old.
        table.remove(instance: "5")
        receive(try advertisement(200), in: &table, instance: "200", unixTime: 2000)
        #expect(table.peers.count == PeerTable.bound)
        #expect(try table.peers[device(5)] == nil)
        #expect(try table.peers[device(0)] != nil)
        receive(try advertisement(201), in: &table, instance: "201", unixTime: 2001)
        #expect(try table.peers[device(0)] == nil)
        #expect(try table.peers[device(201)] != nil)
    }

    @Test("A link-local address is dialled on each interface that it was seen on, and no other address is")
    func addresses() throws {
        var table = PeerTable()
        let advertised = try advertisement(1, addresses: ["fe80::1", "10.0.0.1", "127.0.0.1", "2001:db8::1"])
        receive(advertised, in: &table, interface: 7)
        table.receiveAgain(advertised, instance: "a", interface: 4, now: start)
        let linkLocal = try #require(IPAddress("fe80::1"))
        let expected = [
            linkLocal.scoped(to: 4), linkLocal.scoped(to: 7), try #require(IPAddress("10.0.0.1")),
            try #require(IPAddress("2001:db8::1")),
        ].map { SocketAddress.ip($0, port: 4000) }
        #expect(table.present.first?.addresses == expected)
    }

    @Test("Loopback is never dialled: it leads to this device")
    func loopback() throws {
        var table = PeerTable()
        receive(try advertisement(1, addresses: ["127.0.0.1", "::1"]), in: &table)
        #expect(table.present.first?.addresses.isEmpty == true)
    }

    @Test("Nobody is dialled on a port of the system", arguments: [(1023 as UInt16, 0), (1024, 1), (0, 0), (65535, 1)])
    func ports(port: UInt16, count: Int) throws {
        var table = PeerTable()
        receive(try advertisement(1, port: port), in: &table)
        #expect(table.present.first?.addresses.count == count)
    }
}
