// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import BatonTestSupport
import Testing

@testable import BatonAccount

/// The signed list: its signature and its bounds.
@Suite struct RevocationListTests {
    private let key = AccountKey()
    private var secrets: AccountSecrets { AccountSecrets(key) }
    private let authority: AuthorityKey

    init() throws {
        authority = try DeviceIdentity(issuedBy: AccountSecrets(key)).authorityKey
    }

    private static func devices(_ count: Int, seed: UInt64) -> Set<DeviceID> {
        var generator = SeededGenerator(seed: seed)
        return Set((0..<count).compactMap { _ in DeviceID(bytes: generator.bytes(DeviceID.count)) })
    }

    @Test func whatWasSignedIsRead() throws {
        for count in [0, 1, 2, 50] {
            let revoked = Self.devices(count, seed: UInt64(count))
            let list = try RevocationList(number: 3, revoked: revoked, signedWith: secrets)
            let read = try RevocationList(decoding: list.encoded, authority: authority)
            #expect(read == list)
            #expect(read.number == 3 && read.revoked == revoked && read.generation.number == 3)
            #expect(read.commits(to: secrets.keys(generation: 3, list: read.digest)))
        }
    }

    @Test("The same revocation, signed on two devices that have not met, is one list")
    func equalListsAreEqual() throws {
        let revoked = Self.devices(7, seed: 1)
        let here = try RevocationList(number: 1, revoked: revoked, signedWith: secrets)
        let there = try RevocationList(number: 1, revoked: Set(revoked.shuffled()), signedWith: AccountSecrets(key))
        #expect(here == there)
    }

    @Test("Lists of one number that differ have different keys throughout")
    func listsApartHaveTheirOwnKeys() throws {
        let lists = try [Self.devices(1, seed: 1), Self.devices(1, seed: 2)].map {
            try RevocationList(number: 1, revoked: $0, signedWith: secrets)
        }
        let keys = lists.map { secrets.keys(generation: 1, list: $0.digest) }
        #expect(lists[0].digest != lists[1].digest)
        #expect(keys[0].advertisement != keys[1].advertisement && keys[0].gate != keys[1].gate)
        #expect(!lists[0].commits(to: keys[1]))
        #expect(keys[0].advertisement != secrets.keys(generation: 1).advertisement)
    }

    @Test func everyChangedByteIsRefused() throws {
        let list = try RevocationList(number: 2, revoked: Self.devices(2, seed: 3), signedWith: secrets)
        for index in list.encoded.indices {
            var bytes = list.encoded
            bytes[index] ^= 0x10
            #expect(throws: RevocationError.self, "byte \(index)") {
                try RevocationList(decoding: bytes, authority: authority)
            }
        }
        for count in [0, 10, list.encoded.count - 1] {
            #expect(throws: RevocationError.malformed) {
                try RevocationList(decoding: Array(list.encoded.prefix(count)), authority: authority)
            }
        }
        #expect(throws: RevocationError.malformed) {
            try RevocationList(decoding: list.encoded + [0], authority: authority)
        }
    }

    @Test func anotherAccountsListIsRefused() throws {
        let list = try RevocationList(number: 1, revoked: [], signedWith: AccountSecrets(AccountKey()))
        #expect(throws: RevocationError.badSignature) {
            try RevocationList(decoding: list.encoded, authority: authority)
        }
    }

    @Test("A device's own key, which a thief has, signs no list")
    func devicesSignNothing() throws {
        let identity = try DeviceIdentity(issuedBy: secrets)
        var bytes = try RevocationList(number: 1, revoked: [], signedWith: secrets).encoded.dropLast(64)
        bytes += try identity.sign(Array("baton revocation list/1".utf8) + bytes)
        #expect(throws: RevocationError.badSignature) {
            try RevocationList(decoding: Array(bytes), authority: authority)
        }
    }

    @Test func boundsHold() throws {
        let most = Self.devices(RevocationList.maximumDevices, seed: 4)
        let list = try RevocationList(number: RevocationList.maximumNumber, revoked: most, signedWith: secrets)
        #expect(list.encoded.count == RevocationList.maximumSize)
        #expect(try RevocationList(decoding: list.encoded, authority: authority) == list)
        #expect(throws: RevocationError.tooManyDevices) {
            try RevocationList(number: 1, revoked: most.union(Self.devices(1, seed: 5)), signedWith: secrets)
        }
        #expect(throws: RevocationError.exhausted) {
            try RevocationList(number: RevocationList.maximumNumber + 1, revoked: [], signedWith: secrets)
        }
        #expect(throws: RevocationError.exhausted) {
            try RevocationList(number: 0, revoked: [], signedWith: secrets)
        }
    }

    @Test("What members of the account could sign and this version does not know is refused as well")
    func validSignaturesOfOtherFormsAreRefused() throws {
        func signed(_ change: (inout [UInt8]) -> Void) throws -> [UInt8] {
            var bytes = Array(
                try RevocationList(number: 1, revoked: Self.devices(2, seed: 6), signedWith: secrets).encoded
                    .dropLast(64))
            change(&bytes)
            return bytes + (try secrets.sign(Array("baton revocation list/1".utf8) + bytes))
        }
        #expect(throws: Never.self) { try RevocationList(decoding: signed { _ in }, authority: authority) }
        let cases: [(RevocationError, (inout [UInt8]) -> Void)] = [
            (.unknownFormat(2), { $0[0] = 2 }),
            (.malformed, { $0[8] = 2 }),
            (.malformed, { $0.replaceSubrange(1..<9, with: [0, 0, 4, 1, 0, 0, 4, 1]) }),
            // The second id is not above the first.
            (.malformed, { $0.replaceSubrange(31..<51, with: $0[11..<31]) }),
            (.malformed, { $0[10] = 1 }),
        ]
        for (error, change) in cases {
            #expect(throws: error) { try RevocationList(decoding: signed(change), authority: authority) }
        }
    }
}
