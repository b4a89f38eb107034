// SPDX-License-Identifier: Apache-2.0

import BatonProtocol

@testable import BatonAccount
@testable import BatonNode
@testable import BatonTLS

/// The first bytes of a stranger on the port: ClientHello, server name, and everything else that the TLS session reads
/// before it knows the peer. A check before TLS refuses nobody whom TLS and the gate would let in.
///
/// The first byte of an input is the size of the pieces. Its highest bit opens the gate to everybody, so that the code
/// behind it is reached as well.
enum TLSTarget: FuzzTarget {
    static let name = "tls"
    static let maximumLength = 4096

    private static let contexts = {
        do {
            let identity = AdvertisementTarget.Fixture.shared.identity
            return (
                guarded: try makeContext(identity) { gate.admit($0, uptime: .seconds(2)) },
                open: try makeContext(identity) { _ in 0 }
            )
        } catch { fatalError("\(error)") }
    }()
    private static let nonce = [UInt8](repeating: 7, count: GateToken.nonceCount)
    // reason for unsafe: one input at a time uses it
    nonisolated(unsafe) private static var gate = freshGate()
    // reason for unsafe: one input at a time uses them
    nonisolated(unsafe) private static let plain = UnsafeMutableRawBufferPointer.allocate(
        byteCount: 16_384, alignment: 16)
    nonisolated(unsafe) private static let wire = UnsafeMutableRawBufferPointer.allocate(
        byteCount: 65_536, alignment: 16)

    static func run(_ bytes: UnsafeRawBufferPointer) throws {
        var input = Input(bytes)
        let first = input.byte()
        let (size, isOpen) = (Int(first & 0x7F), first & 0x80 != 0)
        // A token of the seeds is good in each input.
        gate = freshGate()
        let said = input.remainder()
        checkFirstMessage(said)
        let session = try TLSSession(server: isOpen ? contexts.open : contexts.guarded)
        var written = 0
        do throws(TLSError) {
            for piece in said.pieces(of: size) {
                // Not `withUnsafeBytes`, which does not carry the type of the error.
                let result = try piece.withUnsafeBufferPointer { (bytes) throws(TLSError) in
                    try session.receive(
                        UnsafeRawBufferPointer(bytes), into: { plain },
                        deliver: { _ in fatalError("a stranger's bytes were delivered") })
                }
                expect(result == .incomplete || result == .closed, "a stranger was read")
                expect(try !session.handshake(), "a stranger's handshake is complete")
                written += session.nextOutput(into: wire)
            }
        } catch {
            expect(!error.description.isEmpty, "an error without a sentence")
        }
        written += session.nextOutput(into: wire)
        expect(written < 65_536, "\(written) bytes for a stranger")
        expect(session.admission != nil || written == 0, "\(written) bytes in front of the gate")
        if !isOpen, session.admission != nil, said.first == 22 {
            switch said.withUnsafeBytes({ FirstMessage($0) }) {
            case .unclear, .foreign: fatalError("somebody was let in who would have been sent away")
            case .token(let name):
                var gate = freshGate()
                expect(gate.wouldAdmit(name, uptime: .seconds(2)), "another token is seen: \(name)")
            case .undecided: break
            }
        }
        expect(session.verifiedPeer == nil, "a stranger has an identity")
        expect((session.receivedServerName?.utf8.count ?? 0) <= 255, "a long server name")
    }

    /// The verdict on a prefix: a final verdict stays, and until then the number of missing bytes is known.
    private static func checkFirstMessage(_ said: [UInt8]) {
        let whole = said.withUnsafeBytes { FirstMessage($0) }
        if case .token(let name) = whole {
            expect(
                name.utf8.count == GateToken.labelCount + GateToken.suffix.utf8.count,
                "a token of another form: \(name)")
        }
        var count = 0
        while count <= said.count {
            let part = said.withUnsafeBytes { FirstMessage(UnsafeRawBufferPointer(rebasing: $0[..<count])) }
            guard case .unclear(let until) = part else { return expect(part == whole, "\(part) became \(whole)") }
            expect(until > count && until <= 5 + 0xFFFF, "unclear until \(until) with \(count) bytes")
            // With less than it takes it has to be unclear still, or somebody who is known to be a stranger.
            let less = min(until - 1, said.count)
            let before = said.withUnsafeBytes { FirstMessage(UnsafeRawBufferPointer(rebasing: $0[..<less])) }
            switch before {
            case .unclear, .foreign: break
            case .token, .undecided: fatalError("\(before) before all had come")
            }
            count = until
        }
    }

    private static func freshGate() -> Gate {
        let fixture = AdvertisementTarget.Fixture.shared
        var gate = Gate(device: fixture.identity.id)
        gate.beginPeriod(nonce: nonce, keys: fixture.keys, uptime: .seconds(1))
        return gate
    }

    static func makeContext(_ identity: DeviceIdentity, gate: TLSContext.Gate? = nil) throws -> TLSContext {
        let tls = try identity.certificate.withUnsafeBytes { certificate in
            try identity.authorityCertificate.withUnsafeBytes { authority in
                try identity.privateKey.withUnsafeBytes { key in
                    try TLSIdentity(certificate: certificate, privateKey: key, accountCA: authority)
                }
            }
        }
        return try TLSContext(identity: tls, gate: gate)
    }

    static func seeds() throws -> [[UInt8]] {
        let fixture = AdvertisementTarget.Fixture.shared
        func hello(_ serverName: String) throws -> [UInt8] {
            let client = try TLSSession(
                client: contexts.open, serverName: serverName, expectedPeer: fixture.other.id.description)
            _ = try client.handshake()
            return Array(wire[..<client.nextOutput(into: wire)])
        }
        let stranger = try hello(String(repeating: "a", count: 52) + ".baton.invalid")
        let clientNonce = [UInt8](repeating: 3, count: 16)
        let device = fixture.identity.id
        let token = GateToken.serverName(
            keys: fixture.keys, server: device, gateNonce: nonce, clientNonce: clientNonce)
        // An alert, a record of another kind, another protocol.
        return [
            [0] + (try hello(token)), [0] + stranger, [1] + stranger, [50] + stranger, [0] + stranger.dropLast(20),
            [0x80] + stranger,
            [0x81] + stranger, [0, 21, 3, 3, 0, 2, 2, 40],
            [0, 23, 3, 3, 0, 1, 0], [0] + Array("GET / HTTP/1.1\r\n\r\n".utf8), [0, 22, 3, 1, 0xFF, 0xFF],
        ]
    }
}
