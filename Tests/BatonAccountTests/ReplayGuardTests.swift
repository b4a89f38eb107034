// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import BatonTestSupport
import Testing

@testable import BatonAccount

@Suite struct ReplayGuardTests {
    private func device(_ number: Int) -> DeviceID {
        DeviceID(subjectPublicKeyInfo: Array("\(number)".utf8))
    }

    @Test func onlyRisingNumbersCount() {
        var replays = ReplayGuard()
        #expect(replays.judge(device(1), epoch: 5, sequence: 2) == .accepted)
        #expect(replays.judge(device(1), epoch: 5, sequence: 2) == .duplicate)
        #expect(replays.judge(device(1), epoch: 5, sequence: 1) == .replayed)
        #expect(replays.judge(device(1), epoch: 4, sequence: 9) == .replayed)
        #expect(replays.judge(device(1), epoch: 5, sequence: 3) == .accepted)
        #expect(replays.judge(device(1), epoch: 6, sequence: 0) == .accepted)
        #expect(replays.judge(device(1), epoch: 5, sequence: .max) == .replayed)
        #expect(replays.judge(device(2), epoch: 0, sequence: 0) == .accepted)
        #expect(replays.judge(device(1), epoch: .max, sequence: .max) == .accepted)
        #expect(replays.judge(device(1), epoch: .max, sequence: .max) == .duplicate)
    }

    @Test func savingIsAskedForSparingly() {
        var replays = ReplayGuard()
        #expect(replays.saveNeed == .none)
        _ = replays.judge(device(1), epoch: 5, sequence: 1)
        #expect(replays.saveNeed == .now)
        _ = replays.judge(device(1), epoch: 5, sequence: 2)
        #expect(replays.saveNeed == .now)
        replays.markSaved()
        _ = replays.judge(device(1), epoch: 5, sequence: 2)
        _ = replays.judge(device(1), epoch: 4, sequence: 2)
        #expect(replays.saveNeed == .none)
        _ = replays.judge(device(1), epoch: 5, sequence: 3)
        #expect(replays.saveNeed == .soon)
        _ = replays.judge(device(1), epoch: 6, sequence: 1)
        #expect(replays.saveNeed == .now)
    }

    @Test func theLongestSilentDeviceGivesWay() throws {
        var replays = ReplayGuard()
        for number in 0..<ReplayGuard.capacity {
            #expect(replays.judge(device(number), epoch: 1, sequence: 1) == .accepted)
        }
        _ = replays.judge(device(0), epoch: 1, sequence: 2)
        #expect(replays.judge(device(1000), epoch: 1, sequence: 1) == .accepted)
        #expect(replays.count == ReplayGuard.capacity)
        #expect(replays.judge(device(0), epoch: 1, sequence: 1) == .replayed)
        #expect(replays.judge(device(2), epoch: 1, sequence: 1) == .duplicate)
        // The order survives being saved.
        var read = try #require(ReplayGuard(decoding: replays.encoded()))
        #expect(read.count == ReplayGuard.capacity)
        _ = read.judge(device(1001), epoch: 1, sequence: 1)
        #expect(read.judge(device(2), epoch: 1, sequence: 0) == .accepted)
        #expect(read.judge(device(0), epoch: 1, sequence: 1) == .replayed)
    }

    /// A holder of the account's keys can make up any number of names.
    @Test func namesThatNobodyHasProvedTakeThePlaceOfNoProvedDevice() throws {
        var replays = ReplayGuard()
        #expect(replays.judge(device(0), epoch: 1, sequence: 5) == .accepted)
        #expect(replays.judge(device(1), epoch: 1, sequence: 5) == .accepted)
        replays.prove(device(0))
        // Proving a device that is not remembered does not add it.
        replays.prove(device(7))
        #expect(replays.count == 2)
        #expect(replays.judge(device(0), epoch: 1, sequence: 6) == .accepted)
        for number in 1000..<1000 + 2 * ReplayGuard.capacity {
            #expect(replays.judge(device(number), epoch: 1, sequence: 1) == .accepted)
        }
        #expect(replays.count == ReplayGuard.capacity)
        #expect(replays.judge(device(0), epoch: 1, sequence: 5) == .replayed)
        #expect(replays.judge(device(1), epoch: 1, sequence: 4) == .accepted)
        // If all devices are proved, the device that was silent longest is evicted.
        for number in 1000..<1000 + 2 * ReplayGuard.capacity { replays.prove(device(number)) }
        replays.prove(device(1))
        #expect(replays.judge(device(5000), epoch: 1, sequence: 1) == .accepted)
        #expect(replays.judge(device(0), epoch: 1, sequence: 5) == .accepted)
        #expect(replays.count == ReplayGuard.capacity)
    }

    @Test func aReplayAfterARestartFails() throws {
        let account = try TestAccount(devices: 2)
        var sealer = try account.devices[0].makeSealer()
        let opener = account.devices[1].makeOpener()
        let store = account.devices[1].store
        let content = AdvertisementContent(port: 40000, addresses: [], deviceName: "a")
        let records = try (0..<3).map { _ in record(try sealer.seal(content)) }
        var replays = try store.loadReplayGuard()
        for record in records {
            #expect(replays.judge(try opener.open(record).advertisement, unixTime: 1000) == .accepted)
        }
        try store.save(replays)
        var restarted = try store.loadReplayGuard()
        #expect(restarted.saveNeed == .none)
        let newest = try opener.open(records[2]).advertisement
        #expect(restarted.judge(try opener.open(records[0]).advertisement, unixTime: 1001) == .replayed)
        #expect(restarted.judge(try opener.open(records[1]).advertisement, unixTime: 1001) == .replayed)
        // The newest advertisement is replayed after its time to live, or, by a clock that was set back, before it.
        let before = restarted
        for unixTime: UInt64 in [0, 999, 1120, 5000, .max] {
            #expect(restarted.judge(newest, unixTime: unixTime) == .expired)
        }
        #expect(restarted == before)
        // Until then it still counts, and the verdict says so once.
        var (first, last) = (restarted, restarted)
        #expect(first.judge(newest, unixTime: 1000) == .standing(secondsLeft: 120))
        #expect(last.judge(newest, unixTime: 1119) == .standing(secondsLeft: 1))
        #expect(restarted.judge(newest, unixTime: 1040) == .standing(secondsLeft: 80))
        #expect(restarted.judge(newest, unixTime: 1041) == .duplicate)
        #expect(restarted.saveNeed == .none)
        // The other device restarts as well: its epoch is greater.
        var next = try account.devices[0].makeSealer()
        let newer = try opener.open(record(try next.seal(content))).advertisement
        #expect(restarted.judge(newer, unixTime: 5000) == .accepted)
        #expect(restarted.saveNeed == .now)
    }

    /// An unknown device is not remembered, since a revoked device has these keys for good.
    @Test func whatIsSealedWithKeysOfBeforeCountsWhileItIsNew() throws {
        let account = try TestAccount(devices: 2)
        var sealer = try account.devices[0].makeSealer()
        let opener = account.devices[1].makeOpener()
        let content = AdvertisementContent(port: 40000, addresses: [], deviceName: "a")
        let said = try (0..<3).map { _ in try opener.open(record(try sealer.seal(content))).advertisement }
        var replays = ReplayGuard()
        func admits(_ number: Int, at unixTime: UInt64) -> Bool {
            replays.admits(outdated: said[number], unixTime: unixTime)
        }
        #expect(admits(0, at: 1000) && admits(1, at: 1000) && admits(2, at: 1000))
        #expect(replays.count == 0)
        #expect(replays.judge(said[1], unixTime: 1000) == .accepted)
        #expect(!admits(0, at: 1000))
        #expect(admits(1, at: 1119) && !admits(1, at: 1120))
        #expect(admits(2, at: 5000))
        #expect(replays.judge(said[1], unixTime: 5000) == .replayed)
    }

    @Test func damageIsNotTakenForAGuard() throws {
        var replays = ReplayGuard()
        for number in 0..<3 { _ = replays.judge(device(number), epoch: 7, sequence: UInt64(number)) }
        let bytes = replays.encoded()
        #expect(ReplayGuard(decoding: bytes)?.encoded() == bytes)
        #expect(ReplayGuard(decoding: ReplayGuard().encoded())?.count == 0)
        #expect(ReplayGuard(decoding: []) == nil)
        #expect(ReplayGuard(decoding: Array(bytes.dropLast())) == nil)
        #expect(ReplayGuard(decoding: bytes + [0]) == nil)
        #expect(ReplayGuard(decoding: bytes + bytes.suffix(44)) == nil)
        #expect(ReplayGuard(decoding: [1] + bytes.dropFirst()) == nil)
        let account = try TestAccount(devices: 1)
        let store = account.devices[0].store
        #expect(try store.loadReplayGuard() == ReplayGuard())
        try store.save(replays)
        guard let files = try AccountFolder.open(store.folder) else { throw AccountError.noAccount }
        try files.write(AccountFile.replay, Array("nonsense".utf8))
        #expect(throws: AccountError.self) { try store.loadReplayGuard() }
    }
}

extension ReplayGuard {
    /// An advertisement that just came.
    fileprivate mutating func judge(_ device: DeviceID, epoch: UInt64, sequence: UInt64) -> Freshness {
        judge(device, epoch: epoch, sequence: sequence, timeToLive: 120, unixTime: 1000)
    }
}
