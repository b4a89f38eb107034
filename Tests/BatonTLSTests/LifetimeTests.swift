// SPDX-License-Identifier: Apache-2.0

import COpenSSL
import Glibc
import Testing

@testable import BatonTLS

/// Every OpenSSL object is freed with its Swift owner.
@Suite(.serialized) struct LifetimeTests {
    /// Counts freed SSLs: OpenSSL calls the index's free function for each marked one.
    private enum Marks {
        nonisolated(unsafe) static let mark = UnsafeMutableRawPointer(bitPattern: 0x5EED)  // reason: only an address
        nonisolated(unsafe) static var freed = 0  // reason: marks are set and freed by one serialized test
        static let index = CRYPTO_get_ex_new_index(
            CRYPTO_EX_INDEX_SSL, 0, nil, nil, nil,
            { _, data, _, _, _, _ in
                if data == Marks.mark { Marks.freed += 1 }
            })
    }

    @Test func sessionsFreeTheirSSLAndBIO() throws {
        let account = try TestAuthority()
        let (one, other) = (try account.device().context(), try account.device().context())
        weak var lastBIO: MemoryBIO?
        let count = 50
        for round in 0..<count {
            let pair = try SessionPair(client: one, server: other)
            // Sessions are freed in every stage: untouched, in the handshake, complete, closed, failed.
            if round % 5 > 0 { _ = try pair.client.handshake() }
            if round % 5 > 1 { _ = try pair.connected() }
            if round % 5 == 3 { pair.client.shutdown() }
            if round % 5 == 4 {
                try pair.server.give([UInt8](repeating: 0xFF, count: 50))
                #expect(throws: TLSError.self) { try pair.server.readAll() }
            }
            for end in [pair.client, pair.server] {
                SSL_set_ex_data(end.pointer, Marks.index, Marks.mark)
            }
            lastBIO = pair.client.bio
        }
        #expect(Marks.freed == 2 * count)
        #expect(lastBIO == nil)
    }

    @Test func contextsAndIdentitiesAreFreed() throws {
        weak var context: TLSContext?
        weak var certificate: Certificate?
        weak var key: PrivateKey?
        do {
            let pair = try SessionPair().connected()
            context = pair.client.context
            certificate = context?.identity.certificate
            key = context?.identity.privateKey
            #expect(context != nil && certificate != nil && key != nil)
        }
        #expect(context == nil && certificate == nil && key == nil)
    }

    @Test func manySessionsDoNotGrowTheProcess() throws {
        let account = try TestAuthority()
        let client = try account.device()
        let server = try account.device().context()
        let buffer = [UInt8](repeating: 1, count: 200_000)
        func round() throws {
            let pair = try SessionPair(client: client.context(), server: server).connected()
            try pair.client.write(buffer)
            converse(pair.client, pair.server)
            _ = try pair.server.readAll()
            let stranger = try TLSSession(client: server, serverName: "x", expectedPeer: client.deviceID)
            converse(stranger, try TLSSession(server: server))
        }
        for _ in 0..<60 { try round() }
        let before = Self.residentBytes()
        for _ in 0..<300 { try round() }
        // A leaked session is 50 KiB, and 1,200 of them 60 MiB. Other suites run at the same time and need memory.
        #expect(Self.residentBytes() - before < 30 << 20)
    }

    private static func residentBytes() -> Int {
        // The second field of statm is the resident set, in pages (proc(5)).
        guard let file = fopen("/proc/self/statm", "r") else { return 0 }
        defer { fclose(file) }
        var line = [UInt8](repeating: 0, count: 200)
        let count = fread(&line, 1, line.count, file)
        let fields = String(decoding: line.prefix(count), as: UTF8.self).split(separator: " ")
        return (fields.count > 1 ? Int(fields[1]) ?? 0 : 0) * Int(sysconf(Int32(_SC_PAGESIZE)))
    }
}
