// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Foundation
import SystemPackage
import Testing

@testable import BatonAccount

@Suite struct AccountStoreTests {
    private let account: TestAccount
    private var device: TestAccount.Device { account.devices[0] }
    private var folder: FilePath { device.store.folder }

    init() throws {
        self.account = try TestAccount(devices: 2)
    }

    private func mode(_ path: FilePath) throws -> Int {
        let attributes = try FileManager.default.attributesOfItem(atPath: path.string)
        return try #require(attributes[.posixPermissions] as? Int)
    }

    private func files(in folder: FilePath) throws -> [FilePath] {
        try FileManager.default.contentsOfDirectory(atPath: folder.string).map { folder.appending($0) }
    }

    private func write(_ text: String, to name: String) throws {
        let path = folder.appending(name).string
        try text.write(toFile: path, atomically: false, encoding: .utf8)
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
    }

    @Test func whatWasMadeIsRead() throws {
        for device in account.devices {
            let read = try device.store.load()
            #expect(read.id == device.account.id && read.deviceName == device.account.deviceName)
            #expect(read.identity.id == device.id && read.identity.publicKey == device.account.identity.publicKey)
            #expect(read.keys == device.account.keys && read.generation == 0)
            #expect(read.identity.tlsMaterial.privateKey == device.tlsMaterial.privateKey)
            #expect(read.identity.tlsMaterial.certificate == device.tlsMaterial.certificate)
        }
        #expect(account.devices[0].account.id == account.devices[1].account.id)
        #expect(account.devices[0].account.currentKeys == account.devices[1].account.currentKeys)
        #expect(account.devices[0].id != account.devices[1].id)
    }

    @Test func onlyTheOwnerMayRead() throws {
        _ = try device.store.nextEpoch(unixTime: 1)
        try device.store.save(ReplayGuard())
        #expect(try mode(folder) == 0o700)
        for file in try files(in: folder) { #expect(try mode(file) == 0o600, "\(file)") }
    }

    @Test(.enabled(if: canBecomeSomebodyElse, "needs root and setpriv"))
    func anotherUserReadsNothing() throws {
        // The folders above are open to everyone, so that only the account's own folder protects it.
        for path in [account.root, device.home] {
            try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: path.string)
        }
        let listed = try run(
            "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "ls", folder.string)
        #expect(listed.status != 0 && listed.output.contains("Permission denied"), "\(listed.output)")
        for file in try files(in: folder) {
            let read = try run(
                "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "cat", file.string)
            #expect(read.status != 0 && read.output.contains("Permission denied"), "\(file)")
        }
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: folder.string)
        for file in try files(in: folder) {
            let read = try run(
                "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "cat", file.string)
            #expect(read.status != 0 && read.output.contains("Permission denied"), "\(file)")
        }
    }

    @Test(.enabled(if: canBecomeSomebodyElse, "needs root and setpriv"))
    func somebodyElsesAccountIsRefused() throws {
        let owned = try run("chown", "65534", folder.appending("device-key.der").string)
        #expect(owned.status == 0)
        #expect(throws: AccountError.foreign(path: folder.appending("device-key.der"))) { try device.store.load() }
        _ = try run("chown", "65534", folder.string)
        #expect(throws: AccountError.foreign(path: folder)) { try device.store.load() }
    }

    @Test func whatOthersCanReadIsRefused() throws {
        for mode in [0o640, 0o604, 0o620, 0o601] {
            let path = folder.appending("device-key.der")
            try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path.string)
            #expect(throws: AccountError.exposed(path: path, isFolder: false)) { try device.store.load() }
            try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path.string)
        }
        try FileManager.default.setAttributes([.posixPermissions: 0o750], ofItemAtPath: folder.string)
        #expect(throws: AccountError.exposed(path: folder, isFolder: true)) { try device.store.load() }
        #expect(throws: AccountError.exposed(path: folder, isFolder: true)) {
            try device.store.nextEpoch(unixTime: 1)
        }
        let sentence = "\(AccountError.exposed(path: "/a b/it's", isFolder: true))"
        #expect(sentence.hasSuffix("chmod 700 '/a b/it'\\''s'"), "\(sentence)")
        #expect("\(AccountError.exposed(path: "/a/b", isFolder: false))".hasSuffix("chmod 600 /a/b"))
    }

    @Test func linksAndPipesAreNotFollowed() throws {
        let path = folder.appending("account.json")
        let elsewhere = account.root.appending("elsewhere.json")
        try FileManager.default.moveItem(atPath: path.string, toPath: elsewhere.string)
        try FileManager.default.createSymbolicLink(atPath: path.string, withDestinationPath: elsewhere.string)
        #expect(throws: AccountError.self) { try device.store.load() }
        try FileManager.default.removeItem(atPath: path.string)
        #expect(try run("mkfifo", "-m", "600", path.string).status == 0)
        #expect(throws: AccountError.damaged(path: path, reason: "it is not a file")) { try device.store.load() }
    }

    @Test func aLinkInTheFoldersPlaceIsRefused() throws {
        let elsewhere = account.root.appending("elsewhere")
        try FileManager.default.moveItem(atPath: folder.string, toPath: elsewhere.string)
        try FileManager.default.createSymbolicLink(atPath: folder.string, withDestinationPath: elsewhere.string)
        #expect(throws: AccountError.self) { try device.store.load() }
        #expect(throws: AccountError.self) { try device.store.leave() }
        #expect(throws: AccountError.self) { try device.store.make() }
        #expect(try files(in: device.home) == [folder])
        _ = try AccountStore(folder: elsewhere).load()
    }

    @Test func withoutAnAccountThereIsASentence() throws {
        let store = AccountStore(folder: account.root.appending("nobody/account"))
        #expect(throws: AccountError.noAccount) { try store.load() }
        #expect(throws: AccountError.noAccount) { try store.leave() }
        #expect(throws: AccountError.noAccount) { try store.nextEpoch(unixTime: 1) }
        #expect(throws: AccountError.noAccount) { try store.loadReplayGuard() }
        #expect(throws: AccountError.noAccount) { try store.save(ReplayGuard()) }
        #expect("\(AccountError.noAccount)".hasPrefix("no account on this device: run `baton`, "))
    }

    @Test func aSecondAccountIsRefused() throws {
        let before = try device.store.load().identity.id
        #expect(throws: AccountError.accountExists) { try device.store.make() }
        #expect(throws: AccountError.accountExists) { try device.store.join(AccountKey()) }
        #expect(throws: AccountError.accountExists) { try device.store.join(account.key) }
        #expect(try device.store.load().identity.id == before)
        #expect("\(AccountError.accountExists)".contains("`baton account leave` first"))
    }

    @Test func leavingRemovesEverything() throws {
        // A second link to the key's file shows whether its bytes were overwritten. The first link is removed.
        let key = folder.appending("device-key.der")
        let open = try FileDescriptor.open(key, .readOnly)
        defer { try? open.close() }
        try device.store.leave()
        var bytes = [UInt8](repeating: 1, count: 48)
        let count = try bytes.withUnsafeMutableBytes { try open.read(fromAbsoluteOffset: 0, into: $0) }
        #expect(count == 48 && bytes.allSatisfy { $0 == 0 })
        #expect(try files(in: device.home) == [])
        #expect(throws: AccountError.noAccount) { try device.store.load() }
        let again = try device.store.join(account.key)
        #expect(again.id == device.account.id && again.identity.id != device.id)
    }

    @Test func whatAKilledRunLeftIsRemoved() throws {
        for name in [".account.new-abcd", ".account.leaving-abcd"] {
            let left = device.home.appending(name)
            try FileManager.default.createDirectory(atPath: left.string, withIntermediateDirectories: false)
            try "key".write(toFile: left.appending("device-key.der").string, atomically: false, encoding: .utf8)
        }
        try write("half", to: ".epoch.abcd")
        _ = try device.store.nextEpoch(unixTime: 1)
        #expect(!FileManager.default.fileExists(atPath: folder.appending(".epoch.abcd").string))
        #expect(throws: AccountError.accountExists) { try device.store.make() }
        #expect(try files(in: device.home) == [folder])
    }

    @Test func aFailedCreateLeavesNothing() throws {
        let blocked = account.root.appending("blocked")
        try "a file".write(toFile: blocked.string, atomically: false, encoding: .utf8)
        #expect(throws: AccountError.self) { try AccountStore(folder: blocked).make() }
        #expect(throws: AccountError.self) { try AccountStore(folder: blocked.appending("account")).make() }
        #expect(throws: AccountError.self) { try AccountStore(folder: "/proc/baton/account").make() }
        let left = try files(in: account.root).filter { $0.lastComponent?.string.hasPrefix(".") == true }
        #expect(left == [])
    }

    @Test("There is no account before its key was shown")
    func shownFirst() throws {
        let store = AccountStore(folder: account.root.appending("shown/account"))
        let unwritable = AccountError.system(doing: "print the key to", path: "standard output", error: .noSpace)
        var isThere = true
        #expect(throws: unwritable) {
            try store.create { _ throws(AccountError) in
                isThere = (try? store.load()) != nil
                throw unwritable
            }
        }
        #expect(!isThere)
        #expect(try files(in: account.root.appending("shown")) == [])
        let made = try store.make()
        #expect(throws: AccountError.accountExists) { try store.join(made.key) }
    }

    @Test func emptyFolderIsTaken() throws {
        let empty = account.root.appending("fresh/account")
        try FileManager.default.createDirectory(atPath: empty.string, withIntermediateDirectories: true)
        _ = try AccountStore(folder: empty).make()
        #expect(try mode(empty) == 0o700)
        _ = try AccountStore(folder: empty).load()
    }

    @Test(arguments: [
        "device-key.der", "device-certificate.der", "authority-certificate.der", "generation-0.keys", "account.json",
    ])
    func damageIsNamed(_ name: String) throws {
        let path = folder.appending(name)
        for content in ["", "x", String(repeating: "x", count: 70_000)] {
            try write(content, to: name)
            #expect {
                try device.store.load()
            } throws: { error in
                guard case .damaged(let place, _)? = error as? AccountError else { return false }
                // A key that does not fit its certificate is told by the certificate's name.
                return place == path || place.lastComponent?.string == "device-certificate.der"
            }
        }
        try FileManager.default.removeItem(atPath: path.string)
        #expect(throws: AccountError.damaged(path: path, reason: "it is missing")) { try device.store.load() }
    }

    @Test func aLongerFileIsNotRead() throws {
        let limit = AccountFolder.maximumFileCount
        for (count, isRead) in [(limit, true), (limit + 1, false)] {
            try write(String(repeating: "x", count: count), to: "file")
            guard let opened = try AccountFolder.open(folder) else {
                Issue.record("the folder is not there")
                return
            }
            do throws(AccountError) {
                let read = try opened.read("file")?.count
                #expect(isRead && read == count)
            } catch {
                let reason = "it is longer than \(limit) bytes"
                #expect(!isRead && error == .damaged(path: folder.appending("file"), reason: reason))
            }
        }
    }

    @Test func aLaterFormatIsTold() throws {
        try write(#"{"format": 2, "more": true}"#, to: "account.json")
        let path = folder.appending("account.json")
        #expect(throws: AccountError.unknownFormat(path: path, format: 2)) { try device.store.load() }
        for text in [
            #"{"format": 1}"#, #"{"format": 1, "accountID": "zz", "deviceName": "a", "generation": 0}"#,
            #"{"format": 1, "accountID": "00000000000000ff", "deviceName": "", "generation": 0}"#,
            #"{"format": 1, "accountID": "00000000000000ff", "deviceName": "a", "generation": 4000000000}"#,
        ] {
            try write(text, to: "account.json")
            #expect {
                try device.store.load()
            } throws: {
                if case .damaged? = $0 as? AccountError { true } else { false }
            }
        }
    }

    @Test func epochsRise() throws {
        let store = device.store
        #expect(try store.nextEpoch(unixTime: 1000) == 1000)
        #expect(try store.nextEpoch(unixTime: 1000) == 1001)
        #expect(try store.nextEpoch(unixTime: 5) == 1002)
        #expect(try store.nextEpoch(unixTime: 9000) == 9000)
        #expect(try store.nextEpoch(unixTime: .max) == AccountStore.latestTime)
        #expect(try store.nextEpoch(unixTime: .max) == AccountStore.latestTime + 1)
        for damage in ["x\n", "-1\n", "12", "9223372036854775807\n", "\n"] {
            try write(damage, to: "epoch")
            #expect(throws: AccountError.self, "\(damage)") { try store.nextEpoch(unixTime: 1) }
        }
    }

    @Test func namesAreChecked() throws {
        let limit = DeviceName.maximumCount
        #expect(try DeviceName.validated("  my laptop ") == "my laptop")
        let longest = String(repeating: "é", count: 31) + "x"
        #expect(longest.utf8.count == limit)
        #expect(try DeviceName.validated(longest) == longest)
        for name in ["", "   ", longest + "x", "a\nb", "a\u{7f}", "a\u{2028}b", "\u{1b}[2J"] {
            #expect(throws: AccountError.self, "\(name.debugDescription)") { try DeviceName.validated(name) }
            #expect(throws: AccountError.self) {
                try AccountStore(folder: account.root.appending("named/account")).make(deviceName: name)
            }
        }
        #expect(DeviceName.name(ofHost: "desktop.example.org") == "desktop")
        #expect(DeviceName.name(ofHost: "") == "device")
        #expect(DeviceName.name(ofHost: String(repeating: "é", count: 40)) == String(repeating: "é", count: 31))
        let host = DeviceName.fromHost()
        #expect(try DeviceName.validated(host) == host)
    }

    @Test func concurrentCreatesMakeOneAccount() async throws {
        let store = AccountStore(folder: account.root.appending("race/account"))
        let made = await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<8 { group.addTask { (try? store.make()) != nil } }
            return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
        #expect(made == 1)
        _ = try store.load()
    }

    private static var canBecomeSomebodyElse: Bool {
        geteuid() == 0 && FileManager.default.isExecutableFile(atPath: "/usr/bin/setpriv")
    }

    @Test("What cannot be removed from an account that is left keeps no other file of it")
    func obstacle() throws {
        let scratch = try ScratchFolder("leave")
        defer { scratch.remove() }
        let store = AccountStore(folder: scratch.filePath.appending("account"))
        _ = try store.make(deviceName: "laptop")
        try FileManager.default.createDirectory(
            atPath: scratch.path + "/account/.obstacle/within", withIntermediateDirectories: true)
        #expect(throws: AccountError.self) { try store.leave() }
        let left = try FileManager.default.subpathsOfDirectory(atPath: scratch.path)
        #expect(left.allSatisfy { $0.hasSuffix("within") || $0.hasSuffix(".obstacle") || !$0.contains("/") }, "\(left)")
        #expect(left.contains { $0.hasSuffix("within") })
    }
}
