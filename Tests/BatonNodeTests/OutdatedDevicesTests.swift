import BatonDiscovery
import BatonEventLoop
import BatonProtocol
import BatonTestSupport
import Logging
import Testing

@testable import BatonAccount
@testable import BatonNode

/// Advertisements that are sealed with keys of before a revocation.
@Suite("Advertisements under older keys", .timeLimit(.minutes(5)))
struct OutdatedDevicesTests {
    /// The directory of a device that has revoked another one, and strangers who have the older keys.
    private struct Scene {
        let account: TestAccount
        let directory: PeerDirectory
        private let oldKeys: GenerationKeys

        /// - Parameters:
        ///   - known: whether the second device is known from before.
        ///   - isProved: whether a connection has shown then that it is of the account.
        init(known: Bool, isProved: Bool = false) throws {
            account = try TestAccount(devices: 3)
            oldKeys = account.devices[1].account.currentKeys
            var own = account.devices[0].account
            _ = try own.revoke([account.devices[2].id], with: AccountSecrets(account.key))
            let storage = try BlockingExecutor(name: "storage")
            let loop = EventLoop(name: "directory")
            let entry = KnownDevices.Entry(
                deviceID: account.devices[1].id.description, name: "desktop", seen: 1, revision: 0, isProved: isProved)
            directory = PeerDirectory(
                account: CurrentAccount(own), store: account.devices[0].store, replayGuard: ReplayGuard(),
                known: KnownDevices(known ? [entry] : []),
                discovery: ServiceDiscovery(loop: loop, executor: storage), storage: storage, on: loop,
                logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        }

        /// What a device with this identity announces under the older keys.
        func announce(_ identity: DeviceIdentity, under instance: String) async throws {
            var sealer = AdvertisementSealer(identity: identity, keys: oldKeys, epoch: 1)
            let strings = try sealer.seal(
                AdvertisementContent(
                    port: 40_000, addresses: [NetworkAddress("192.0.2.7")].compactMap { $0 }, deviceName: "desktop",
                    current: AdvertisedActivity(
                        id: [UInt8](repeating: 1, count: 16), type: "org.example.note",
                        teamTag: [UInt8](repeating: 0, count: 8), version: 1, title: "Note"),
                    otherActivities: 3))
            await directory.handle(
                .record(instance: instance, interfaceIndex: 1, txt: strings.flatMap { [UInt8($0.count)] + $0 }))
        }

        /// The devices that were heard so far, of which account state is exchanged with.
        func heard(_ count: Int) async -> [String] {
            var heard: [String] = []
            for await device in directory.otherwiseKeyed {
                heard.append(device)
                if heard.count == count { break }
            }
            return heard
        }
    }

    @Test("A device that was proved is there to be told of the revocation, and offers nothing till then")
    func proved() async throws {
        let scene = try Scene(known: true, isProved: true)
        let device = scene.account.devices[1]
        try await scene.announce(device.account.identity, under: "a")
        let peer = try #require(await scene.directory.present.first)
        #expect(peer.device == device.id && peer.current == nil && peer.others == 0 && !peer.addresses.isEmpty)
        #expect(await scene.heard(1) == [device.id.description])
    }

    @Test("A device that was only heard of can be dialled to be told, its name stays, and it is not there till then")
    func heardOf() async throws {
        let scene = try Scene(known: true)
        let device = scene.account.devices[1]
        try await scene.announce(device.account.identity, under: "a")
        #expect(await scene.directory.present.isEmpty)
        #expect(await scene.directory.all.map(\.name) == ["desktop"])
        let peer = try #require(await scene.directory.peer(device.id.description))
        #expect(peer.current == nil && !peer.addresses.isEmpty)
        #expect(await scene.heard(1) == [device.id.description])
    }

    @Test("Unknown devices can be dialled, few at a time, and are neither listed nor remembered")
    func unknown() async throws {
        let scene = try Scene(known: false)
        var ids: [String] = []
        for number in 0..<(OutdatedDevices.bound + 2) {
            let identity = try TestAccount(devices: 1).devices[0].account.identity
            ids.append(identity.id.description)
            try await scene.announce(identity, under: "\(number)")
        }
        #expect(await scene.directory.present.isEmpty)
        #expect(await scene.directory.all.isEmpty)
        #expect(await scene.heard(OutdatedDevices.bound) == Array(ids.prefix(OutdatedDevices.bound)))
        for (number, id) in ids.enumerated() {
            let peer = await scene.directory.peer(id)
            #expect((peer != nil) == (number < OutdatedDevices.bound))
            #expect(peer?.current == nil)
        }
    }

    @Test("Each has a turn of 20 s")
    func turns() throws {
        let account = try TestAccount(devices: OutdatedDevices.bound + 1)
        let keys = account.devices[0].account.currentKeys
        var outdated = OutdatedDevices(keys: keys)
        func receive(_ number: Int, at seconds: UInt64) throws -> Bool {
            var sealer = try account.devices[number].makeSealer()
            let strings = try sealer.seal(AdvertisementContent(port: 40_000, addresses: [], deviceName: "a"))
            let opener = AdvertisementOpener(keys: [keys], ownDevice: account.devices[number == 0 ? 1 : 0].id)
            let advertisement = try opener.open(strings.flatMap { [UInt8($0.count)] + $0 }).advertisement
            return outdated.receive(
                advertisement, keys: keys, instance: "i", interface: 1,
                now: Instant(nanoseconds: seconds * 1_000_000_000), unixTime: 1)
        }
        for number in 0..<OutdatedDevices.bound { #expect(try receive(number, at: 1)) }
        #expect(try !receive(OutdatedDevices.bound, at: 20))
        #expect(try receive(0, at: 20))
        #expect(try receive(OutdatedDevices.bound, at: 21))
        #expect(outdated[account.devices[0].id] == nil)
    }
}
