// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import Testing

@testable import BatonAccount

@Suite struct AccountSecretsTests {
    @Test func derivationsAgreeWithTheVectors() throws {
        let vectors = try TestVectors.load()
        let secrets = AccountSecrets(try #require(AccountKey(secret: vectors.accountKey.secret.secret)))
        #expect(secrets.certificateAuthoritySeed == vectors.derivations.caSeed.secret)
        #expect(secrets.accountID.description == "02887de794958b09")
        let id = vectors.derivations.accountID.bytes.reduce(0) { $0 << 8 | UInt64($1) }
        #expect(secrets.accountID == AccountID(rawValue: id))
        let list = try #require(ListDigest(vectors.revocation.digest))
        for (generation, list) in [nil, list].enumerated() {
            let keys = secrets.keys(generation: UInt32(generation), list: list)
            #expect(keys.joining == (list == nil ? nil : vectors.derivations.joiningKey.secret))
            #expect(keys.advertisement == vectors.derivations.advertisementKeys[generation].secret)
            #expect(keys.gate == vectors.derivations.gateKeys[generation].secret)
        }
    }

    @Test func nothingDerivedIsTheSameTwice() {
        let secrets = AccountSecrets(AccountKey())
        let keys = (0...10).map { secrets.keys(generation: $0) }
        let all = [secrets.certificateAuthoritySeed] + keys.map(\.advertisement) + keys.map(\.gate)
        for (index, key) in all.enumerated() {
            for other in all[(index + 1)...] { #expect(key != other) }
        }
        #expect(AccountSecrets(AccountKey()).accountID != secrets.accountID)
    }

    @Test func accountIDsReadAndWrite() {
        #expect(AccountID(rawValue: 1).description == "0000000000000001")
        #expect(AccountID("00000000000000ff") == AccountID(rawValue: 255))
        for text in ["", "ff", "00000000000000fg", "+0000000000000ff", "00000000000000fff"] {
            #expect(AccountID(text) == nil)
        }
    }
}
