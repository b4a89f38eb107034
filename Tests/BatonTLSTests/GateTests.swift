// SPDX-License-Identifier: Apache-2.0

import COpenSSL
import Synchronization
import Testing

@testable import BatonTLS

/// The gate: a refused client gets no byte, and nothing else of its bytes is looked at.
@Suite struct GateTests {
    let account: TestAuthority

    init() throws {
        account = try TestAuthority()
    }

    /// The names that a gate was asked about.
    private final class Log: Sendable {
        let names = Mutex<[String?]>([])
    }

    private func server(admitting names: Set<String?>, log: Log = Log()) throws -> TLSSession {
        let context = try account.device().context(gate: { name in
            log.names.withLock { $0.append(name) }
            return names.contains(name) ? 42 : nil
        })
        return try TLSSession(server: context)
    }

    private func client(of server: TLSSession, saying name: String) throws -> TLSSession {
        try TLSSession(
            client: account.device().context(), serverName: name, expectedPeer: server.context.deviceID)
    }

    @Test func whoIsAdmittedGoesOnAsEver() throws {
        let log = Log()
        let server = try server(admitting: ["good.baton.invalid"], log: log)
        let client = try client(of: server, saying: "good.baton.invalid")
        let errors = converse(client, server)
        #expect(errors.one == nil && errors.other == nil)
        #expect(try server.handshake() && client.handshake())
        #expect(server.admission == 42 && client.admission == nil)
        #expect(log.names.withLock { $0 } == ["good.baton.invalid"])
        try server.write([1, 2, 3])
        converse(client, server)
        #expect(try client.readAll().bytes == [1, 2, 3])
    }

    @Test func whoIsNotGetsNoByte() throws {
        let server = try server(admitting: ["good.baton.invalid"])
        let client = try client(of: server, saying: "bad.baton.invalid")
        let errors = converse(client, server)
        #expect(errors.other?.tlsCode == .notAdmitted)
        #expect(errors.one == nil)
        #expect(!server.hasOutput && server.admission == nil && server.receivedServerName == nil)
        #expect(try !client.handshake())
        // Nor does it get one later.
        #expect(throws: TLSError.self) { try server.handshake() }
        server.shutdown()
        #expect(!server.hasOutput)
    }

    @Test func garbageGetsNoByte() throws {
        let openServer = try account.device().context()
        var answered = 0
        for bytes: [UInt8] in [
            Array("GET / HTTP/1.1\r\nHost: a\r\n\r\n".utf8), Array("SSH-2.0-probe\r\n".utf8),
            [UInt8](repeating: 0, count: 300), [UInt8](repeating: 0xFF, count: 300),
            // Records that TLS answers with an alert: data, a length that is too large, an empty one, a ClientHello cut
            // short.
            [0x17, 3, 3, 0, 5, 1, 2, 3, 4, 5], [0x16, 3, 1, 0xFF, 0xFF, 1, 0, 0], [0x16, 3, 1, 0, 0],
            [0x15, 3, 3, 0, 2, 2, 40], [0x16, 3, 1, 0, 5, 1, 0, 0, 1, 0],
            // The beginning of SSL 2.
            [0x80, 0x1F, 1, 0, 2, 0, 6, 0, 0, 0, 16] + [UInt8](repeating: 7, count: 22),
        ] {
            for server in [try server(admitting: []), try TLSSession(server: openServer)] {
                for byte in bytes {
                    try? server.give([byte])
                    _ = try? server.handshake()
                }
                server.receiveEnd()
                #expect(throws: TLSError.self) { try server.handshake() }
                if server.context.gate == nil {
                    answered += server.hasOutput ? 1 : 0
                } else {
                    #expect(!server.hasOutput, "\(bytes)")
                }
            }
        }
        // Without a gate, most of these are answered with an alert.
        #expect(answered > 5)
    }

    @Test func oldVersionsAndOtherProtocolsGetNoByte() throws {
        for settings in [
            ForeignPeer.Settings(version: TLS1_2_VERSION), ForeignPeer.Settings(protocols: [2, 0x68, 0x32]),
            ForeignPeer.Settings(protocols: []), ForeignPeer.Settings(),
        ] {
            let server = try server(admitting: [])
            let foreign = try ForeignPeer(settings)
            let errors = converse(server, foreign)
            #expect(errors.one?.tlsCode == .notAdmitted)
            #expect(foreign.receivedAlert == 0)
            #expect(!server.hasOutput)
        }
    }

    @Test(.enabled(if: OpenSSLCommand.path != nil, "the openssl command is not installed"))
    func aSecondClientHelloIsOfTheSameToken() throws {
        // The server does not accept this key share, and asks for another ClientHello (RFC 8446, section 4.1.4).
        let log = Log()
        let session = try server(admitting: ["good.baton.invalid"], log: log)
        let client = try OpenSSLCommand(
            "s_client", as: account.device(), trusting: account,
            ["-alpn", "baton/1", "-servername", "good.baton.invalid", "-groups", "P-384:X25519"])
        try client.drive(session) { _, _ in session.isComplete }
        #expect(session.admission == 42)
        #expect(log.names.withLock { $0 } == ["good.baton.invalid"])
    }
}
