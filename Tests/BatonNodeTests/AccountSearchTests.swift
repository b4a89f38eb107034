// SPDX-License-Identifier: Apache-2.0

import BatonDiscovery
import BatonEventLoop
import BatonTestSupport
import Testing

@testable import BatonAccount
@testable import BatonNode

/// How long an account is looked for. What is too short shows however busy the machine is; what would be too long is an
/// hour.
@Suite("The time of a search for an account", .timeLimit(.minutes(2)))
struct AccountSearchTests {
    private let account: TestAccount
    private let loop = EventLoop(name: "search")
    private let start = ContinuousClock.now

    init() throws {
        account = try TestAccount(devices: 4)
    }

    /// Devices that have been asked, and those that answer only when they are let.
    private final class Devices: Sendable {
        let asked = Lock<[DeviceID]>([])
        /// What they have; nothing of those that are not named.
        let lists = Lock<[DeviceID: Result<[GivenList], RevocationError>]>([:])
        private let held: DeviceID?
        private let letGo = AsyncStream<Never>.makeStream()

        init(holding held: DeviceID? = nil) {
            self.held = held
        }

        func answer(_ device: DeviceID) async -> AccountLookup.Answer? {
            asked.withLock { $0.append(device) }
            if device == held {
                for await _ in letGo.stream {}
            }
            return AccountLookup.Answer(
                device: KnownDevices.Entry(deviceID: device.description, name: "", seen: 0, revision: 0),
                lists: lists.withLock { $0[device] ?? .success([]) })
        }

        func release() { letGo.continuation.finish() }
    }

    private func search(_ devices: Devices) -> AccountSearch {
        let opener = JoiningOpener(secrets: AccountSecrets(account.key), ownDevice: account.devices[0].id)
        return AccountSearch(for: account.devices[0].account, opener: opener) { opened, _, _ in
            await devices.answer(opened.advertisement.device)
        }
    }

    private func record(of device: TestAccount.Device, under other: Account? = nil) throws -> DiscoveryEvent {
        let own = other ?? device.account
        var sealer = AdvertisementSealer(identity: own.identity, keys: own.currentKeys, epoch: 1)
        let content = AdvertisementContent(port: 4000, addresses: [], deviceName: "device")
        return .record(
            instance: device.id.description, interfaceIndex: 1,
            txt: try sealer.seal(content).flatMap { [UInt8($0.count)] + $0 })
    }

    /// Waits for the end, and returns what came of it and how long it took.
    private func end(of search: AccountSearch) async -> (outcome: AccountLookup.Outcome, time: Duration) {
        for await _ in search.end {}
        return (await search.stop(), ContinuousClock.now - start)
    }

    @Test("Who answers at once does not end it before three seconds are over, and then it is over")
    func settling() async throws {
        let search = search(Devices())
        await search.begin(within: .seconds(3600)) { false }
        #expect(await search.hear(try record(of: account.devices[1])))
        let ended = await end(of: search)
        #expect(ended.time >= AccountSearch.settling)
        #expect(ended.outcome.met.map(\.deviceID) == [account.devices[1].id.description])
        #expect(!ended.outcome.isIncomplete)
    }

    @Test("An answer under older keys than were heard does not shorten it, and whoever comes later is asked too")
    func older() async throws {
        let (thief, late, newer) = (account.devices[1], account.devices[2], account.devices[3])
        var own = newer.account
        _ = try own.revoke([thief.id], with: AccountSecrets(account.key))
        let devices = Devices(holding: newer.id)
        let search = search(devices)
        await search.begin(within: .seconds(3600)) { false }
        #expect(await search.hear(try record(of: thief)))
        try await eventually("the thief has answered") { devices.asked.withLock { $0.count } == 1 }
        #expect(await search.hear(try record(of: newer, under: own)))
        // Long after the time in which the thief's answer alone would have ended it.
        while ContinuousClock.now - start < AccountSearch.settling + .seconds(1) {
            try await Task.sleep(for: .milliseconds(100))
        }
        #expect(await search.hear(try record(of: late)))
        try await eventually("the late one is asked") { devices.asked.withLock { $0.contains(late.id) } }
        devices.release()
        let ended = await end(of: search)
        #expect(Set(ended.outcome.met.map(\.deviceID)) == Set([thief, late, newer].map(\.id.description)))
    }

    @Test("Whose lists cannot be taken over is told, and does not shorten it for those whose can")
    func untaken() async throws {
        let (odd, newer, good) = (account.devices[1], account.devices[2], account.devices[3])
        var own = good.account
        let given = try own.revoke(
            [DeviceID(ed25519PublicKey: [UInt8](repeating: 7, count: 32))], with: AccountSecrets(account.key))
        let devices = Devices(holding: good.id)
        devices.lists.withLock {
            $0[odd.id] = .success([GivenList(given.list, keys: nil)])
            $0[newer.id] = .failure(.unknownFormat(2))
            $0[good.id] = .success([given])
        }
        let search = search(devices)
        await search.begin(within: .seconds(3600)) { false }
        #expect(await search.hear(try record(of: odd)))
        try await eventually("one has answered") { devices.asked.withLock { $0.count } == 1 }
        #expect(await search.hear(try record(of: newer)))
        while ContinuousClock.now - start < AccountSearch.settling + .seconds(1) {
            try await Task.sleep(for: .milliseconds(100))
        }
        #expect(await search.hear(try record(of: good)))
        try await eventually("the last is asked") { devices.asked.withLock { $0.contains(good.id) } }
        devices.release()
        let outcome = await end(of: search).outcome
        #expect(outcome.met.count == 3 && outcome.account.state == own.state)
        #expect(outcome.untaken?.device.deviceID == odd.id.description && outcome.untaken?.reason == .wrongKeys)
    }

    @Test("Nobody answers: it takes its time, and three times as much while there are names that nobody has looked at")
    func behind() async throws {
        let limit = Duration.milliseconds(300)
        let quick = search(Devices())
        await quick.begin(within: limit) { false }
        let found = await end(of: quick)
        #expect(found.time >= limit && !found.outcome.isIncomplete)

        let slow = search(Devices())
        let before = ContinuousClock.now - start
        await slow.begin(within: limit) { true }
        let ended = await end(of: slow)
        #expect(ended.time - before >= limit * AccountSearch.patience)
        #expect(ended.outcome.isIncomplete)

        let isBehind = Lock(true)
        let recovering = search(Devices())
        await recovering.begin(within: .seconds(1)) {
            // At its time it is, and the next time it is not.
            isBehind.withLock { isBehind in
                defer { isBehind = false }
                return isBehind
            }
        }
        #expect(await !end(of: recovering).outcome.isIncomplete)
    }
}
