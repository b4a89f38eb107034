// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import Testing

@Suite struct HelloTests {
    @Test func layoutIsTheOneSpecified() {
        let lone = Lone(.dialer, hello: nil)
        let expected: [UInt8] = [
            0x01, 0x00, 0, 0, 0, 0, 0, 0, 0, 0x38,  // header: HELLO, stream 0, 56 bytes
            0x42, 0x41, 0x54, 0x4E,  // BATN
            0x00, 0x01, 0x00, 0x01,  // versions
            0, 0, 0, 0, 0, 0, 0, 0,  // features
            0, 0, 0, 0, 0, 0, 0, 0,  // revocation list
            0x00, 0x01, 0x00, 0x00,  // DATA frames of 64 KiB
            0x00, 0x00, 0x00, 0x80,  // 128 streams
            0x00, 0x00, 0x00, 0x20,  // 32 unanswered
            0, 0, 0, 0,  // reserved
            0, 0, 0, 0, 0x00, 0x40, 0x00, 0x00,  // 4 MiB
            0, 0, 0, 0, 0x00, 0x10, 0x00, 0x00,  // 1 MiB
        ]
        #expect(lone.outputBytes() == expected)
        #expect(!lone.hasOutput)
    }

    @Test func fieldsArrive() throws {
        let now = Instant(nanoseconds: 5)
        var session = Session(role: .dialer, revocationNumber: 77, now: now)
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: 256, alignment: 1)
        defer { memory.deallocate() }
        let count = session.nextOutput(into: memory, now: now)
        let lone = Lone(.acceptor, hello: nil)
        lone.receive(Array(memory[..<count]))
        let peer = try #require(lone.peer)
        #expect(peer.revocationNumber == 77)
        #expect(peer.streamCredit == 1 << 20)
        #expect(lone.takeEvents() == [.helloReceived(peer)])
    }

    @Test func appendedFieldsAreIgnoredUpToFourKibibytes() {
        let room = 4096 - 56
        let atBound = Lone(hello: .hello(appended: Array(repeating: 0xAA, count: room)))
        #expect(atBound.error == nil)
        #expect(atBound.session.peer != nil)
        let above = Lone(hello: nil)
        above.receive(.hello(appended: Array(repeating: 0xAA, count: room + 1)))
        #expect(above.error == .frameTooLarge(type: 1, length: 4097))
    }

    @Test func oversizedIsRefusedByItsHeaderAlone() {
        let lone = Lone(hello: nil)
        lone.receive([1, 0, 0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF])
        #expect(lone.error == .frameTooLarge(type: 1, length: 0xFFFF_FFFF))
    }

    @Test func comesByteByByte() {
        let lone = Lone(hello: nil)
        for byte in WireFrame.hello().bytes { lone.receive([byte]) }
        #expect(lone.error == nil)
        #expect(lone.peer != nil)
    }

    @Test func deadlineIsFiveSeconds() {
        let lone = Lone(hello: nil)
        #expect(lone.session.nextTimeout() == lone.now + .seconds(5))
        lone.receive([1, 0, 0])  // a part of it does not count
        lone.wait(.seconds(5) - .nanoseconds(1))
        lone.session.handleTimeout(now: lone.now)
        #expect(lone.session.failure == nil)
        lone.wait(.nanoseconds(1))
        lone.session.handleTimeout(now: lone.now)
        #expect(lone.takeEvents() == [.dead(.helloTimeout)])
        #expect(lone.session.nextTimeout() == nil)
        #expect(lone.output().map(\.type) == [1, 10])
    }

    @Test func secondIsFatal() {
        let lone = Lone()
        lone.receive(.hello())
        #expect(lone.error == .helloRepeated)
    }

    @Test(arguments: [UInt8](2...10) + [0, 11, 0x47, 255])
    func anythingElseFirstIsFatal(type: UInt8) {
        let lone = Lone(hello: nil)
        lone.receive(WireFrame(type: type, flags: 0x80, stream: 1, payload: [0, 0, 0, 0, 0, 0, 0, 0]))
        #expect(lone.error == .notBaton)
    }

    @Test func otherProtocolsAreTold() {
        let http = Lone(hello: nil)
        http.receive(Array("GET / HTTP/1.1\r\n\r\n".utf8))
        #expect(http.error == .notBaton)
        let wrongMagic = Lone(hello: nil)
        wrongMagic.receive(WireFrame(type: 1, payload: Array("NTAB".utf8) + Array(repeating: 0, count: 52)))
        #expect(wrongMagic.error == .notBaton)
        let misplaced = Lone(hello: nil)
        var hello = WireFrame.hello()
        hello.stream = 1
        misplaced.receive(hello)
        #expect(misplaced.error == .frameMisplaced(type: 1, stream: 1))
    }

    @Test func versionsAreNegotiated() {
        #expect(Lone(hello: .hello(version: 9, minimum: 1)).error == nil)
        #expect(Lone(hello: .hello(version: 0, minimum: 0)).error == .peerTooOld(0))
        #expect(Lone(hello: .hello(version: 3, minimum: 2)).error == .peerTooNew(2))
        #expect(Lone(hello: .hello(version: 1, minimum: 2)).error == .helloMalformed)
        // The versions are checked even if the rest has another layout.
        let short = WireFrame(type: 1, payload: Array("BATN".utf8) + [0, 9, 0, 5])
        #expect(Lone(hello: short).error == .peerTooNew(5))
    }

    @Test(arguments: 0..<56) func truncatedIsRefused(length: Int) {
        var hello = WireFrame.hello()
        hello.payload.removeLast(56 - length)
        let lone = Lone(hello: nil)
        lone.receive(hello)
        #expect(lone.error == (length < 4 ? .notBaton : .helloMalformed))
    }

    @Test func leastLimitsAreDemanded() {
        #expect(Lone(hello: .hello(dataFrame: 16_384)).error == nil)
        #expect(Lone(hello: .hello(dataFrame: 16_383)).error == .helloLimits)
        #expect(Lone(hello: .hello(connection: 1 << 62, stream: 1 << 62)).error == nil)
        #expect(Lone(hello: .hello(connection: 1 << 62 + 1)).error == .helloLimits)
        #expect(Lone(hello: .hello(stream: .max)).error == .helloLimits)
        // The least that an acceptor must grant, because the dialer may have used it already.
        #expect(Lone(.dialer, hello: .hello(streams: 8, unanswered: 8)).error == nil)
        #expect(Lone(.dialer, hello: .hello(streams: 7, unanswered: 8)).error == .helloLimits)
        #expect(Lone(.dialer, hello: .hello(streams: 8, unanswered: 7)).error == .helloLimits)
        #expect(Lone(.acceptor, hello: .hello(streams: 0, unanswered: 0)).error == nil)
    }

    @Test func dialerOpensAheadOfIt() throws {
        let lone = Lone(.dialer, hello: nil)
        for index in 0..<8 {
            let id = try lone.session.open(Buffer(1), now: lone.now)
            #expect(id.rawValue == UInt32(2 * index + 1))
            lone.session.send(id, Buffer(9))
        }
        #expect(throws: StreamOpenError.helloAwaited) { try lone.session.open(Buffer(1), now: lone.now) }
        #expect(lone.output().map(\.type) == [1] + Array(repeating: 2, count: 8))
        lone.receive(.hello())
        #expect(lone.output().filter { $0.type == 4 }.map(\.stream) == [1, 3, 5, 7, 9, 11, 13, 15])
        #expect(try lone.session.open(Buffer(1), now: lone.now) == 17)
    }

    @Test func acceptorWaitsForIt() throws {
        let lone = Lone(.acceptor, hello: nil)
        #expect(throws: StreamOpenError.helloAwaited) { try lone.session.open(Buffer(1), now: lone.now) }
        lone.receive(.hello())
        #expect(try lone.session.open(Buffer(1), now: lone.now) == 2)
    }
}
