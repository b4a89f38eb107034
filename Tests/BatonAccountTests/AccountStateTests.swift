// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import BatonTestSupport
import Testing

@testable import BatonAccount

/// How states merge, for devices that meet in any order.
@Suite struct AccountStateTests {
    private let secrets = AccountSecrets(AccountKey())

    /// Another device of the account, in memory.
    private func member() throws -> Account {
        Account(
            id: secrets.accountID, identity: try DeviceIdentity(issuedBy: secrets), deviceName: "device",
            keys: [secrets.keys(generation: 0)])
    }

    private func take(_ list: RevocationList, by account: inout Account) throws -> Bool {
        try account.take([GivenList(list, keys: secrets.keys(generation: list.number, list: list.digest))])
    }

    @Test("States of devices that revoke at will and meet at random become one, and no number is ever lower")
    func statesConverge() throws {
        for seed in 1...40 as ClosedRange<UInt64> {
            var generator = SeededGenerator(seed: seed)
            let ids = (0..<12).compactMap { _ in DeviceID(bytes: generator.bytes(DeviceID.count)) }
            var devices = try (0..<5).map { _ in try member() }
            var everRevoked: Set<DeviceID> = []
            var everKeys: Set<GenerationID> = []

            func meet(_ left: Int, _ right: Int) throws {
                for (from, to) in [(left, right), (right, left)] {
                    let before = devices[to]
                    let lists = devices[from].givenLists.shuffled(using: &generator)
                    #expect(try devices[to].take(lists) == (devices[to].state != before.state))
                    #expect(devices[to].state.number >= before.state.number, "seed \(seed)")
                    #expect(devices[to].state.revoked.isSuperset(of: before.state.revoked), "seed \(seed)")
                }
                #expect(devices[left].state == devices[right].state, "seed \(seed)")
            }

            for _ in 0..<30 {
                let device = Int.random(in: devices.indices, using: &generator)
                if Int.random(in: 0..<3, using: &generator) == 0, let victim = ids.randomElement(using: &generator) {
                    let before = devices[device].state.number
                    let list = try devices[device].state.next(revoking: [victim], signedWith: secrets)
                    #expect(try take(list, by: &devices[device]))
                    #expect(devices[device].state.number == before + 1 && !devices[device].state.isApart)
                    everRevoked.insert(victim)
                    everKeys.insert(list.generation)
                } else {
                    let other = Int.random(in: devices.indices, using: &generator)
                    if other != device { try meet(device, other) }
                }
            }
            // A chain there and back tells everybody everything.
            for index in 1..<devices.count { try meet(index - 1, index) }
            for index in (1..<devices.count).reversed() { try meet(index - 1, index) }
            for device in devices {
                #expect(device.state == devices[0].state, "seed \(seed)")
                #expect(device.state.revision == devices[0].state.revision)
                #expect(device.state.revoked == everRevoked, "seed \(seed)")
                #expect(device.currentKeys == devices[0].currentKeys, "seed \(seed)")
                #expect(device.generation == (everKeys.map(\.number).max() ?? 0), "seed \(seed)")
            }
        }
    }

    @Test("The order in which lists come makes no difference")
    func orderMakesNoDifference() throws {
        var generator = SeededGenerator(seed: 99)
        let ids = (0..<6).compactMap { _ in DeviceID(bytes: generator.bytes(DeviceID.count)) }
        var lists: [RevocationList] = []
        for number in 1...4 as ClosedRange<UInt32> {
            for _ in 0..<3 {
                let some = Set(ids.shuffled(using: &generator).prefix(Int.random(in: 1...3, using: &generator)))
                lists.append(try RevocationList(number: number, revoked: some, signedWith: secrets))
            }
        }
        let expected = try lists.reduce(AccountState.initial) { try $0.merging($1) }
        #expect(expected.number == 4)
        for _ in 0..<200 {
            let state = try lists.shuffled(using: &generator).reduce(AccountState.initial) { try $0.merging($1) }
            #expect(state == expected, "\(generator)")
        }
    }

    @Test func theHigherNumberWinsAndTheLowerIsNotTaken() throws {
        var account = try member()
        let ids = (1...3).compactMap { DeviceID(bytes: [UInt8](repeating: $0, count: DeviceID.count)) }
        let first = try account.state.next(revoking: [ids[0]], signedWith: secrets)
        #expect(try take(first, by: &account))
        #expect(try !take(first, by: &account))
        let second = try account.state.next(revoking: [ids[1]], signedWith: secrets)
        #expect(try take(second, by: &account))
        #expect(account.state.lists == [second] && account.generation == 2)
        #expect(account.keys.map(\.generation) == [2, 1, 0])
        // A list signed on a device that knew of none, with nothing new.
        #expect(try !take(first, by: &account))
        #expect(account.state.lists == [second])
        #expect(account.isRevoked(ids[0]) && account.isRevoked(ids[1]) && !account.isRevoked(ids[2]))
    }

    @Test("Lists signed apart are both kept and both revoke, and the next one jumps past them")
    func listsApart() throws {
        let ids = (1...4).compactMap { DeviceID(bytes: [UInt8](repeating: $0, count: DeviceID.count)) }
        var here = try member()
        var there = try member()
        _ = try take(here.state.next(revoking: [ids[0]], signedWith: secrets), by: &here)
        _ = try take(there.state.next(revoking: [ids[1]], signedWith: secrets), by: &there)
        #expect(here.currentKeys != there.currentKeys && here.state.revision != there.state.revision)
        #expect(try here.take(there.givenLists))
        #expect(here.state.isApart && here.state.revoked == [ids[0], ids[1]] && here.generation == 1)
        #expect(here.keys.map(\.generation) == [1, 1, 0])
        let next = try here.state.next(revoking: [ids[2]], signedWith: secrets)
        #expect(try take(next, by: &here) && take(next, by: &there))
        #expect(here.state == there.state && here.state.lists == [next] && next.number == 2)
        #expect(next.revoked == Set(ids[...2]))
    }

    @Test("A revocation is not taken back by a higher list that was signed where nobody knew of it")
    func revocationsStay() throws {
        let ids = (1...3).compactMap { DeviceID(bytes: [UInt8](repeating: $0, count: DeviceID.count)) }
        var here = try member()
        var there = try member()
        _ = try take(here.state.next(revoking: [ids[0]], signedWith: secrets), by: &here)
        for id in ids[1...] { _ = try take(there.state.next(revoking: [id], signedWith: secrets), by: &there) }
        #expect(try here.take(there.givenLists))
        #expect(here.generation == 2 && here.currentKeys == there.currentKeys)
        #expect(here.isRevoked(ids[0]) && here.state.revoked == Set(ids))
        // And the other side learns of it, without a key of the lower list.
        #expect(here.givenLists.map { $0.keys == nil } == [false, true])
        #expect(try there.take(here.givenLists))
        #expect(there.state == here.state && there.keys.map(\.generation) == [2, 1, 0])
    }

    @Test func keysAreCheckedAgainstTheList() throws {
        var account = try member()
        let list = try account.state.next(revoking: [account.identity.id], signedWith: secrets)
        let before = account.keys
        for keys in [
            nil, secrets.keys(generation: 0), secrets.keys(generation: 2, list: list.digest),
            secrets.keys(generation: 1, list: ListDigest(rawValue: list.digest.rawValue + 1)),
            AccountSecrets(AccountKey()).keys(generation: 1, list: list.digest),
        ] {
            #expect(throws: RevocationError.wrongKeys) { try account.take([GivenList(list, keys: keys)]) }
        }
        #expect(account.state == .initial && account.keys == before)
    }

    @Test func boundsHold() throws {
        var generator = SeededGenerator(seed: 5)
        var state = AccountState.initial
        func list() throws -> RevocationList {
            let one = try #require(DeviceID(bytes: generator.bytes(DeviceID.count)))
            return try RevocationList(number: 1, revoked: [one], signedWith: secrets)
        }
        for _ in 0..<AccountState.maximumLists { state = try state.merging(list()) }
        #expect(state.lists.count == AccountState.maximumLists)
        #expect(throws: RevocationError.tooLarge) { try state.merging(list()) }
        // The next one makes room again.
        state = try state.merging(state.next(revoking: [], signedWith: secrets))
        #expect(state.lists.count == 1 && state.revoked.count == AccountState.maximumLists)

        var large = AccountState.initial
        var taken = 0
        #expect(throws: RevocationError.tooLarge) {
            while true {
                let many = Set(
                    (0..<RevocationList.maximumDevices).compactMap { _ in
                        DeviceID(bytes: generator.bytes(DeviceID.count))
                    })
                large = try large.merging(RevocationList(number: 1, revoked: many, signedWith: secrets))
                taken += 1
            }
        }
        #expect(taken == AccountState.maximumSize / RevocationList.maximumSize)

    }

    @Test("An account has all its keys to its last revocation, and the first ones however many were signed apart")
    func keysOfAllGenerations() throws {
        var account = try member()
        let first = account.currentKeys
        for _ in 0..<RevocationList.maximumNumber { _ = try account.revoke([], with: secrets) }
        #expect(account.keys.map(\.generation) == (0...RevocationList.maximumNumber).reversed())
        #expect(throws: RevocationError.exhausted) { try account.revoke([], with: secrets) }
        #expect(account.keys.count == Account.maximumKeys)
        // Another list of the last number.
        let lost = try #require(DeviceID(bytes: [UInt8](repeating: 9, count: DeviceID.count)))
        let apart = try RevocationList(number: RevocationList.maximumNumber, revoked: [lost], signedWith: secrets)
        let keys = secrets.keys(generation: apart.number, list: apart.digest)
        #expect(try account.take([GivenList(apart, keys: keys)]))
        #expect(account.keys.count == Account.maximumKeys && account.keys.last == first)
    }
}
