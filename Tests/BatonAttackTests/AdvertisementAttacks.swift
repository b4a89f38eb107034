// SPDX-License-Identifier: Apache-2.0

import BatonCore
import BatonDiscovery
import BatonEventLoop
import BatonProtocol
import BatonTestSupport
import FoundationEssentials
import Logging
import Testing

@testable import BatonAccount
@testable import BatonNode

/// Attacks with advertisements, by anybody on the network and by a device of the account.
///
/// Apple's Handoff advertisements leak what the user does and can be replayed (Martin et al., "Handoff All Your
/// Privacy", PoPETs 2019; Celosia and Cunche, "Discontinued Privacy", PoPETs 2020; Stute et al., "Disrupting Continuity
/// of Apple's Wireless Ecosystem Security", USENIX Security 2021).
@Suite("Attacks with advertisements")
struct AdvertisementAttacks {
    private let account: TestAccount
    private var laptop: TestAccount.Device { account.devices[0] }
    private var desktop: TestAccount.Device { account.devices[1] }
    private var keys: GenerationKeys { laptop.account.currentKeys }

    init() throws {
        account = try TestAccount(devices: 3)
    }

    private static func content(
        _ title: String?, port: UInt16 = 40_000, address: String = "192.0.2.7"
    ) -> AdvertisementContent {
        AdvertisementContent(
            port: port, addresses: [NetworkAddress(address)].compactMap { $0 }, deviceName: "Anna's laptop",
            current: title.map {
                AdvertisedActivity(
                    id: [UInt8](repeating: 1, count: 16), type: "org.example.secret-project",
                    teamTag: [UInt8](repeating: 2, count: 8), version: 1, title: $0)
            })
    }

    /// The TXT record as it is on the network.
    private static func record(_ strings: [[UInt8]]) -> [UInt8] {
        strings.flatMap { [UInt8($0.count)] + $0 }
    }

    /// The verdict of the desktop's node on a record.
    private func receive(
        _ record: [UInt8], _ replayGuard: inout ReplayGuard, _ table: inout PeerTable, instance: String = "i",
        interface: UInt32 = 1, unixTime: UInt64 = 1, now: Instant = Instant(nanoseconds: 1)
    ) {
        guard let (advertisement, keys) = try? desktop.makeOpener().open(record) else { return }
        _ = table.hear(
            HeardAdvertisement(advertisement, under: keys.id),
            as: replayGuard.judge(advertisement, unixTime: unixTime), isOutdated: false,
            instance: instance, interface: interface, now: now, unixTime: unixTime)
    }

    /// Martin et al., section 4: type, name and state of a device in clear or of a telling size.
    @Test("Nothing of an advertisement is in clear")
    func clearText() async throws {
        try await attack("reading title, type and device name from the record") {
            var sealer = try laptop.makeSealer()
            let record = Self.record(try sealer.seal(Self.content("Letter of resignation")))
            let secrets = ["Letter of resignation", "org.example.secret-project", "Anna's laptop"]
            return Outcome(succeeds: secrets.contains { record.holds(Array($0.utf8)) })
        }
    }

    /// Celosia and Cunche, section 5: the length of a message tells idle from busy, and one activity from another.
    @Test("An idle device and a busy one look alike")
    func sizes() async throws {
        try await attack("telling idle from busy by the size of the record") {
            var sealer = try laptop.makeSealer()
            let contents = [
                Self.content(nil), Self.content("a"), Self.content(String(repeating: "long ", count: 100)),
            ]
            let sizes = try contents.map { Self.record(try sealer.seal($0)).count }
            return Outcome(succeeds: Set(sizes).count > 1)
        }
    }

    /// Martin et al., section 5.2; Celosia and Cunche, section 4: a device is followed from place to place by bytes
    /// that stay the same while others change.
    @Test("Two periods, and two networks, share nothing")
    func tracking() async throws {
        try await attack("following a device by what two of its records share") {
            var sealer = try laptop.makeSealer()
            let home = Self.record(try sealer.seal(Self.content("Letter")))
            sealer.beginPeriod()
            let cafe = Self.record(try sealer.seal(Self.content("Letter")))
            // "v=1", the two keys and the lengths are those of every device of everybody.
            let shared = (8..<(home.count - 6)).contains { cafe.holds(home[$0..<($0 + 6)]) }
            return Outcome(succeeds: shared)
        }
    }

    /// Stute et al., section 6.1: a recorded advertisement is sent again, later or elsewhere.
    @Test("A replayed advertisement, later and on another network")
    func replay() async throws {
        try await attack("an advertisement of yesterday takes the place of today's") { defence in
            var sealer = try laptop.makeSealer()
            let yesterday = Self.record(try sealer.seal(Self.content("Yesterday")))
            let today = Self.record(try sealer.seal(Self.content("Today")))
            var (replayGuard, table) = (ReplayGuard(), PeerTable())
            receive(yesterday, &replayGuard, &table)
            receive(today, &replayGuard, &table)
            if !defence.isOn { replayGuard = ReplayGuard() }
            receive(yesterday, &replayGuard, &table)
            return Outcome(succeeds: table.peers[laptop.id]?.current?.title == "Yesterday")
        }
        // A receiver knows a network by the interface that Avahi names with each record. A sender knows it by its own
        // addresses there, and has another period, instance name and port on each network. The attacker records at
        // home, on the wireless interface, and replays in the office, on the wired one, under its own instance name.
        try await attack("the same after the victim was restarted, on another network") { defence in
            var sealer = try laptop.makeSealer()
            let (wireless, wired) = (UInt32(3), UInt32(2))
            let home = Self.record(try sealer.seal(Self.content("At home", port: 40_001, address: "192.0.2.7")))
            sealer.beginPeriod()
            let office = Self.record(
                try sealer.seal(Self.content("At the office", port: 40_002, address: "198.51.100.7")))
            var (replayGuard, table) = (ReplayGuard(), PeerTable())
            receive(home, &replayGuard, &table, instance: "home", interface: wireless)
            receive(office, &replayGuard, &table, instance: "office", interface: wired)
            // The defence is that it was saved.
            if defence.isOn { try desktop.store.save(replayGuard) }
            replayGuard = defence.isOn ? try desktop.store.loadReplayGuard() : ReplayGuard()
            table = PeerTable()
            receive(home, &replayGuard, &table, instance: "attacker", interface: wired)
            let peer = table.peers[laptop.id]
            return Outcome(succeeds: peer?.current?.title == "At home" || peer?.addresses.first?.port == 40_001)
        }
        try await attack("the newest one, when its device has gone and the victim was restarted") {
            var sealer = try laptop.makeSealer()
            let last = Self.record(try sealer.seal(Self.content("Gone")))
            var (replayGuard, table) = (ReplayGuard(), PeerTable())
            receive(last, &replayGuard, &table, unixTime: 1000)
            try desktop.store.save(replayGuard)
            replayGuard = try desktop.store.loadReplayGuard()
            table = PeerTable()
            receive(last, &replayGuard, &table, unixTime: 1000 + UInt64(Advertisement.maximumTimeToLive))
            return Outcome(succeeds: table.peers[laptop.id] != nil)
        }
    }

    /// A stranger repeats the last record of a device. A node says before it ends that it offers nothing, and the
    /// record of a device that was cut off counts for its time to live.
    @Test("An advertisement that is repeated when its device has gone")
    func repeated() async throws {
        func isListed(_ said: [[UInt8]], repeatedAfter seconds: Int) throws -> Bool {
            var (replayGuard, table) = (ReplayGuard(), PeerTable())
            let begin = Instant(nanoseconds: 1)
            for record in said { receive(record, &replayGuard, &table, now: begin) }
            table.remove(instance: "i")
            receive(said[0], &replayGuard, &table, now: begin + .seconds(seconds))
            return table.present.contains { $0.current != nil }
        }
        try await attack("the last offer of a device whose node has ended") { defence in
            var sealer = try laptop.makeSealer()
            let offer = Self.record(try sealer.seal(Self.content("Gone")))
            let idle = Self.record(try sealer.seal(Self.content(nil)))
            // The defence is on the other side: a node says so before it ends (`LabResponderAttackTests`).
            return Outcome(succeeds: try isListed(defence.isOn ? [offer, idle] : [offer], repeatedAfter: 1))
        }
        try await attack("the last offer of a device that was cut off") {
            var sealer = try laptop.makeSealer()
            let offer = Self.record(try sealer.seal(Self.content("Gone")))
            return Outcome(
                succeeds: try isListed([offer], repeatedAfter: Int(Advertisement.maximumTimeToLive)))
        }
    }

    /// The same against who slept through a revocation: it is looked for where it was, and never hears of it.
    @Test("A replayed advertisement of a device that is to be told of a revocation")
    func replayOutdated() async throws {
        try await attack("a device that slept is dialled where it was before") { defence in
            var sealer = try laptop.makeSealer()
            let said = try [UInt16(40_001), 40_002].map {
                Self.record(try sealer.seal(Self.content(nil, port: $0)))
            }
            var replayGuard = ReplayGuard()
            let opener = desktop.makeOpener()
            let unixTime = UInt64(Date().timeIntervalSince1970)
            for record in said { _ = replayGuard.judge(try opener.open(record).advertisement, unixTime: unixTime) }
            // The defence is that it was saved: the node is started anew, with the keys of after the revocation.
            var revoking = desktop.account
            _ = try revoking.revoke([account.devices[2].id], with: AccountSecrets(account.key))
            if defence.isOn { try desktop.store.save(replayGuard) }
            let (loop, storage) = (ControlLoop.loop, try BlockingExecutor(name: "storage"))
            let directory = PeerDirectory(
                account: CurrentAccount(revoking), store: desktop.store,
                replayGuard: defence.isOn ? try desktop.store.loadReplayGuard() : ReplayGuard(), known: KnownDevices(),
                discovery: ServiceDiscovery(loop: loop, executor: storage),
                logger: Logger(label: "attack") { _ in SwiftLogNoOpLogHandler() })
            await directory.handle(.record(instance: "attacker", interfaceIndex: 1, txt: said[0]))
            let dialled = await directory.peer(laptop.id.description)?.addresses.first?.port
            return Outcome(succeeds: dialled == 40_001)
        }
    }

    /// Work that a stranger's packet costs its receiver, as in RFC 4732, section 2.2.1.1. Anybody can put a record
    /// under the name of a known device, and each record costs a decryption with every key.
    @Test("Thousands of records under the name of a device that is heard")
    func rewritten() async throws {
        // As many keys as an account can have.
        var revoking = desktop.account
        for number in 1...UInt8(RevocationList.maximumNumber) {
            let gone = DeviceID(ed25519PublicKey: [UInt8](repeating: number, count: 32))
            _ = try revoking.revoke([gone], with: AccountSecrets(account.key))
        }
        let (opener, noise) = (AdvertisementOpener(keys: [revoking.currentKeys], ownDevice: desktop.id), 40)
        try await attack("a record costs a decryption with each of \(revoking.keys.count) keys") {
            let (loop, storage) = (ControlLoop.loop, try BlockingExecutor(name: "storage"))
            let directory = PeerDirectory(
                account: CurrentAccount(revoking), store: desktop.store, replayGuard: ReplayGuard(),
                known: KnownDevices(), discovery: ServiceDiscovery(loop: loop, executor: storage),
                logger: Logger(label: "attack") { _ in SwiftLogNoOpLogHandler() })
            var sealer = AdvertisementSealer(
                identity: laptop.account.identity, keys: revoking.currentKeys, epoch: 1)
            func say(_ title: String) async throws -> [UInt8] {
                let record = Self.record(try sealer.seal(Self.content(title)))
                await directory.handle(.record(instance: "laptop", interfaceIndex: 1, txt: record))
                #expect(await directory.present.first?.current?.title == title)
                return record
            }
            var record = try await say("Before")
            // The cost of one decryption is measured beside it, under the same load.
            var ratios: [Double] = []
            for _ in 0..<9 {
                let records = (0..<UInt8(noise)).map { number in
                    record[record.count - 1] = record[record.count - 1] &+ number &+ 1
                    return record
                }
                let opening = ThreadTime.cost {
                    for record in records { #expect(throws: AdvertisementError.self) { try opener.open(record) } }
                }
                ratios.append(await directory.cost(ofHearing: records, under: "laptop") / opening)
            }
            _ = try await say("During")
            let ratio = ratios.sorted()[4]
            print("a record under the name of a device that is heard costs \(ratio) decryptions")
            return Outcome(succeeds: ratio > 16)
        }
    }

    /// Stute et al., section 6.2 (desynchronisation): the counter of a victim is pushed ahead, so that its own messages
    /// count as old from then on.
    @Test("A counter that is pushed ahead")
    func counterPushedAhead() async throws {
        try await attack("a device of the account advertises in the name of another, far ahead") {
            let thief = account.devices[2]
            // All that a device of the account can make: the account's seal around what it signed with its own key.
            let forged = Advertisement(
                device: laptop.id, publicKey: laptop.account.identity.publicKey, epoch: 1 << 62, sequence: 1,
                gateNonce: [UInt8](repeating: 0, count: 16), content: Self.content("Forged"))
            let salt = [UInt8](repeating: 9, count: AdvertisementSeal.saltCount)
            let plain = try AdvertisementCodec.encode(forged)
            let signature = try thief.account.identity.sign(AdvertisementSeal.signedMessage(salt: salt, plain: plain))
            let record = try Self.record(thief.seal(plain, signature, salt: salt))

            var (replayGuard, table) = (ReplayGuard(), PeerTable())
            receive(record, &replayGuard, &table)
            var sealer = try laptop.makeSealer()
            receive(Self.record(try sealer.seal(Self.content("Genuine"))), &replayGuard, &table)
            return Outcome(succeeds: table.peers[laptop.id]?.current?.title != "Genuine")
        }
        // The seal and the signature each refuse a changed bit.
        try await attack("a stranger turns bits until the counter is ahead") {
            var sealer = try laptop.makeSealer()
            let record = Self.record(try sealer.seal(Self.content("Genuine")))
            let opener = desktop.makeOpener()
            #expect((try? opener.open(record)) != nil)
            let isPushed = (8..<record.count).contains { index in
                var changed = record
                changed[index] ^= 0x40
                return (try? opener.open(changed)).map { $0.advertisement.epoch > 1 << 60 } ?? false
            }
            return Outcome(succeeds: isPushed)
        }
    }

    /// Stute et al., section 5: tags that are too short or not looked at; KDE Connect believed any announcement.
    @Test("A forged tag: an account that an attacker made up")
    func forgedSeal() async throws {
        let attacker = try TestAccount(devices: 1)
        let third = try #require(NetworkAddress("192.0.2.7"))
        try await attack("an advertisement sealed with a key of the attacker's own, which names a third host") {
            var (replayGuard, table) = (ReplayGuard(), PeerTable())
            var sealer = try attacker.devices[0].makeSealer()
            receive(Self.record(try sealer.seal(Self.content("Click me"))), &replayGuard, &table)
            return Outcome(
                succeeds: table.peers.values.contains { $0.addresses.contains { $0.ipAddress?.bytes == third.bytes } })
        }
    }

    /// LocalSend and Warpinator dial any port that a peer names. A request to a system service in the name of the user
    /// is the "SSRF" of the local network (CWE-918).
    @Test("A port below 1024")
    func lowPort() async throws {
        try await attack("a device of the account advertises port 22") {
            var plain = try AdvertisementCodec.encode(
                Advertisement(
                    device: laptop.id, publicKey: laptop.account.identity.publicKey, epoch: 1, sequence: 1,
                    gateNonce: [UInt8](repeating: 0, count: 16), content: Self.content(nil)))
            // Behind format, key, epoch, sequence and time to live.
            plain.replaceSubrange(51..<53, with: [0, 22])
            return Outcome(succeeds: (try? AdvertisementCodec.decode(plain))?.content.port == 22)
        }
        await attack("a port below 1024 that has come so far is dialled") {
            var table = PeerTable()
            table.receive(HeardAdvertisement(advertisement(Self.content(nil, port: 22)), under: keys.id))
            return Outcome(succeeds: table.peers[laptop.id]?.addresses.isEmpty == false)
        }
    }

    /// Addresses that are nobody's or everybody's: one announcement would make each device of the account send to all
    /// (the amplification of CVE-2020-12695, "CallStranger").
    @Test(
        "Addresses that name no single host are not dialled",
        arguments: [
            "255.255.255.255", "224.0.0.251", "0.0.0.0", "ff02::fb", "::", "::ffff:10.0.0.1", "::ffff:127.0.0.1",
            "::127.0.0.1",
        ])
    func groupAddress(text: String) async throws {
        let address = try #require(NetworkAddress(text))
        await attack("\(text), which is no single host, is dialled") { defence in
            var content = Self.content(nil)
            content.addresses = [address]
            var table = PeerTable()
            var heard = HeardAdvertisement(advertisement(content), under: keys.id)
            if !defence.isOn { heard.undialled = [] }
            table.receive(heard)
            return Outcome(succeeds: table.peers[laptop.id]?.addresses.isEmpty == false)
        }
    }

    /// The port is then one of the victim's own, on the interface that trusts who comes from it: CWE-918 again, and
    /// "0.0.0.0 Day" (Oligo, 2024).
    @Test("Loopback addresses: who dials them dials himself", arguments: ["127.0.0.1", "127.9.9.9", "::1"])
    func loopback(text: String) async throws {
        let address = try #require(NetworkAddress(text))
        await attack("\(text) in an advertisement is dialled") { defence in
            var content = Self.content(nil)
            content.addresses = [address]
            var table = PeerTable()
            var heard = HeardAdvertisement(advertisement(content), under: keys.id)
            if !defence.isOn { heard.undialled = [] }
            table.receive(heard)
            return Outcome(succeeds: table.peers[laptop.id]?.addresses.isEmpty == false)
        }
        try await attack("\(text) in an advertisement is read") {
            var plain = try AdvertisementCodec.encode(advertisement(Self.content(nil)))
            // In the place of the one address, behind the name; what follows is state that an idle device has not.
            let place = 71 + 1 + Self.content(nil).deviceName.utf8.count + 1
            plain.replaceSubrange(place..., with: [address.family.rawValue] + address.bytes)
            plain += [UInt8](repeating: 0, count: AdvertisementCodec.size - plain.count)
            return Outcome(succeeds: (try? AdvertisementCodec.decode(plain))?.content.addresses == [address])
        }
    }

    private func advertisement(_ content: AdvertisementContent) -> Advertisement {
        Advertisement(
            device: laptop.id, publicKey: laptop.account.identity.publicKey, epoch: 1, sequence: 1,
            gateNonce: [UInt8](repeating: 0, count: 16), content: content)
    }
}

extension PeerTable {
    fileprivate mutating func receive(_ heard: HeardAdvertisement) {
        receive(heard, instance: "i", interface: 1, now: Instant(nanoseconds: 1), unixTime: 1)
    }
}

extension TestAccount.Device {
    /// Seals whatever the device likes, as a patched node can.
    fileprivate func seal(_ plain: [UInt8], _ signature: [UInt8], salt: [UInt8]) throws -> [[UInt8]] {
        AdvertisementTXT.strings(
            of: try AdvertisementSeal.seal(
                plain: plain, signature: signature, salt: salt, key: account.currentKeys.advertisement))
    }
}

extension PeerDirectory {
    /// The cost for its thread.
    fileprivate func cost(ofHearing records: [[UInt8]], under instance: String) -> Double {
        ThreadTime.cost {
            for record in records { handle(.record(instance: instance, interfaceIndex: 1, txt: record)) }
        }
    }
}
