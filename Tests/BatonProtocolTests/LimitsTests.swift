// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import Testing

/// Every bound of `Limits`: the value at the bound passes, and the next one does not.
@Suite struct LimitsTests {
    @Test func openStreams() {
        var limits = Limits()
        limits.openStreams = 10
        let lone = Lone(limits: limits)
        for index in 0..<10 { lone.receive(.open(UInt32(2 * index + 1))) }
        #expect(lone.error == nil)
        // A closed stream no longer counts.
        lone.receive(.reset(1), .open(21))
        #expect(lone.error == nil)
        lone.receive(.open(23))
        #expect(lone.error == .tooManyStreams)
    }

    @Test func openStreamsOfThePeer() throws {
        let lone = Lone(.dialer, hello: .hello(streams: 10))
        for _ in 0..<10 { _ = try lone.session.open(Buffer(1), now: lone.now) }
        #expect(throws: StreamOpenError.tooMuchUnderWay) { try lone.session.open(Buffer(1), now: lone.now) }
        _ = lone.output()
        lone.receive(.reset(3))
        #expect(try lone.session.open(Buffer(1), now: lone.now) == 21)
    }

    @Test func openStreamsOfZeroForbidsThem() {
        var limits = Limits()
        limits.openStreams = 0
        let lone = Lone(.dialer, limits: limits)
        lone.receive(.open(2))
        #expect(lone.error == .tooManyStreams)
    }

    @Test func unansweredRequests() throws {
        var limits = Limits()
        limits.unansweredRequests = 8
        let lone = Lone(limits: limits)
        for index in 0..<8 { lone.receive(.open(UInt32(2 * index + 1))) }
        try lone.session.respond(5, Buffer(1))
        lone.receive(.open(17))
        #expect(lone.error == nil)
        lone.receive(.open(19))
        #expect(lone.error == .tooManyUnanswered)
    }

    @Test func unansweredRequestsOfThePeer() throws {
        let lone = Lone(.dialer, hello: .hello(unanswered: 8))
        for _ in 0..<8 { _ = try lone.session.open(Buffer(1), now: lone.now) }
        #expect(throws: StreamOpenError.tooMuchUnderWay) { try lone.session.open(Buffer(1), now: lone.now) }
        lone.receive(.response(1))
        #expect(try lone.session.open(Buffer(1), now: lone.now) == 17)
    }

    @Test func unreadStreams() throws {
        var limits = Limits()
        limits.unreadStreams = 3
        let lone = Lone(limits: limits)
        for id: UInt32 in [1, 3, 5] {
            lone.receive(.open(id), .data(id, [1]), .end(id))
            try lone.session.respond(StreamID(rawValue: id), Buffer())
            lone.session.finish(StreamID(rawValue: id))
            _ = lone.output()
        }
        _ = lone.takeEvents()
        lone.receive(.open(7))
        #expect(lone.takeEvents().isEmpty)
        #expect(lone.output() == [.reset(7, 6)])
        lone.session.consumed(3, 1, now: lone.now)
        lone.receive(.open(9))
        #expect(lone.takeEvents() == [.closed(3), .opened(9, request: [7])])
    }

    @Test func messageBytes() {
        let lone = Lone()
        lone.receive(.open(1, Array(repeating: 0, count: 65_536)))
        #expect(lone.error == nil)
        lone.receive(Array(WireFrame.open(3, Array(repeating: 0, count: 65_537)).bytes.prefix(10)))
        #expect(lone.error == .frameTooLarge(type: 2, length: 65_537))
    }

    @Test func dataFrameBytes() {
        var limits = Limits()
        limits.dataFrameBytes = 20_000
        let lone = Lone(limits: limits)
        lone.receive(.open(1), .data(1, Array(repeating: 0, count: 20_000)))
        #expect(lone.error == nil)
        lone.receive(.data(1, Array(repeating: 0, count: 20_001)))
        #expect(lone.error == .frameTooLarge(type: 4, length: 20_001))
    }

    @Test func dataFrameBytesOfThePeer() throws {
        let lone = Lone(.dialer, hello: .hello(dataFrame: 16_384))
        let id = try lone.session.open(Buffer(1), now: lone.now)
        lone.session.send(id, Buffer(repeating: 1, count: 40_000))
        #expect(lone.output().filter { $0.type == 4 }.map(\.payload.count) == [16_384, 16_384, 7232])
    }

    @Test(arguments: [UInt8(5), 6, 7, 8, 9, 10]) func fixedFramesHaveOneLength(type: UInt8) {
        let right = [5: 8, 6: 0, 7: 4, 8: 8, 9: 8, 10: 8][Int(type)] ?? 0
        for length in 0...12 where length != right {
            let lone = Lone()
            lone.receive(.open(1))
            let stream: UInt32 = type == 6 || type == 7 ? 1 : 0
            lone.receive(WireFrame(type: type, stream: stream, payload: Array(repeating: 0, count: length)))
            #expect(lone.error == .frameMalformed(type: type))
        }
    }

    @Test(arguments: [UInt8(1), 8, 9, 10]) func connectionFramesStandOnStreamZero(type: UInt8) {
        let lone = Lone(hello: type == 1 ? nil : .hello())
        lone.receive(WireFrame(type: type, stream: 1, payload: Array(repeating: 0, count: 8)))
        #expect(lone.error == .frameMisplaced(type: type, stream: 1))
    }

    @Test(arguments: [UInt8(2), 3, 4, 6, 7]) func streamFramesDoNot(type: UInt8) {
        let lone = Lone()
        lone.receive(WireFrame(type: type, stream: 0, payload: Array(repeating: 0, count: 4)))
        #expect(lone.error == .frameMisplaced(type: type, stream: 0))
    }

    // MARK: Budgets

    @Test func resets() {
        let lone = Lone()
        var id: UInt32 = 1
        func abort() {
            lone.receive(.open(id), .reset(id))
            id += 2
        }
        for _ in 0..<1024 { abort() }
        #expect(lone.error == nil)
        // It refills: 32 a second.
        lone.wait(.seconds(1))
        for _ in 0..<32 { abort() }
        #expect(lone.error == nil)
        abort()
        #expect(lone.error == .tooManyResets)
    }

    @Test func streamErrorsCountAsResets() {
        var limits = Limits()
        limits.sentResets = Budget(burst: 10_000, perSecond: 0)
        let lone = Lone(limits: limits)
        var id: UInt32 = 1
        for _ in 0..<1024 {
            lone.receive(.open(id), .response(id))
            id += 2
        }
        #expect(lone.error == nil)
        lone.receive(.open(id), .response(id))
        #expect(lone.error == .tooManyResets)
    }

    @Test func pings() {
        let lone = Lone()
        for token in 0..<16 {
            lone.receive(.ping(UInt64(token)))
            #expect(lone.output() == [.pong(UInt64(token))])
        }
        lone.wait(.milliseconds(250))
        lone.receive(.ping(16))
        #expect(lone.error == nil)
        _ = lone.output()
        lone.receive(.ping(17))
        #expect(lone.error == .tooManyPings)
    }

    static let withoutEffect: [WireFrame] = [
        .data(3, []), .credit(3, 0), .credit(0, 1), .pong(99), .end(1), .response(1), .reset(1), .credit(1, 1 << 40),
        .goAway(0),
    ]

    @Test(arguments: withoutEffect) func emptyFrames(frame: WireFrame) {
        var limits = Limits()
        limits.emptyFrames = Budget(burst: 20, perSecond: 10)
        let lone = Lone(limits: limits)
        lone.receive(.open(1), .reset(1), .open(3))
        if frame.type == 10 { lone.receive(frame) }
        for _ in 0..<20 { lone.receive(frame) }
        #expect(lone.error == nil)
        lone.wait(.milliseconds(100))
        lone.receive(frame)
        #expect(lone.error == nil)
        lone.receive(frame)
        #expect(lone.error == .tooManyEmptyFrames)
    }

    @Test func emptyDataOfAForgottenStreamCountsToo() {
        var limits = Limits()
        limits.emptyFrames = Budget(burst: 1, perSecond: 0)
        let lone = Lone(limits: limits)
        lone.receive(.open(1), .reset(1), .data(1, []))
        #expect(lone.error == nil)
        lone.receive(.data(1, []))
        #expect(lone.error == .tooManyEmptyFrames)
    }

    @Test func refusedOpensCountToo() {
        var limits = Limits()
        limits.emptyFrames = Budget(burst: 2, perSecond: 0)
        let lone = Lone(limits: limits)
        lone.session.goAway()
        lone.receive(.open(1), .open(3))
        #expect(lone.error == nil)
        lone.receive(.open(5))
        #expect(lone.error == .tooManyEmptyFrames)
    }

    // MARK: Credit

    /// Raises a credit `times` times, by one byte each time.
    private func raise(_ id: UInt32, times: Int, from start: inout UInt64, on lone: Lone) {
        for _ in 0..<times {
            start += 1
            lone.receive(.credit(id, start))
        }
    }

    @Test("A peer that raises credit by next to nothing has a budget for it", arguments: [UInt32(0), 1])
    func creditsThatRaiseLittle(id: UInt32) {
        var limits = Limits()
        limits.credits = Budget(burst: 20, perSecond: 10)
        let lone = Lone(limits: limits)
        lone.receive(.open(1))
        var offset: UInt64 = 1 << 40
        raise(id, times: 20, from: &offset, on: lone)
        #expect(lone.error == nil)
        lone.wait(.milliseconds(100))
        raise(id, times: 1, from: &offset, on: lone)
        #expect(lone.error == nil)
        raise(id, times: 1, from: &offset, on: lone)
        #expect(lone.error == .tooManyCredits)
        #expect(lone.error?.code == .limitExceeded)
    }

    @Test("Each KiB of DATA that was sent allows the peer one more CREDIT")
    func creditsForData() throws {
        var limits = Limits()
        limits.credits = Budget(burst: 4, perSecond: 0)
        let lone = Lone(limits: limits)
        lone.receive(.open(1))
        try lone.session.respond(1, Buffer())
        var offset: UInt64 = 1 << 40
        raise(0, times: 4, from: &offset, on: lone)
        for _ in 0..<10 {
            // No piece is a whole KiB.
            for count in [1000, 1000, 48] { lone.session.send(1, Buffer(repeating: 1, count: count)) }
            _ = lone.output()
            raise(0, times: 2, from: &offset, on: lone)
        }
        #expect(lone.error == nil)
        raise(0, times: 1, from: &offset, on: lone)
        #expect(lone.error == .tooManyCredits)
    }

    @Test("Each stream allows the peer one more CREDIT, such as one that widens its window")
    func creditsForStreams() {
        var limits = Limits()
        limits.credits = Budget(burst: 4, perSecond: 0)
        let lone = Lone(limits: limits)
        var offset: UInt64 = 1 << 40
        for id in stride(from: UInt32(1), to: 41, by: 2) {
            lone.receive(.open(id))
            raise(id, times: 1, from: &offset, on: lone)
        }
        #expect(lone.error == nil)
        // Opening gave back no more than the budget holds.
        raise(1, times: 4, from: &offset, on: lone)
        #expect(lone.error == .tooManyCredits)
    }

    // MARK: Unknown frames

    @Test func unknownFramesAreIgnoredWhenFlagged() {
        let lone = Lone()
        lone.receive(
            WireFrame(type: 0x42, flags: 0x80, stream: 77, payload: Array(repeating: 1, count: 65_536)),
            WireFrame(type: 0xFF, flags: 0xFF), .open(1))
        #expect(lone.takeEvents() == [.opened(1, request: [7])])
        let plain = Lone()
        plain.receive(WireFrame(type: 0x42, flags: 0x7F))
        #expect(plain.error == .unknownFrame(type: 0x42))
    }

    @Test func unknownFramesAreBoundInSizeAndNumber() {
        let large = Lone()
        large.receive(WireFrame(type: 0x42, flags: 0x80, payload: Array(repeating: 1, count: 65_537)))
        #expect(large.error == .frameTooLarge(type: 0x42, length: 65_537))
        let lone = Lone()
        for _ in 0..<64 { lone.receive(WireFrame(type: 0x42, flags: 0x80, payload: [1])) }
        #expect(lone.error == nil)
        lone.receive(WireFrame(type: 0x42, flags: 0x80))
        #expect(lone.error == .tooManyUnknownFrames)
    }

    @Test func flagsOfKnownFramesAreIgnored() {
        let lone = Lone()
        var frame = WireFrame.open(1)
        frame.flags = 0xFF
        lone.receive(frame)
        #expect(lone.takeEvents() == [.opened(1, request: [7])])
    }

    // MARK: Waiting output

    @Test func controlFramesThatNobodyReads() {
        var limits = Limits()
        limits.queuedControlFrames = 50
        limits.resets = Budget(burst: 1000, perSecond: 0)
        let lone = Lone(limits: limits)
        for index in 0..<50 {
            let id = UInt32(2 * index + 1)
            lone.receive(.open(id), .response(id))  // each is answered by a RESET
        }
        #expect(lone.error == nil)
        lone.receive(.open(101), .response(101))
        #expect(lone.error == .controlBacklog)
        #expect(lone.takeEvents().last == .dead(.controlBacklog))
        #expect(lone.output().map(\.type) == [10])
    }

    @Test func openWaitsForRoom() throws {
        var limits = Limits()
        limits.queuedControlFrames = 20
        let lone = Lone(.dialer, limits: limits)
        for _ in 0..<10 { _ = try lone.session.open(Buffer(1), now: lone.now) }
        #expect(throws: StreamOpenError.tooMuchUnderWay) { try lone.session.open(Buffer(1), now: lone.now) }
        _ = lone.output()
        _ = try lone.session.open(Buffer(1), now: lone.now)
    }
}
