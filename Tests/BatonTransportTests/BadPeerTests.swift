// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import BatonTestSupport
import Testing

@testable import BatonTransport

@Suite("A peer that breaks the protocol", .timeLimit(.minutes(3)))
struct BadPeerTests {
    @Test(
        "Garbage instead of HELLO", arguments: [Role.dialer, .acceptor], ["GET / HTTP/1.1\r\n\r\n", "SSH-2.0-x\r\n"])
    func garbage(role: Role, text: String) async throws {
        let (peer, connection) = try await RawPeer.facing(role)
        async let opening = failure { _ = try await connection.open([]) }
        async let ready = failure { try await connection.ready() }
        try await peer.send(Array(text.utf8))
        #expect(await ready == .protocolViolation)
        #expect(await opening == .protocolViolation)
        #expect(await connection.ended().code == .protocolViolation)
        try await eventually("the socket is closed") { await peer.hasEnded }
        #expect(await peer.goAwayCode == 4)
    }

    @Test("Silence, or half a HELLO, until the deadline", arguments: [0, 1, 9, 40])
    func silence(count: Int) async throws {
        var limits = Limits()
        limits.helloDeadline = .milliseconds(300)
        let (peer, connection) = try await RawPeer.facing(.acceptor, limits: limits)
        // On a slow machine the deadline may have passed before.
        if count > 0 { try? await peer.send(Array(Frame.hello().prefix(count))) }
        #expect(await failure { try await connection.ready() } == .connectionLost)
        try await eventually("the socket is closed") { await peer.hasEnded }
        #expect(await peer.goAwayCode == 9)
    }

    @Test("The error for another version names it, and the side to update")
    func versions() async throws {
        for (version, side) in [(UInt16(2), "here"), (UInt16(0), "there")] {
            let (peer, connection) = try await RawPeer.facing(.acceptor)
            try await peer.send(Frame.hello(highest: version, lowest: version))
            let error = await connection.ended()
            #expect(error.code == .protocolViolation)
            #expect(error.message.hasSuffix("update Baton \(side)"), "\(error)")
            try await eventually("the socket is closed") { await peer.hasEnded }
            #expect(await peer.goAwayCode == 11)
        }
    }

    @Test(
        "A frame that breaks the rules wakes waiting tasks, and the peer gets the code",
        arguments: [
            // An oversized frame, an unknown type, an OPEN of the wrong parity, DATA for a stream that was never
            // opened, and a second HELLO.
            (Array(Frame.make(0x04, stream: 1).dropLast(4)) + [0xFF, 0xFF, 0xFF, 0xFF], 6),
            (Frame.make(0x66), 4), (Frame.make(0x02, stream: 3), 4), (Frame.make(0x04, stream: 9, [1]), 4),
            (Frame.hello(), 4),
        ] as [([UInt8], UInt8)])
    func badFrames(frame: [UInt8], code: UInt8) async throws {
        let (peer, connection) = try await RawPeer.facing(.dialer)
        try await peer.send(Frame.hello())
        let stream = try await connection.open([])
        async let waiting = failure { _ = try await stream.response() }
        try await peer.send(frame)
        #expect(await waiting == .protocolViolation)
        try await eventually("the socket is closed") { await peer.hasEnded }
        #expect(await peer.goAwayCode == code)
    }

    @Test("More bytes than credit")
    func beyondCredit() async throws {
        let (peer, connection) = try await RawPeer.facing(
            .acceptor, limits: .windows(stream: 1000, connection: 4000))
        try await peer.send(Frame.hello() + Frame.make(0x02, stream: 1, [1]))
        try await peer.send(Frame.make(0x04, stream: 1, [UInt8](repeating: 0, count: 1000)))
        let iterator = connection.incoming.makeAsyncIterator()
        let incoming = try #require(await iterator.next())
        #expect(incoming.request == [1])
        try await peer.send(Frame.make(0x04, stream: 1, [0]))
        #expect(await connection.ended().code == .protocolViolation)
        try await eventually("the socket is closed") { await peer.hasEnded }
        #expect(await peer.goAwayCode == 5)
    }
}
