// SPDX-License-Identifier: Apache-2.0

import BatonProtocol

@testable import BatonAccount
@testable import BatonTLS

/// The peer that answers a node's connection: an attacker that repeats an announcement on another link can say
/// anything.
///
/// The first byte of an input is the size of the pieces; its highest bit says that the rest is the whole answer. Else
/// an honest server of this account answers, or with the second bit a stranger's. The rest are changes of its answer,
/// three bytes each: the place, and the number that is added to the byte there.
enum TLSClientTarget: FuzzTarget {
    static let name = "tls-client"
    static let maximumLength = 4096

    private static let contexts = {
        do {
            let fixture = AdvertisementTarget.Fixture.shared
            return (
                client: try TLSTarget.makeContext(fixture.other), member: try TLSTarget.makeContext(fixture.identity),
                stranger: try TLSTarget.makeContext(DeviceIdentity(issuedBy: AccountSecrets(AccountKey())))
            )
        } catch { fatalError("\(error)") }
    }()
    // reason for unsafe: one input at a time uses them
    nonisolated(unsafe) private static let plain = UnsafeMutableRawBufferPointer.allocate(
        byteCount: 16_384, alignment: 16)
    nonisolated(unsafe) private static let wire = UnsafeMutableRawBufferPointer.allocate(
        byteCount: 65_536, alignment: 16)

    static func run(_ bytes: UnsafeRawBufferPointer) throws {
        var input = Input(bytes)
        let first = input.byte()
        let (size, isWhole, isStranger) = (Int(first & 0x3F), first & 0x80 != 0, first & 0x40 != 0)
        let expected = AdvertisementTarget.Fixture.shared.identity.id.description
        let client = try TLSSession(
            client: contexts.client, serverName: "a.baton.invalid", expectedPeer: expected)
        expect(try !client.handshake(), "a handshake without an answer")
        let hello = Array(wire[..<client.nextOutput(into: wire)])
        var said: [UInt8]
        if isWhole {
            said = input.remainder()
        } else {
            said = try answer(to: hello, from: isStranger ? contexts.stranger : contexts.member)
            while !input.isEmpty, !said.isEmpty {
                said[Int(input.number(2)) % said.count] &+= input.byte()
            }
        }
        var written = 0
        do throws(TLSError) {
            for piece in said.pieces(of: size) {
                // Not `withUnsafeBytes`, which does not carry the type of the error.
                _ = try piece.withUnsafeBufferPointer { (bytes) throws(TLSError) in
                    try client.receive(
                        UnsafeRawBufferPointer(bytes), into: { plain },
                        deliver: { _ in fatalError("bytes were delivered that no device has sent") })
                }
                _ = try client.handshake()
                written += client.nextOutput(into: wire)
            }
        } catch {
            expect(!error.description.isEmpty, "an error without a sentence")
        }
        written += client.nextOutput(into: wire)
        expect(written < 16_384, "\(written) bytes for who answers")
        let known = client.peerDeviceID
        expect(known == nil || known == expected && !isWhole && !isStranger, "a stranger is taken for a device")
    }

    private static func answer(to hello: [UInt8], from context: TLSContext) throws -> [UInt8] {
        let server = try TLSSession(server: context)
        _ = try hello.withUnsafeBufferPointer { (bytes) throws(TLSError) in
            try server.receive(UnsafeRawBufferPointer(bytes), into: { plain }, deliver: { _ in true })
        }
        _ = try server.handshake()
        return Array(wire[..<server.nextOutput(into: wire)])
    }

    static func seeds() throws -> [[UInt8]] {
        let hello = try TLSSession(
            client: contexts.client, serverName: "a.baton.invalid",
            expectedPeer: AdvertisementTarget.Fixture.shared.identity.id.description)
        _ = try hello.handshake()
        let flight = try answer(to: Array(wire[..<hello.nextOutput(into: wire)]), from: contexts.member)
        // One for another ClientHello; an alert, a record of another kind, another protocol; both honest ones, in
        // pieces too.
        return [
            [0x80] + flight, [0x81] + flight, [0x80, 21, 3, 3, 0, 2, 2, 40], [0x80, 23, 3, 3, 0, 1, 0],
            [0x80] + Array("HTTP/1.1 200 OK\r\n\r\n".utf8), [0], [1], [0x40], [0x41],
            [0, 0, 5, 1], [0, 0, 43, 1], [0, 0, 100, 1], [0, 2, 0, 7], [0x40, 0, 9, 3],
        ]
    }
}
