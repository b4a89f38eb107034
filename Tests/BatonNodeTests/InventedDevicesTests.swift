import BatonTestSupport
import Testing

@testable import BatonAccount
@testable import BatonDiscovery
@testable import BatonNode

/// A malicious device of the account, which has the current keys, announces devices that do not exist.
@Suite("Devices that somebody invents", .timeLimit(.minutes(5)))
struct InventedDevicesTests {
    private let parts: NodeParts
    private var account: TestAccount { parts.account }
    private var directory: PeerDirectory { parts.directory }

    /// The honest device was proved in an earlier run.
    init() throws {
        let account = try TestAccount(devices: 2)
        let honest = account.devices[1].id
        var replays = ReplayGuard()
        _ = replays.judge(honest, epoch: 1, sequence: 0, timeToLive: 120, unixTime: 1000)
        parts = try NodeParts(
            account, replayGuard: replays,
            known: KnownDevices([
                KnownDevices.Entry(deviceID: honest.description, name: "desktop", seen: 1, revision: 0, isProved: true)
            ]))
    }

    private func content(activity: UInt8? = nil) -> AdvertisementContent {
        AdvertisementContent(
            port: 40_000, addresses: [], deviceName: "desktop",
            current: activity.map {
                AdvertisedActivity(
                    id: [UInt8](repeating: $0, count: 16), type: "org.example.note",
                    teamTag: [UInt8](repeating: 0, count: 8), version: 1, title: "Note")
            })
    }

    private func invent(_ numbers: Range<Int>) async throws {
        for number in numbers {
            let identity = try DeviceIdentity(issuedBy: AccountSecrets(account.key))
            var sealer = AdvertisementSealer(
                identity: identity, keys: account.devices[1].account.currentKeys, epoch: 1)
            await parts.announce(try sealer.seal(content(activity: 1)), under: "invented\(number)")
        }
    }

    /// How many instances would have a lasting query.
    private func lastingQueries() async -> Int {
        var budget = await parts.discovery.budget
        while budget.nextAction(now: .seconds(1 << 40)) != nil {}
        return budget.usage.kept
    }

    @Test("Of a proved device nothing old is believed, it stays known, and it is heard under its next name at once")
    func flood() async throws {
        let honest = account.devices[1]
        var sealer = try honest.makeSealer()
        let old = try sealer.seal(content(activity: 7))
        await parts.announce(old, under: "honest")
        await parts.announce(try sealer.seal(content(activity: 8)), under: "honest")
        try await invent(0..<ReplayGuard.capacity + 50)
        await parts.announce(old, under: "replayed")
        let peer = try #require(await directory.peer(honest.id.description))
        #expect(peer.current?.id.first == 8 && peer.isPresent)
        #expect(await lastingQueries() == LastingInstances.boundUnproved + 1)
        await parts.announce(try sealer.seal(content(activity: 9)), under: "renamed")
        #expect(await lastingQueries() == LastingInstances.boundUnproved + 2)
        await directory.stop()
    }

    @Test("A device that was proved before its first advertisement is one that was proved")
    func provedFirst() async throws {
        let member = try DeviceIdentity(issuedBy: AccountSecrets(account.key))
        await directory.prove(member.id.description)
        var sealer = AdvertisementSealer(
            identity: member, keys: account.devices[1].account.currentKeys, epoch: 1)
        let old = try sealer.seal(content(activity: 7))
        await parts.announce(old, under: "member")
        await parts.announce(try sealer.seal(content(activity: 8)), under: "member")
        try await invent(0..<ReplayGuard.capacity)
        await parts.announce(old, under: "replayed")
        #expect(await directory.peer(member.id.description)?.current?.id.first == 8)
        #expect(await lastingQueries() == LastingInstances.boundUnproved + 1)
        await directory.stop()
    }

    @Test("A new device is heard among many that are invented, and is proved from its first connection on")
    func newDevice() async throws {
        try await invent(0..<100)
        let member = try DeviceIdentity(issuedBy: AccountSecrets(account.key))
        var sealer = AdvertisementSealer(
            identity: member, keys: account.devices[1].account.currentKeys, epoch: 1)
        await parts.announce(try sealer.seal(content(activity: 7)), under: "member")
        #expect(await directory.present.contains { $0.device == member.id })
        await directory.prove(member.id.description)
        try await invent(100..<200)
        #expect(await directory.present.contains { $0.device == member.id })
        await directory.stop()
    }
}
