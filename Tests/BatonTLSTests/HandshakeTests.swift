// SPDX-License-Identifier: Apache-2.0

import COpenSSL
import Testing

@testable import BatonTLS

@Suite struct HandshakeTests {
    @Test func twoDevicesOfAnAccountMeet() throws {
        let pair = try SessionPair().connected()
        #expect(pair.client.peerDeviceID == pair.server.context.deviceID)
        #expect(pair.server.peerDeviceID == pair.client.context.deviceID)
        #expect(pair.client.peerCertificate == pair.server.context.identity.certificate.der)
        for end in [pair.client, pair.server] {
            #expect(end.negotiatedProtocol == "baton/1")
            #expect(end.negotiatedVersion == "TLSv1.3")
            let first = shim_machine_has_aes() != 0 ? "TLS_AES_128_GCM_SHA256" : "TLS_CHACHA20_POLY1305_SHA256"
            #expect(end.negotiatedCipher == first)
            #expect(try end.handshake())
        }
        try pair.client.write(Array("to the server".utf8))
        try pair.server.write(Array("to the client".utf8))
        converse(pair.client, pair.server)
        #expect(try pair.server.readAll().bytes == Array("to the server".utf8))
        #expect(try pair.client.readAll().bytes == Array("to the client".utf8))
    }

    /// The key exchange of this machine's library: from OpenSSL 3.5 on the one that resists quantum computers.
    @Test func theBestKeyExchangeThatBothEndsHaveIsUsed() throws {
        let best = OpenSSL_version_num() >= 0x3050_0000 ? "x25519mlkem768" : "x25519"
        let account = try TestAuthority()
        func ends(_ restrict: (SessionPair) -> Void = { _ in }) throws -> SessionPair {
            let pair = try SessionPair(client: account.device().context(), server: account.device().context())
            restrict(pair)
            return try pair.connected()
        }
        func agree(_ group: String, _ pair: SessionPair) throws {
            #expect(pair.client.negotiatedGroup?.lowercased() == group)
            #expect(pair.server.negotiatedGroup?.lowercased() == group)
            try pair.client.write([1, 2, 3])
            converse(pair.client, pair.server)
            #expect(try pair.server.readAll().bytes == [1, 2, 3])
        }
        let pair = try SessionPair()
        #expect(pair.client.negotiatedGroup == nil)
        try agree(best, pair.connected())
        // One end has an older library: its list lacks the new group.
        let old = "X25519:P-256"
        try agree("x25519", ends { $0.client.offerOnly(old) })
        try agree("x25519", ends { $0.server.offerOnly(old) })
        // A client has the new group and sends another share: the server asks for the new one, and does not accept
        // less.
        try agree(best, ends { if best != "x25519" { $0.client.offerOnly("X25519:X25519MLKEM768") } })
        try agree("secp256r1", ends { $0.client.offerOnly("P-256") })
    }

    /// A client of an account with older libraries is answered at once, without a second ClientHello.
    @Test func noRoundTripIsAddedForAnOlderServer() throws {
        let pair = try SessionPair()
        pair.server.offerOnly("X25519:P-256")
        #expect(try !pair.client.handshake())
        try pair.server.give(pair.client.takeOutput(1 << 16))
        #expect(try !pair.server.handshake())
        // A HelloRetryRequest would come alone, without a certificate.
        try pair.client.give(pair.server.takeOutput(1 << 16))
        #expect(try pair.client.handshake())
    }

    @Test func nothingIsKnownOfThePeerBeforeTheEnd() throws {
        let pair = try SessionPair()
        #expect(pair.server.peerDeviceID == nil)
        #expect(pair.server.peerCertificate == nil)
        #expect(try !pair.client.handshake())
        #expect(pair.client.hasOutput)
        #expect(throws: TLSError.self) { try pair.client.write([1]) }
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 16, alignment: 1)
        defer { buffer.deallocate() }
        #expect(try pair.server.read(into: buffer) == .incomplete)
    }

    @Test func serverKeepsTheNameOfTheHello() throws {
        let account = try TestAuthority()
        let pair = try SessionPair(
            client: account.device().context(), server: account.device().context(), serverName: "qazl4.baton.invalid")
        #expect(pair.server.receivedServerName == nil)
        _ = try pair.connected()
        #expect(pair.server.receivedServerName == "qazl4.baton.invalid")
        #expect(pair.client.receivedServerName == nil)
    }

    @Test func p256LeavesAreTaken() throws {
        for (client, server) in [(KeyKind.p256, KeyKind.ed25519), (.ed25519, .p256), (.p256, .p256)] {
            let pair = try SessionPair(clientKey: client, serverKey: server).connected()
            #expect(pair.server.peerDeviceID == pair.client.context.deviceID)
        }
    }

    @Test func timesOfCertificatesAreNotChecked() throws {
        let account = try TestAuthority()
        let expired = LeafProfile(notBefore: "20000101000000Z", notAfter: "20010101000000Z")
        let early = LeafProfile(notBefore: "99980101000000Z", notAfter: "99991231235959Z")
        let pair = try SessionPair(
            client: account.device(.ed25519, expired).context(), server: account.device(.ed25519, early).context())
        _ = try pair.connected()
    }

    @Test func byteByByte() throws {
        let pair = try SessionPair()
        let errors = converse(pair.client, pair.server, piece: 1)
        #expect(errors.one == nil && errors.other == nil)
        let sent = (0..<40000).map { UInt8(truncatingIfNeeded: $0 / 7) }
        try pair.client.write(sent)
        var got: [UInt8] = []
        while pair.client.hasOutput {
            try pair.server.give(pair.client.takeOutput(1))
            got += try pair.server.readAll().bytes
        }
        #expect(got == sent)
    }

    @Test func oneContextServesManyThreads() async throws {
        let account = try TestAuthority()
        let (one, other) = (try account.device().context(), try account.device().context())
        try await withThrowingTaskGroup(of: Bool.self) { group in
            for _ in 0..<4 {
                group.addTask {
                    for _ in 0..<10 { _ = try SessionPair(client: one, server: other).connected() }
                    return true
                }
            }
            for try await isDone in group { #expect(isDone) }
        }
    }

    @Test func noTicketsAndNoResumption() throws {
        let pair = try SessionPair().connected()
        // Anything that the server sent after the handshake would be here, such as a ticket.
        #expect(!pair.server.hasOutput)
        #expect(SSL_session_reused(pair.client.pointer) == 0)
        #expect(SSL_SESSION_is_resumable(SSL_get_session(pair.client.pointer)) == 0)
        #expect(SSL_CTX_get_num_tickets(pair.server.context.pointer) == 0)
        #expect(SSL_CTX_get_max_early_data(pair.server.context.pointer) == 0)
    }

    @Test func onlyTheLeafIsSent() throws {
        let pair = try SessionPair().connected()
        for end in [pair.client, pair.server] {
            let chain = SSL_get_peer_cert_chain(end.pointer)
            // A client's view holds the leaf, a server's leaves it out (SSL_get_peer_cert_chain(3)).
            #expect(OPENSSL_sk_num(chain) <= (end.isServer ? 0 : 1))
        }
    }

    @Test func namesThatCannotStandInTLSAreRefused() throws {
        let context = try TestAuthority().device().context()
        let id = context.deviceID
        for (name, peer) in [
            ("", id), (String(repeating: "a", count: 256), id), ("a b", id), ("é", id), ("a\0b", id),
            ("fine", ""), ("fine", id.uppercased()), ("fine", id + "a"), ("fine", "*" + id.dropFirst()),
        ] {
            let error = #expect(throws: TLSError.self) {
                try TLSSession(client: context, serverName: name, expectedPeer: peer)
            }
            #expect(error?.code == .invalidName)
        }
        _ = try TLSSession(client: context, serverName: String(repeating: "a", count: 255), expectedPeer: id)
    }
}
