// SPDX-License-Identifier: Apache-2.0

import BatonCore
import BatonDiscovery
import BatonEventLoop
import BatonProtocol
import BatonTestSupport
import Logging
import Testing

@testable import BatonAccount
@testable import BatonDiscovery
@testable import BatonNode

/// Advertisements that are sealed with keys of before a revocation.
@Suite("Advertisements under older keys", .timeLimit(.minutes(5)))
struct OutdatedDevicesTests {
    /// The directory of a device that has revoked another one, and strangers who have the older keys.
    private struct Scene {
        let account: TestAccount
        let directory: PeerDirectory
        /// Its responder is not asked. The tests look at which instances the directory wants to hear of.
        let discovery: ServiceDiscovery
        private let (oldKeys, newKeys): (GenerationKeys, GenerationKeys)
        private let others = Others()

        /// - Parameters:
        ///   - known: whether the second device is known from before.
        ///   - isProved: whether a connection has shown then that it is of the account.
        init(known: Bool, isProved: Bool = false) async throws {
            account = try TestAccount(devices: 4)
            var own = account.devices[0].account
            _ = try own.revoke([account.devices[2].id], with: AccountSecrets(account.key))
            (oldKeys, newKeys) = (account.devices[1].account.currentKeys, own.currentKeys)
            let storage = try BlockingExecutor(name: "storage")
            let loop = ControlLoop.loop
            let entry = KnownDevices.Entry(
                deviceID: account.devices[1].id.description, name: "desktop", seen: 1, revision: 0, isProved: isProved)
            discovery = ServiceDiscovery(loop: loop, executor: storage)
            directory = PeerDirectory(
                account: CurrentAccount(own), store: account.devices[0].store, replayGuard: ReplayGuard(),
                known: KnownDevices(known ? [entry] : []),
                discovery: discovery,
                logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
            await others.note(of: directory)
        }

        /// Hears an advertisement of an identity under the older keys.
        func announce(_ identity: DeviceIdentity, under instance: String) async throws {
            await hear(try text(of: identity), under: instance)
        }

        func hear(_ text: [UInt8], under instance: String) async {
            await directory.handle(.record(instance: instance, interfaceIndex: 1, txt: text))
        }

        /// - Parameter isCurrent: under the keys of after the revocation.
        func text(of identity: DeviceIdentity, epoch: UInt64 = 1, isCurrent: Bool = false) throws -> [UInt8] {
            var sealer = AdvertisementSealer(identity: identity, keys: isCurrent ? newKeys : oldKeys, epoch: epoch)
            let strings = try sealer.seal(
                AdvertisementContent(
                    port: 40_000, addresses: [NetworkAddress("192.0.2.7")].compactMap { $0 }, deviceName: "desktop",
                    current: AdvertisedActivity(
                        id: [UInt8](repeating: 1, count: 16), type: "org.example.note",
                        teamTag: [UInt8](repeating: 0, count: 8), version: 1, title: "Note"),
                    otherActivities: 3))
            return strings.flatMap { [UInt8($0.count)] + $0 }
        }

        /// The network shows an instance.
        func see(_ instance: String) async { await discovery.see(instance, "local.", on: 1, isAdded: true) }

        /// The network shows an instance no more, and then again, without a record yet.
        func lose(_ instance: String) async {
            await discovery.see(instance, "local.", on: 1, isAdded: false)
            await directory.handle(.removed(instance: instance))
            await see(instance)
        }

        /// Whether every record of an instance is heard.
        func isHeard(_ instance: String) async -> Bool {
            let (done, ends) = AsyncStream<Bool>.makeStream()
            // Behind all verdicts.
            discovery.submit { ends.yield($0.budget.isHeard(instance)) }
            return await done.first { _ in true } ?? false
        }

        /// The number of pinned instances.
        func kept() async -> Int {
            let (done, ends) = AsyncStream<Int>.makeStream()
            discovery.submit { discovery in
                ends.yield(discovery.budget.usage.kept)
            }
            return await done.first { _ in true } ?? 0
        }

        /// The devices that were heard so far and lack lists.
        func heard() -> [String] { others.devices.withLock { $0 } }
    }

    @Test("A device that was proved is there to be told of the revocation, and offers nothing till then")
    func proved() async throws {
        let scene = try await Scene(known: true, isProved: true)
        let device = scene.account.devices[1]
        try await scene.announce(device.account.identity, under: "a")
        let peer = try #require(await scene.directory.present.first)
        #expect(peer.device == device.id && peer.current == nil && peer.others == 0 && !peer.addresses.isEmpty)
        #expect(scene.heard() == [device.id.description])
    }

    @Test("A device that was only heard of can be dialled to be told, its name stays, and it is not there till then")
    func heardOf() async throws {
        let scene = try await Scene(known: true)
        let device = scene.account.devices[1]
        try await scene.announce(device.account.identity, under: "a")
        #expect(await scene.directory.present.isEmpty)
        #expect(await scene.directory.all.map(\.name) == ["desktop"])
        let peer = try #require(await scene.directory.peer(device.id.description))
        #expect(peer.current == nil && !peer.addresses.isEmpty)
        #expect(scene.heard() == [device.id.description])
    }

    /// Whoever is on the network can say anything under any name.
    @Test("A revoked device's old announcement, sent again under a device's own name, does not silence that device")
    func revokedRecord() async throws {
        let scene = try await Scene(known: true, isProved: true)
        let (device, revoked) = (scene.account.devices[1], scene.account.devices[2])
        let (own, other) = ("0123456789abcdef", "fedcba9876543210")
        for instance in [own, other] { await scene.see(instance) }
        try await scene.announce(device.account.identity, under: own)
        #expect(await scene.isHeard(own))
        for instance in [own, other] { try await scene.announce(revoked.account.identity, under: instance) }
        #expect(await scene.isHeard(own))
        #expect(await !scene.isHeard(other))
        #expect(await scene.directory.present.map(\.device) == [device.id])
    }

    @Test("An old record under the name of a device that went and came back neither removes nor silences it")
    func oldRecord() async throws {
        let scene = try await Scene(known: true, isProved: true)
        let identity = scene.account.devices[1].account.identity
        let (first, back, clone) = ("0123456789abcdef", "fedcba9876543210", "0011223344556677")
        for instance in [first, back, clone] { await scene.see(instance) }
        let (old, new) = (try scene.text(of: identity), try scene.text(of: identity, epoch: 2))
        for text in [old, new] { await scene.hear(text, under: first) }
        await scene.directory.handle(.removed(instance: first))
        await scene.hear(new, under: back)
        #expect(await scene.directory.present.count == 1)
        for instance in [back, clone] { await scene.hear(old, under: instance) }
        #expect(await scene.isHeard(back))
        #expect(await scene.directory.present.count == 1)
        // An instance that has shown nothing else is passed over from then on.
        #expect(await !scene.isHeard(clone))
    }

    /// Whoever is on the network can also say that a record is no more.
    @Test(
        "A device whose record somebody else has taken away is not silenced by what he puts in its place",
        arguments: [false, true])
    func takenAway(isReplayed: Bool) async throws {
        let scene = try await Scene(known: true, isProved: true)
        let identity = scene.account.devices[1].account.identity
        let (own, other) = ("0123456789abcdef", "fedcba9876543210")
        for instance in [own, other] { await scene.see(instance) }
        let old = try scene.text(of: identity)
        for epoch in 1...2 { await scene.hear(try scene.text(of: identity, epoch: UInt64(epoch)), under: own) }
        await scene.lose(own)
        #expect(await scene.directory.present.isEmpty)
        for instance in [own, other] { await scene.hear(isReplayed ? old : [1, 0], under: instance) }
        #expect(await scene.isHeard(own))
        // An old record of a device that is not there may come from a cache, under a name that is the device's own.
        #expect(await scene.isHeard(other) == isReplayed)
        #expect(await scene.directory.present.isEmpty)
        await scene.hear(try scene.text(of: identity, epoch: 3), under: own)
        #expect(await scene.directory.present.count == 1)
    }

    @Test("A device whose record somebody else has taken away is still pinned when it says the same again")
    func takenAwayAndBack() async throws {
        let scene = try await Scene(known: true, isProved: true)
        let text = try scene.text(of: scene.account.devices[1].account.identity)
        let (own, clone) = ("0123456789abcdef", "fedcba9876543210")
        for instance in [own, clone] { await scene.see(instance) }
        await scene.hear(text, under: own)
        #expect(await scene.kept() == 1)
        await scene.lose(own)
        for instance in [clone, own] { await scene.hear(text, under: instance) }
        #expect(await scene.directory.present.count == 1)
        #expect(await scene.isHeard(clone))
        // That of the one which has shown something new, and none of a clone.
        #expect(await scene.kept() == 1)
        await scene.directory.handle(.removed(instance: clone))
        await scene.hear(text, under: clone)
        #expect(await scene.kept() == 1)
    }

    @Test("Another device's old announcement, sent again under the name of one that went, does not silence that one")
    func othersRecord() async throws {
        let scene = try await Scene(known: true, isProved: true)
        let (device, other) = (scene.account.devices[1], scene.account.devices[3].account.identity)
        let (own, others) = ("0123456789abcdef", "fedcba9876543210")
        for instance in [own, others] { await scene.see(instance) }
        try await scene.announce(device.account.identity, under: own)
        let said = try (1...2).map { try scene.text(of: other, epoch: $0, isCurrent: true) }
        for text in said { await scene.hear(text, under: others) }
        await scene.directory.handle(.removed(instance: own))
        await scene.hear(said[0], under: own)
        #expect(await scene.isHeard(own))
        #expect(await scene.directory.present.map(\.device) == [scene.account.devices[3].id])
    }

    /// He copies a record that all can see, and is there before the device that has slept.
    @Test(
        "A record of another device under the name of one that slept through a revocation does not hide that one")
    func copiedBefore() async throws {
        let scene = try await Scene(known: true, isProved: true)
        let (device, other) = (scene.account.devices[1], scene.account.devices[3].account.identity)
        let copied = try scene.text(of: other, isCurrent: true)
        for instance in ["a", "n"] { await scene.hear(copied, under: instance) }
        try await scene.announce(device.account.identity, under: "n")
        try await eventually("it is dialled") { await scene.directory.present.count == 2 }
        #expect(scene.heard() == [device.id.description])
    }

    @Test("Under a name that shows a device, twenty records are tried with all keys at once, and then twenty a second")
    func flood() async throws {
        var isDropped = false
        // A token comes back each 50 ms, which a busy machine may need between two records.
        for _ in 0..<20 where !isDropped {
            let scene = try await Scene(known: true, isProved: true)
            let (device, other) = (scene.account.devices[1], scene.account.devices[3].account.identity)
            var noise = try scene.text(of: other, isCurrent: true)
            await scene.hear(noise, under: "n")
            let own = try scene.text(of: device.account.identity)
            for _ in 0..<40 {
                noise[noise.count - 1] &+= 1
                await scene.hear(noise, under: "n")
            }
            await scene.hear(own, under: "n")
            isDropped = scene.heard().isEmpty
            try await eventually("a later one is tried") {
                await scene.hear(own, under: "n")
                return scene.heard() == [device.id.description]
            }
        }
        #expect(isDropped)
    }

    /// Each signal has whoever watches look at all devices again.
    @Test("A record that changes nothing is no signal for those who watch", arguments: [false, true])
    func signals(isNews: Bool) async throws {
        let scene = try await Scene(known: true, isProved: true)
        let identity = scene.account.devices[1].account.identity
        let own = "0123456789abcdef"
        let old = try scene.text(of: identity)
        for text in [old, try scene.text(of: identity, epoch: 2)] { await scene.hear(text, under: own) }
        await scene.directory.handle(.removed(instance: own))
        var signals = try await scene.directory.watch().makeAsyncIterator()
        _ = await signals.next()
        for _ in 0..<3 { await scene.hear(old, under: own) }
        await scene.directory.handle(.removed(instance: own))
        if isNews { await scene.hear(try scene.text(of: identity, epoch: 3), under: own) }
        await scene.directory.stop()
        var count = 0
        while await signals.next() != nil { count += 1 }
        #expect(count == (isNews ? 1 : 0))
    }

    @Test("A copy of what a device says that comes and goes is no signal for those who watch")
    func copies() async throws {
        let scene = try await Scene(known: true, isProved: true)
        let identity = scene.account.devices[1].account.identity
        let texts = try ([2, 1] as [UInt64]).map { try scene.text(of: identity, epoch: $0) }
        await scene.hear(texts[0], under: "0123456789abcdef")
        var signals = try await scene.directory.watch().makeAsyncIterator()
        _ = await signals.next()
        for text in texts { await scene.hear(text, under: "fedcba9876543210") }
        await scene.hear(texts[0], under: "fedcba9876543210")
        await scene.directory.handle(.removed(instance: "fedcba9876543210"))
        await scene.directory.stop()
        #expect(await signals.next() == nil)
        #expect(await scene.directory.present.count == 1)
    }

    @Test("Unknown devices can be dialled, few at a time, and are neither listed nor remembered")
    func unknown() async throws {
        let scene = try await Scene(known: false)
        var ids: [String] = []
        for number in 0..<(OutdatedDevices.bound + 2) {
            let identity = try TestAccount(devices: 1).devices[0].account.identity
            ids.append(identity.id.description)
            try await scene.announce(identity, under: "\(number)")
        }
        #expect(await scene.directory.present.isEmpty)
        #expect(await scene.directory.all.isEmpty)
        #expect(scene.heard() == Array(ids.prefix(OutdatedDevices.bound)))
        for (number, id) in ids.enumerated() {
            let peer = await scene.directory.peer(id)
            #expect((peer != nil) == (number < OutdatedDevices.bound))
            #expect(peer?.current == nil)
        }
    }

    /// Devices by number, in simulated time.
    private struct Line {
        private static let generation = GenerationID(number: 0, list: nil)
        var outdated = OutdatedDevices()

        func device(_ number: Int) -> DeviceID { DeviceID(ed25519PublicKey: Self.publicKey(number)) }

        /// Whether a device can be dialled.
        func hasTurn(_ number: Int) -> Bool { outdated[device(number)] != nil }

        /// Where a device is dialled.
        func port(_ number: Int) -> UInt16? { outdated[device(number)]?.addresses.first?.port }

        private static func publicKey(_ number: Int) -> [UInt8] {
            (0..<32).map { UInt8(truncatingIfNeeded: number >> (8 * ($0 % 4))) }
        }

        /// - Returns: the devices whose turn it is.
        mutating func hear(
            _ number: Int, at seconds: Int, sequence: UInt64 = 1, host: String? = nil, port: UInt16 = 4000
        ) -> [DeviceID] {
            let key = Self.publicKey(number)
            let address = NetworkAddress(host ?? "10.0.\(number / 250).\(number % 250)")
            let advertisement = Advertisement(
                device: DeviceID(ed25519PublicKey: key), publicKey: key, epoch: 1, sequence: sequence,
                gateNonce: [UInt8](repeating: 0, count: 16),
                content: AdvertisementContent(
                    timeToLive: 120, port: port, addresses: [address].compactMap { $0 },
                    deviceName: "\(number)"))
            return outdated.receive(
                HeardAdvertisement(advertisement, under: Self.generation), instance: "\(number)", interface: 1,
                now: Instant(nanoseconds: UInt64(seconds) * 1_000_000_000), unixTime: 1)
        }
    }

    private static let thieves = 0..<OutdatedDevices.bound

    @Test("Each has a turn of 20 s, and who waits has the next one, heard again or not")
    func turns() {
        var line = Line()
        for number in Self.thieves { #expect(line.hear(number, at: 1) == [line.device(number)]) }
        let next = OutdatedDevices.bound
        #expect(line.hear(next, at: 5).isEmpty && !line.hasTurn(next))
        #expect(line.hear(0, at: 20) == [line.device(0)])
        // One of those whose turn is over speaks first.
        #expect(Set(line.hear(1, at: 21)) == [line.device(next), line.device(1)])
        #expect(line.hasTurn(next) && !line.hasTurn(0))
        line.outdated.remove(line.device(next))
        #expect(!line.hasTurn(next))
    }

    @Test("Four that announce themselves all the time do not hold all turns: who had none goes first")
    func fairness() {
        var line = Line()
        let honest = 100
        var turns: [Int] = []
        for second in 0..<600 {
            for number in Self.thieves { _ = line.hear(number, at: second) }
            // It is heard each half a minute, in the middle of their turns.
            if second % 30 == 10 { _ = line.hear(honest, at: second) }
            if line.hasTurn(honest) { turns.append(second) }
        }
        #expect(turns.first == 20)
        // And again, when each of the others had one since.
        #expect(turns.count >= 200, "\(turns.count) of 600 seconds")
    }

    @Test("Who had no turn takes the place in a full line of who had one, and one that is silent loses it")
    func fullLine() {
        var line = Line()
        // As many as wait, and as have their turn after one each.
        let count = OutdatedDevices.waitingBound + OutdatedDevices.bound
        var had = Set<DeviceID>()
        for second in 0..<400 {
            for number in 0..<count { had.formUnion(line.hear(number, at: second)) }
        }
        #expect(had.count == count)
        #expect(line.hear(1000, at: 399).isEmpty)
        #expect(line.hear(0, at: 400).contains(line.device(1000)))
        // All of the line are new: one more is not taken in, until somebody's turn has come.
        var fresh = Line()
        for number in 0..<count { _ = fresh.hear(number, at: 0) }
        #expect(fresh.hear(1000, at: 1).isEmpty)
        _ = fresh.hear(0, at: 20)
        #expect(fresh.hear(1000, at: 21).isEmpty)
        // Nothing that was said two minutes ago counts.
        #expect(fresh.hear(2000, at: 200) == [fresh.device(2000)])
        #expect(!fresh.hasTurn(20) && !fresh.hasTurn(1000))
    }

    @Test("What is older than what was heard takes no place of it, in the line or in a turn")
    func older() {
        var line = Line()
        for number in Self.thieves { _ = line.hear(number, at: 0) }
        let honest = OutdatedDevices.bound
        _ = line.hear(honest, at: 1, sequence: 5, port: 4005)
        _ = line.hear(honest, at: 2, sequence: 4, port: 4004)
        _ = line.hear(0, at: 20)
        #expect(line.port(honest) == 4005)
        #expect(line.hear(honest, at: 21, sequence: 4, port: 4004).isEmpty)
        #expect(line.port(honest) == 4005)
        #expect(line.hear(honest, at: 22, sequence: 6, port: 4006) == [line.device(honest)])
        #expect(line.port(honest) == 4006)
    }

    @Test("Ever new devices at one address keep nobody else from the line")
    func oneAddress() {
        var line = Line()
        let honest = 5000
        var number = 0
        for second in 0..<120 {
            for _ in 0..<10 {
                _ = line.hear(number, at: second, host: "192.0.2.7")
                number += 1
            }
            if second == 30 { _ = line.hear(honest, at: second) }
            if line.hasTurn(honest) { return #expect(second <= 60) }
        }
        Issue.record("it has no turn")
    }

    @Test("A thief's devices that name the address of an honest one keep it from no turn", arguments: [4, 8, 12, 40])
    func sameAddress(count: Int) {
        var line = Line()
        let honest = 5000
        var turns = 0
        for second in 0..<1200 {
            let sequence = UInt64(second)
            for number in 0..<count { _ = line.hear(number, at: second, sequence: sequence, host: "10.9.9.9") }
            if second % 30 == 10 { _ = line.hear(honest, at: second, sequence: sequence, host: "10.9.9.9") }
            if line.hasTurn(honest) { turns += 1 }
        }
        // About as many as each of the others has.
        #expect(turns >= 1200 * OutdatedDevices.bound / (count + 1) / 3, "\(turns) of 1200 seconds")
    }

    @Test("It is remembered of so many devices that they had a turn")
    func memory() {
        var line = Line()
        // One after the other, alone.
        for number in 0...OutdatedDevices.servedBound { #expect(line.hear(number, at: 20 * number).count == 1) }
        let now = 20 * (OutdatedDevices.servedBound + 1)
        for number in 1000..<1000 + OutdatedDevices.bound { _ = line.hear(number, at: now) }
        // The first is forgotten, and counts as new; the last is not.
        #expect(line.hear(OutdatedDevices.servedBound, at: now).isEmpty && line.hear(0, at: now).isEmpty)
        for number in 2000..<2000 + OutdatedDevices.bound - 1 { _ = line.hear(number, at: now) }
        _ = line.hear(2000, at: now + 20)
        #expect(line.hasTurn(0) && !line.hasTurn(OutdatedDevices.servedBound))
    }
}

/// Devices that account state is exchanged with.
private final class Others: Sendable {
    let devices = Lock<[String]>([])

    @ControlLoop
    func note(of directory: PeerDirectory) {
        directory.onOtherwiseKeyed = { other in
            if other.lacksLists { self.devices.withLock { $0.append(other.device) } }
        }
    }
}
