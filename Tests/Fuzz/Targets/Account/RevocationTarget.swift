// SPDX-License-Identifier: Apache-2.0

import BatonMessages
import BatonProtocol
import BatonTLS
import FoundationEssentials
import SwiftProtobuf

@testable import BatonAccount
@testable import BatonNode

/// Revocation lists as another device gives them, and the state as it is on the disk.
///
/// The input is tried as it is, and once more with a signature of the account: what lies behind the signature is
/// reached as well.
enum RevocationTarget: FuzzTarget {
    static let name = "revocation"
    static let maximumLength = 4096

    private static let account = Result { try Account.fixture() }

    static func run(_ bytes: UnsafeRawBufferPointer) throws {
        let (secrets, authority, key) = try account.get()
        let input = Array(bytes)
        expect((try? RevocationList(decoding: input, authority: authority)) == nil, "a list that nobody signed")
        if let state = try? AccountState(decoding: input, authority: authority) {
            expect(state.revoked.isEmpty, "a state that nobody signed revokes somebody")
        }

        if let message = try? WireSignedList(serializedBytes: input) {
            let given = try? GivenList(message, wrappedBy: key, authority: authority)
            expect(given == nil, "a list that nobody signed was given")
        }

        let signed = input + (try secrets.sign(RevocationList.signedMessage(input)))
        guard let list = try? RevocationList(decoding: signed, authority: authority) else { return }
        expect(list.encoded == signed, "a list reads as another one")
        expect(list.revoked.count <= RevocationList.maximumDevices, "more devices than a list may have")
        // As it travels, with keys that nobody has compared with it yet.
        let message = WireSignedList.with {
            $0.list = Data(signed)
            $0.wrappedKeys = Data(input.suffix(3 * GenerationKeys.keyCount + KeyWrap.overhead))
        }
        let given = try GivenList(message, wrappedBy: key, authority: authority)
        expect(given.list == list && given.keys == nil, "another list than was given, or keys that nobody wrapped")
        expect(try WireSignedList(given, wrappedBy: key).list == message.list, "it travels as another list")
        let state = try AccountState.initial.merging(list)
        expect(state.number == list.number && state.revoked == list.revoked, "the state has another list")
        expect(try state.merging(list) == state, "the same list says something new")
        let read = try AccountState(decoding: state.encoded(), authority: authority)
        expect(read == state, "what was stored cannot be read")
    }

    static func seeds() throws -> [[UInt8]] {
        let (secrets, _, _) = try account.get()
        return try (1...4).flatMap { number in
            let ids = Set((0..<UInt8(number)).map { DeviceID(subjectPublicKeyInfo: [$0]) })
            let list = try RevocationList(number: UInt32(number), revoked: ids, signedWith: secrets)
            let unsigned = Array(list.encoded.dropLast(64))
            return [unsigned, list.encoded, try AccountState.initial.merging(list).encoded()]
        }
    }
}

extension Account {
    /// The keys that sign lists, that verify them, and that wrap their keys.
    fileprivate static func fixture() throws -> (AccountSecrets, AuthorityKey, SecretBytes) {
        let secrets = AccountSecrets(AccountKey())
        let identity = try DeviceIdentity(issuedBy: secrets)
        return (secrets, identity.authorityKey, identity.localWrappingKey)
    }
}
