// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import Testing

@testable import BatonAccount

@Suite struct GateTokenTests {
    private let vectors: TestVectors
    private let keys: GenerationKeys
    private let server: DeviceID

    init() throws {
        self.vectors = try TestVectors.load()
        self.keys = AccountSecrets(try #require(AccountKey(secret: vectors.accountKey.secret.secret)))
            .keys(generation: 0)
        self.server = try #require(DeviceID(vectors.device.id))
    }

    @Test func theVectorsAgree() {
        let gate = vectors.gate
        #expect(
            GateToken.serverName(
                keys: keys, server: server, gateNonce: gate.gateNonce.bytes, clientNonce: gate.clientNonce.bytes)
                == gate.serverName)
    }

    @Test func eachTokenIsNewAndAHostName() throws {
        let nonce = vectors.gate.gateNonce.bytes
        let names = (0..<20).map { _ in GateToken.serverName(keys: keys, server: server, gateNonce: nonce) }
        #expect(Set(names).count == names.count)
        for name in names {
            let label = try #require(name.split(separator: ".").first)
            #expect(label.utf8.count == 52 && name == label + ".baton.invalid")
            #expect(Base32.decode(String(label))?.count == 32)
        }
        #expect(GateToken.serverName(keys: keys, server: server, gateNonce: nonce).utf8.count == 66)
    }
}
