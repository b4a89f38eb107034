// SPDX-License-Identifier: Apache-2.0

import BatonCore
import BatonEventLoop
import BatonProtocol
import BatonTestSupport
import Foundation
import Logging
import Testing

@testable import BatonAccount
@testable import BatonCLI
@testable import BatonDiscovery
@testable import BatonNode

/// A malicious device of the account, which has the current keys, announces devices that do not exist.
///
/// Identities that cost nothing: Douceur, "The Sybil Attack", IPTPS 2002. KDE Connect kept whatever was announced
/// (CVE-2020-26164). The defence is in most cases that what a connection has shown counts for more.
@Suite("Attacks with devices that somebody invents", .timeLimit(.minutes(5)))
struct InventedDeviceAttacks {
    private let account: TestAccount

    init() throws {
        account = try TestAccount(devices: 2)
    }

    @Test("Of a proved device nothing old is believed, it stays known, and it is heard under its next name at once")
    func flood() async throws {
        let aftermath = try await afterFlood()
        for (name, succeeds) in [
            ("an old advertisement is believed", \.believesOld), ("a device is known no more", \.isForgotten),
            ("a device is not pinned", \.isUnheard),
        ] as [(String, KeyPath<Aftermath, Bool>)] {
            await attack("devices that are invented, until \(name)") {
                Outcome(succeeds: aftermath[keyPath: succeeds])
            }
        }
    }

    private struct Aftermath {
        var believesOld = false
        var isForgotten = false
        var isUnheard = false
    }

    /// The honest device was shown in an earlier run.
    private func afterFlood() async throws -> Aftermath {
        let scene = try InventedScene(account)
        let honest = account.devices[1]
        var sealer = try honest.makeSealer()
        let old = try sealer.seal(.offering(7))
        await scene.announce(old, under: "honest")
        await scene.announce(try sealer.seal(.offering(8)), under: "honest")
        try await scene.anotherSecond()
        try await scene.invent(ReplayGuard.capacity + 50)
        var aftermath = Aftermath()
        aftermath.isForgotten = await scene.directory.peer(honest.id.description)?.isPresent != true
        await scene.announce(old, under: "replayed")
        aftermath.believesOld = await scene.directory.peer(honest.id.description)?.current?.id.first == 7
        aftermath.isUnheard = await scene.pinnedInstances() == PinnedInstances.boundUnproved
        await scene.announce(try sealer.seal(.offering(9)), under: "renamed")
        #expect(await scene.pinnedInstances() == PinnedInstances.boundUnproved + 2)
        await scene.directory.stop()
        return aftermath
    }

    @Test("A device that was proved before its first advertisement is one that was proved")
    func provedFirst() async throws {
        try await attack("devices that are invented, until an old advertisement of a new device is believed") {
            let scene = try InventedScene(account)
            let member = try DeviceIdentity(issuedBy: AccountSecrets(account.key))
            await scene.directory.prove(member.id.description)
            var sealer = scene.sealer(of: member)
            let old = try sealer.seal(.offering(7))
            await scene.announce(old, under: "member")
            await scene.announce(try sealer.seal(.offering(8)), under: "member")
            try await scene.invent(ReplayGuard.capacity)
            await scene.announce(old, under: "replayed")
            #expect(await scene.pinnedInstances() == PinnedInstances.boundUnproved + 1)
            let offered = await scene.directory.peer(member.id.description)?.current?.id.first
            await scene.directory.stop()
            return Outcome(succeeds: offered == 7)
        }
    }

    @Test("A new device is heard among many that are invented, and is proved from its first connection on")
    func newDevice() async throws {
        try await attack("devices that are invented, until a new device is known no more") {
            let scene = try InventedScene(account)
            try await scene.invent(100)
            let member = try DeviceIdentity(issuedBy: AccountSecrets(account.key))
            var sealer = scene.sealer(of: member)
            await scene.announce(try sealer.seal(.offering(7)), under: "member")
            #expect(await scene.directory.present.contains { $0.device == member.id })
            await scene.directory.prove(member.id.description)
            try await scene.anotherSecond()
            try await scene.invent(100)
            let isKnown = await scene.directory.present.contains { $0.device == member.id }
            await scene.directory.stop()
            return Outcome(succeeds: !isKnown)
        }
    }

    @Test("Documents that a rule accepts of one device")
    func places() async {
        let bound = NodeLimits().acceptedWaiting
        await attack("documents of one device fill all places of a rule") {
            var core = Acceptance<AcceptedDocument>(bound: bound, rest: .seconds(30))
            core.accept((0..<2 * bound).map { _ in AcceptedDocument(device: "0") })
            core.accept([AcceptedDocument(device: "100")])
            let isFetched = core.takeEffects().contains { effect in
                if case .fetch(let document) = effect { document.device == "100" } else { false }
            }
            return Outcome(succeeds: !isFetched)
        }
    }

    @Test("Devices that somebody invents are dialled a few at a time")
    func dials() async {
        await attack("a listing dials a hundred invented devices at once") { defence in
            var limits = LinkLimits()
            (limits.connections, limits.dials) = (1000, 1000)
            if !defence.isOn { limits.unprovedDials = .max }
            var links = Links<InventedScene, String>(limits)
            var count = 0
            for number in 0..<100 {
                let dial = try? links.dial("\(number)", isProved: false, isWanted: false, at: [])
                if dial != nil { count += 1 }
            }
            return Outcome(succeeds: count == 100)
        }
    }

    /// KDE Connect took for a device what a packet called so (CVE-2025-32900). Here a list that cannot be taken back
    /// would name somebody else, and whom the user meant would stay.
    @Test("A device that calls itself by the id of one that is to be revoked")
    func namedAsAnother() async {
        let (lost, accomplice) = (String(repeating: "a", count: 32), String(repeating: "f", count: 32))
        await attack("`baton devices revoke ID` means a device that calls itself ID") {
            let choice = DeviceChoice(
                ownID: String(repeating: "m", count: 32), ownName: "laptop",
                known: [KnownDevice(id: lost, name: "phone"), KnownDevice(id: accomplice, name: lost, isProved: true)],
                revoked: [])
            return Outcome(succeeds: (try? choice.find(lost))?.id != lost)
        }
    }

    @Test("A stolen device that took another name, and one that does not exist under its old one")
    func renamed() async {
        let stolen = KnownDevice(
            id: String(repeating: "z", count: 32), name: "tv", formerNames: ["phone"], isProved: true)
        let decoy = KnownDevice(id: String(repeating: "x", count: 32), name: "phone")
        await attack("a revocation meets what a thief announces under the name of the stolen device") {
            let choice = DeviceChoice(
                ownID: String(repeating: "m", count: 32), ownName: "laptop", known: [decoy, stolen], revoked: [])
            return Outcome(succeeds: (try? choice.find("phone")) != stolen)
        }
    }

    @Test("Devices that are only announced, called as the one that is to be revoked")
    func inventedNames() async {
        let phone = KnownDevice(id: String(repeating: "z", count: 32), name: "phone", isProved: true)
        let invented = (10..<50).map { KnownDevice(id: "\($0)" + String(repeating: "x", count: 30), name: "phone") }
        await attack("invented devices make a name ambiguous that the user revokes") {
            let choice = DeviceChoice(
                ownID: String(repeating: "m", count: 32), ownName: "laptop", known: invented + [phone], revoked: [])
            return Outcome(succeeds: (try? choice.find("phone")) != phone)
        }
    }
}

private struct AcceptedDocument: AnnouncedDocument {
    let activity = ActivityID()
    let device: String
    let isProved = true
}

/// The directory of a node that has met an honest device of the account, and what another one announces to it.
private final class InventedScene: Sendable {
    let directory: PeerDirectory
    private let account: TestAccount
    private let discovery: ServiceDiscovery
    private let invented = Lock(0)

    init(_ account: TestAccount) throws {
        self.account = account
        let loop = ControlLoop.loop
        discovery = ServiceDiscovery(loop: loop, executor: try BlockingExecutor(name: "discovery"))
        let honest = account.devices[1].id
        var replays = ReplayGuard()
        _ = replays.judge(honest, epoch: 1, sequence: 0, timeToLive: 120, unixTime: 1000)
        let entry = KnownDevices.Entry(
            deviceID: honest.description, name: "desktop", seen: 1, revision: 0, isProved: true)
        directory = PeerDirectory(
            account: CurrentAccount(account.devices[0].account), store: account.devices[0].store, replayGuard: replays,
            known: KnownDevices([entry]), discovery: discovery,
            logger: Logger(label: "attack") { _ in SwiftLogNoOpLogHandler() })
    }

    func sealer(of device: DeviceIdentity) -> AdvertisementSealer {
        AdvertisementSealer(identity: device, keys: account.devices[1].account.currentKeys, epoch: 1)
    }

    /// A record is on the network under a name.
    func announce(_ strings: [[UInt8]], under instance: String) async {
        await discovery.see(instance, "local.", on: 1, isAdded: true)
        await directory.handle(
            .record(instance: instance, interfaceIndex: 1, txt: strings.flatMap { [UInt8($0.count)] + $0 }))
    }

    func invent(_ count: Int) async throws {
        for _ in 0..<count {
            let number = invented.withLock { number in
                number += 1
                return number
            }
            var sealer = sealer(of: try DeviceIdentity(issuedBy: AccountSecrets(account.key)))
            await announce(try sealer.seal(.offering(1)), under: "invented\(number)")
        }
    }

    /// Waits until what is seen is seen later than what was, in the seconds in which that is kept.
    func anotherSecond() async throws {
        let second = Int(Date().timeIntervalSince1970)
        try await eventually("the clock shows another second") { Int(Date().timeIntervalSince1970) > second }
    }

    /// The number of pinned instances.
    func pinnedInstances() async -> Int {
        await discovery.budget.usage.kept
    }
}

extension AdvertisementContent {
    /// Of a device with an activity of this number.
    fileprivate static func offering(_ activity: UInt8) -> AdvertisementContent {
        AdvertisementContent(
            port: 40_000, addresses: [], deviceName: "desktop",
            current: AdvertisedActivity(
                id: [UInt8](repeating: activity, count: 16), type: "org.example.note",
                teamTag: [UInt8](repeating: 0, count: 8), version: 1, title: "Note"))
    }
}
