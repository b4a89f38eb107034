// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import BatonTestSupport
import FoundationEssentials
import Testing

import struct SystemPackage.Errno
import struct SystemPackage.FilePath

@testable import BatonAccount

/// The state on disk, and how a joining device finds it.
@Suite struct AccountStateStoreTests {
    private let account: TestAccount
    private var secrets: AccountSecrets { AccountSecrets(account.key) }
    private var store: AccountStore { account.devices[0].store }

    init() throws {
        account = try TestAccount(devices: 2)
    }

    private func revoke(_ id: DeviceID, on account: inout Account) throws {
        _ = try account.revoke([id], with: secrets)
    }

    private func strangers(_ count: Int) -> [DeviceID] {
        (1...count).compactMap { DeviceID(bytes: [UInt8](repeating: UInt8($0), count: DeviceID.count)) }
    }

    @Test func stateAndKeysAreReadAgain() throws {
        var here = try store.load()
        for id in strangers(3) {
            try revoke(id, on: &here)
            try store.save(stateOf: here)
            let read = try store.load()
            #expect(read.state == here.state && read.keys == here.keys && read.generation == here.generation)
        }
        #expect(here.keys.map(\.generation) == [3, 2, 1, 0])
        // A device that joined late lacks older ones.
        let names = ["generation-1-\(here.keys[2].id.list!).keys", "generation-0.keys"]
        for name in names { try FileManager.default.removeItem(atPath: store.folder.appending(name).string) }
        #expect(try store.load().keys.map(\.generation) == [3, 2])
    }

    @Test("A crash between the keys and the list changes nothing")
    func cutShort() throws {
        var here = try store.load()
        try revoke(strangers(1)[0], on: &here)
        guard let files = try AccountFolder.open(store.folder) else { throw AccountError.noAccount }
        try files.write(AccountFile.keys(of: here.currentKeys.id), here.currentKeys.concatenated)
        #expect(try store.load().generation == 0)
        try files.write(AccountFile.state, here.state.encoded())
        let read = try store.load()
        #expect(read.state == here.state && read.keys == here.keys)
        try store.save(stateOf: here)
        #expect(try store.load().keys == here.keys)
    }

    @Test("Lists that are missing, older or changed on the disk are refused, since somebody would be welcome again")
    func damage() throws {
        var here = try store.load()
        try revoke(strangers(1)[0], on: &here)
        try store.save(stateOf: here)
        let path = store.folder.appending(AccountFile.state).string
        let older = try #require(FileManager.default.contents(atPath: path))
        try revoke(strangers(2)[1], on: &here)
        try store.save(stateOf: here)
        let bytes = try #require(FileManager.default.contents(atPath: path))
        var changed = bytes
        changed[bytes.count / 2] ^= 1
        let contents: [Data?] = [nil, older, changed, bytes.dropLast(), bytes + [0], Data()]
        for content in contents {
            try? FileManager.default.removeItem(atPath: path)
            if let content {
                try content.write(to: URL(filePath: path))
                try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
            }
            #expect {
                try store.load()
            } throws: {
                if case .damaged? = $0 as? AccountError { true } else { false }
            }
        }
        try bytes.write(to: URL(filePath: path))
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
        #expect(try store.load().state == here.state)
    }

    @Test("A joining device opens advertisements of any generation and list; the account's others and thieves do not")
    func joiningOpener() throws {
        var here = account.devices[0].account
        let opener = JoiningOpener(secrets: secrets, ownDevice: account.devices[1].id)
        let strange = JoiningOpener(secrets: AccountSecrets(AccountKey()), ownDevice: account.devices[1].id)
        let content = AdvertisementContent(port: 4000, addresses: [], deviceName: "here")
        for number in 0...JoiningOpener.generations.upperBound {
            if number > 0 { try revoke(account.devices[1].id, on: &here) }
            guard [0, 1, 2, 64].contains(number) else { continue }
            var sealer = AdvertisementSealer(identity: here.identity, keys: here.currentKeys, epoch: 1)
            for _ in 0..<3 {
                let record = try sealer.seal(content).flatMap { [UInt8($0.count)] + $0 }
                let opened = try opener.open(record)
                #expect(opened.keys == here.currentKeys && opened.advertisement.device == here.identity.id)
                #expect(throws: AdvertisementError.unopenable) { try strange.open(record) }
                if number > 0 {
                    // The keys of the revoked device.
                    let thief = AdvertisementOpener(
                        keys: account.devices[1].account.keys, ownDevice: account.devices[1].id)
                    #expect(throws: AdvertisementError.unopenable) { try thief.open(record) }
                }
                sealer.beginPeriod()
            }
        }
    }

    @Test("Salts of two periods share nothing, whatever the generation")
    func saltsDiffer() throws {
        let keys = secrets.keys(generation: 1, list: ListDigest(rawValue: 7))
        let salts = (0..<200).map { _ in JoiningSalt.make(for: keys) }
        #expect(Set(salts).count == 200)
        #expect(Set(salts.map { $0.suffix(8) }).count == 200 && Set(salts.map { $0.prefix(8) }).count == 200)
        #expect(salts.allSatisfy { $0.count == AdvertisementSeal.saltCount })
    }

    @Test func enrolmentTakesTheStateOver() throws {
        var here = account.devices[0].account
        for id in strangers(2) { try revoke(id, on: &here) }
        let store = AccountStore(folder: account.root.appending("device-3").appending("account"))
        var enrolment = try store.begin(account.key, deviceName: "third")
        #expect(throws: AccountError.noAccount) { try store.load() }
        _ = try enrolment.account.take(here.givenLists)
        let joined = try store.finish(enrolment.account)
        let read = try store.load()
        #expect(read.state == here.state && read.keys == joined.keys && read.keys.map(\.generation) == [2, 0])
        #expect(!read.isRevoked(read.identity.id))
        #expect(throws: AccountError.accountExists) { try store.finish(enrolment.account) }
    }

    @Test func rotationPutsAnotherAccountInPlace() throws {
        let old = try store.load()
        var shown: AccountKey?
        let new = try store.rotate { shown = $0 }
        #expect(shown.map { AccountSecrets($0).accountID } == new.id && new.id != old.id)
        let read = try store.load()
        #expect(read.id == new.id && read.deviceName == old.deviceName && read.identity.id != old.identity.id)
        // If the key cannot be shown, nothing changes.
        let failure = AccountError.system(doing: "print", path: "x", error: .brokenPipe)
        #expect(throws: failure) { try store.rotate { _ throws(AccountError) in throw failure } }
        #expect(try store.load().id == new.id)
        let siblings = try FileManager.default.contentsOfDirectory(atPath: store.folder.removingLastComponent().string)
        #expect(siblings == ["account"])
    }

    @Test func knownDevicesAreReadAgain() throws {
        #expect(try store.loadKnownDevices().entries.isEmpty)
        let entries = strangers(70).enumerated().map { index, id in
            KnownDevices.Entry(deviceID: "\(id)", name: "device \(index)", seen: UInt64(index), revision: 1 << 32)
        }
        let devices = KnownDevices(entries)
        #expect(devices.entries == Array(entries.reversed().prefix(KnownDevices.capacity)))
        try store.save(devices)
        #expect(try store.loadKnownDevices() == devices)
        let path = store.folder.appending(AccountFile.devices)
        try Data("[{".utf8).write(to: URL(filePath: path.string))
        #expect(try store.loadKnownDevices().entries.isEmpty)
    }

    @Test func formerNamesAreReadAgain() throws {
        // The longest that there can be: 64 devices, each name written in twice its bytes.
        func name(_ number: Int) -> String { String(repeating: "\"", count: 61) + "\(10 + number)" }
        var names = FormerNames()
        for number in 0..<20 { names.add(name(number % 10)) }
        #expect(names.other(than: "") == (0..<FormerNames.bound).map(name))
        #expect(names.other(than: name(0)) == (1..<FormerNames.bound).map(name))
        let devices = KnownDevices(
            strangers(70).enumerated().map { index, id in
                KnownDevices.Entry(
                    deviceID: "\(id)", name: name(30), seen: .max - UInt64(index), revision: .max, isProved: true,
                    formerNames: names)
            })
        try store.save(devices)
        #expect(try store.loadKnownDevices() == devices)
        let path = URL(filePath: store.folder.appending(AccountFile.devices).string)
        let count = try Data(contentsOf: path).count
        #expect((64 << 10..<96 << 10).contains(count), "\(count) bytes")

        // The form of an earlier version, with invalid names and too many of them.
        let id = "\(strangers(1)[0])"
        for (text, expected) in [
            ("", [String]()),
            (#","formerNames":["", " a", "b\n", "c", "c", "\#(String(repeating: "d", count: 64))", "e"]"#, ["c", "e"]),
            (#","formerNames":["1","2","3","4","5","6","7","8","9"]"#, (1...8).map(String.init)),
        ] {
            try Data(#"[{"deviceID":"\#(id)","isProved":true,"name":"tv","revision":1,"seen":2\#(text)}]"#.utf8)
                .write(to: path)
            let entry = try #require(try store.loadKnownDevices().entries.first)
            #expect(entry.deviceID == id && entry.name == "tv" && entry.isProved == true && entry.seen == 2)
            #expect(entry.formerNames?.other(than: "") ?? [] == expected)
        }
    }
}
