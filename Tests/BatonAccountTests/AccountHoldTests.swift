// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import BatonTestSupport
import FoundationEssentials
import Glibc
import Testing

import struct SystemPackage.FileDescriptor
import struct SystemPackage.FilePath

@testable import BatonAccount

/// A node has its account for itself.
@Suite struct AccountHoldTests {
    private let account: TestAccount
    private var store: AccountStore { account.devices[0].store }

    init() throws {
        account = try TestAccount(devices: 2)
    }

    /// The account's files and their contents.
    private func content() throws -> [String: Data] {
        let folder = store.folder.string
        return try FileManager.default.contentsOfDirectory(atPath: folder).reduce(into: [:]) {
            $0[$1] = try Data(contentsOf: URL(filePath: folder + "/" + $1))
        }
    }

    private func listAgainstTheSecond(after state: Account) throws -> [GivenList] {
        var revoking = state
        return [try revoking.revoke([account.devices[1].id], with: AccountSecrets(account.key))]
    }

    @Test("One holds an account at a time, and when it lets go the next one does")
    func oneHolder() throws {
        do {
            let hold = try store.hold()
            #expect(throws: AccountError.nodeRunning) { _ = try store.hold() }
            // An account of its own is another one.
            _ = try account.devices[1].store.hold()
            _ = consume hold
        }
        _ = try store.hold()
        try store.leave()
        #expect(throws: AccountError.noAccount) { _ = try store.hold() }
    }

    @Test("Nobody changes or removes an account that is held, and nothing is shown of what would have replaced it")
    func unchanged() throws {
        let given = try listAgainstTheSecond(after: try store.load())
        let before = try content()
        do {
            let hold = try store.hold()
            #expect(throws: AccountError.nodeRunning) { try store.refuseNode() }
            #expect(throws: AccountError.nodeRunning) { try store.take(given) }
            #expect(throws: AccountError.nodeRunning) { try store.leave() }
            #expect(throws: AccountError.nodeRunning) { try store.rotate { _ in Issue.record("a key was shown") } }
            #expect(try content() == before)
            _ = consume hold
        }
        try store.refuseNode()
        try store.take(given)
        #expect(try store.load().isRevoked(account.devices[1].id))
        _ = try store.rotate { _ in }
        try store.leave()
    }

    @Test("Whoever has locked the folder around an account is waited for, for so long and no longer")
    func busy() throws {
        let parent = store.folder.removingLastComponent()
        let other = try FileDescriptor.open(parent, .readOnly)
        try other.closeAfter {
            #expect(flock(other.rawValue, LOCK_EX) == 0)
            let began = ContinuousClock.now
            #expect(throws: AccountError.busy(path: parent, seconds: 5)) { _ = try store.hold() }
            #expect(ContinuousClock.now - began >= .seconds(5))
        }
        _ = try store.hold()
    }

    @Test("Lists are taken by what is on the disk then, not by what it was when they were made")
    func takenAfresh() throws {
        let read = try store.load()
        let given = try listAgainstTheSecond(after: read)
        // A node that ran meanwhile took another list.
        let other = try #require(DeviceID(bytes: [UInt8](repeating: 7, count: DeviceID.count)))
        var meanwhile = read
        _ = try meanwhile.revoke([other], with: AccountSecrets(account.key))
        try store.save(stateOf: meanwhile)
        try store.take(given)
        let now = try store.load()
        #expect(now.isRevoked(other) && now.isRevoked(account.devices[1].id))
    }
}
