// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import Testing

@testable import BatonAccount

/// The vectors of chapter 17 of the wire specification.
@Suite struct RevocationVectorTests {
    private let vectors: TestVectors
    private let secrets: AccountSecrets
    private let list: RevocationList
    private let keys: GenerationKeys

    init() throws {
        vectors = try TestVectors.load()
        secrets = AccountSecrets(try #require(AccountKey(secret: vectors.accountKey.secret.secret)))
        let revoked = try vectors.revocation.revoked.map { try #require(DeviceID($0)) }
        list = try RevocationList(
            number: vectors.revocation.number, revoked: Set(revoked), signedWith: secrets)
        keys = secrets.keys(generation: list.number, list: list.digest)
    }

    @Test func aListIsTheSameBytesEverywhere() throws {
        #expect(list.encoded == vectors.revocation.list.bytes)
        #expect(list.digest.description == vectors.revocation.digest)
        #expect(list.commits(to: keys))
    }

    @Test func aStateHasTheRevisionOfTheVectors() throws {
        let state = try AccountState.initial.merging(list)
        #expect(state.revision == UInt64(vectors.revocation.revision, radix: 16))
    }

    @Test func aSaltHidesTheDigest() throws {
        let salt = vectors.revocation.joiningSalt.bytes
        #expect(salt.starts(with: vectors.revocation.joiningRandom.bytes))
        let joining = try #require(keys.joining)
        #expect(JoiningSalt.digest(in: salt, joining: joining) == list.digest)
    }

    @Test func wrappedKeysAreTheBytesOfTheVectors() throws {
        let device = try DeviceIdentity(issuedBy: secrets, seed: vectors.device.seed.secret)
        let wrapping = device.localWrappingKey
        #expect(wrapping == vectors.revocation.wrappingKey.secret)
        let wrapped = try keys.concatenated.wrapped(with: wrapping)
        #expect(wrapped == vectors.revocation.wrappedKeys.bytes)
    }
}
