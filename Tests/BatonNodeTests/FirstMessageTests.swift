// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonProtocol
import BatonTLS
import BatonTestSupport
import Testing

@testable import BatonNode

/// What is told of a first message without TLS: never more than TLS would tell.
@Suite("First messages")
struct FirstMessageTests {
    private func hello(_ serverName: String) throws -> [UInt8] {
        let account = try TestAccount(devices: 2)
        let session = try TLSSession(
            client: TLSContext(identity: TLSIdentity(account.devices[1].account.identity)), serverName: serverName,
            expectedPeer: account.devices[0].id.description)
        _ = try session.handshake()
        return [UInt8](unsafeUninitializedCapacity: 4096) { buffer, count in
            count = session.nextOutput(into: UnsafeMutableRawBufferPointer(buffer))
        }
    }

    private func read(_ bytes: some Collection<UInt8>) -> FirstMessage {
        Array(bytes).withUnsafeBytes { FirstMessage($0) }
    }

    private let token = String(repeating: "a2", count: GateToken.labelCount / 2) + GateToken.suffix

    @Test("A ClientHello is unclear until all of it is there, and shows its token then, whatever comes behind it")
    func whole() throws {
        let hello = try hello(token)
        // The headers of the record and of the message tell how long it is.
        for count in 0..<hello.count {
            #expect(read(hello.prefix(count)) == .unclear(until: count < 9 ? 9 : hello.count), "\(count)")
        }
        #expect(read(hello) == .token(token) && read(hello + [0x14, 3, 3]) == .token(token))
        // What is longer than a token in the end has its form: the gate judges what TLS reads.
        #expect(read(try self.hello("x" + token)) == .token(token))
    }

    @Test("What is no ClientHello, or has no token, is a stranger's, from the first byte that shows it")
    func strangers() throws {
        let hello = try hello("example.org")
        #expect(read(hello) == .foreign && read(hello.dropLast()) == .unclear(until: hello.count))
        #expect(read(try self.hello(GateToken.suffix.dropFirst() + GateToken.suffix)) != .token(token))
        let short = try self.hello("short" + GateToken.suffix)
        #expect(read(short) != .unclear(until: short.count))
        for bytes in [Array("GET /".utf8), [0], [22, 2], [22, 3, 1, 0, 200, 2], [21, 3, 3, 0, 2, 1, 0]] {
            #expect(read(bytes) == .foreign, "\(bytes)")
        }
    }

    @Test("What is spread over records is a stranger's; what names several is left to TLS")
    func undecided() throws {
        let hello = try hello(token)
        // The handshake message of the first record goes on in another.
        var cut = Array(hello.prefix(105))
        (cut[3], cut[4]) = (0, 100)
        #expect(read(cut) == .foreign && read(cut.prefix(9)) == .foreign)
        // Two names, somewhere in a message of the right form.
        let names = Array((token + token).utf8)
        let length = names.count
        let message: [UInt8] = [22, 3, 1, 0, UInt8(length + 4), 1, 0, 0, UInt8(length)] + names
        #expect(read(message) == .undecided && read(message.dropLast()) == .unclear(until: message.count))
        // Bytes that no name has, in its place.
        let odd: [UInt8] = [22, 3, 1, 0, 70, 1, 0, 0, 66] + [UInt8](repeating: 0xFF, count: 52) + GateToken.suffix.utf8
        #expect(read(odd) == .foreign)
        #expect(read([22, 3, 1, 0, 18, 1, 0, 0, 14] + GateToken.suffix.utf8) == .foreign)
    }

    @Test("So many places are looked at as a token's, and whoever sends more that begin like one is a stranger")
    func dots() {
        func message(dots: Int) -> [UInt8] {
            let content = [UInt8](repeating: UInt8(ascii: "."), count: dots) + Array(token.utf8)
            return [22, 3, 1, 0, UInt8(content.count + 4), 1, 0, 0, UInt8(content.count)] + content
        }
        #expect(read(message(dots: 63)) == .token(token))
        #expect(read(message(dots: 64)) == .foreign)
    }
}
