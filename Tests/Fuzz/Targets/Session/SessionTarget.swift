// SPDX-License-Identifier: Apache-2.0

@testable import BatonProtocol

/// The frame decoder and the state of a connection. A peer's bytes come in any pieces, in any state that an
/// application, a clock and a socket can cause.
///
/// An input is a byte of settings, then steps. Most bytes of the peer come as frames whose streams exist, or noise
/// would reach nothing behind HELLO.
enum SessionTarget: FuzzTarget {
    static let name = "session"
    static let maximumLength = 2048

    static func run(_ bytes: UnsafeRawBufferPointer) {
        var input = Input(bytes)
        let setting = input.byte()
        let player = SessionPlayer(role: setting & 1 == 0 ? .dialer : .acceptor, limits: limits(setting >> 2 & 3))
        if setting & 2 == 0 { player.receive(hello, inPiecesOf: 0) }
        var stepsDead = 0
        while !input.isEmpty, stepsDead < 8 {
            step(&input, player)
            if player.isDead { stepsDead += 1 }
        }
        player.end()
    }

    private static func step(_ input: inout Input, _ player: SessionPlayer) {
        let step = input.byte()
        switch step & 15 {
        case 0...4: player.receive(frame(&input, player), inPiecesOf: Int(step >> 4))
        case 5: player.receive(input.bytes(Int(input.byte())), inPiecesOf: Int(step >> 4))
        case 6: player.consume(stream(&input), Int(input.number(2)) * 16 - 8)
        case 7: player.respond(stream(&input), Int(step >> 4) * 4500)
        case 8: player.send(stream(&input))
        case 9: player.open(Int(step >> 4) * 4500)
        case 10: player.finish(stream(&input))
        case 11: player.flush(Int(input.number(2)))
        case 12: player.wait(.milliseconds(1 << Int64(step >> 4)))
        case 13: player.timeOut()
        case 14: player.reset(stream(&input), UInt32(step >> 4))
        case _: if step >> 4 == 0 { player.goAway() } else { player.ping() }
        }
    }

    private static func stream(_ input: inout Input) -> StreamID {
        StreamID(rawValue: UInt32(input.byte() & 31))
    }

    /// A frame with a length that fits its type, unless the input asks for another.
    private static func frame(_ input: inout Input, _ player: SessionPlayer) -> [UInt8] {
        let kind = input.byte()
        let type = kind & 15
        let stream = [0, 8, 9, 10].contains(type) ? 0 : UInt64(input.byte() & 31)
        var payload: [UInt8]
        switch type {
        // Up to the edge of the credit, or a byte beyond it.
        case 4 where kind & 32 != 0:
            let size = player.creditLeft(of: UInt32(stream)) + Int(input.byte() & 1)
            payload = [UInt8](repeating: 9, count: min(size, 65_536))
        case 2...4: payload = [UInt8](repeating: 9, count: Int(input.byte()) * (kind & 16 == 0 ? 1 : 23))
        case 5: payload = [UInt8](number: input.number(3) << UInt64(kind >> 4 & 7), bytes: 8)
        case 7: payload = [UInt8](number: input.number(1), bytes: 4)
        case 8, 9: payload = [UInt8](number: input.number(1), bytes: 8)
        case 10: payload = [UInt8](number: input.number(1), bytes: 4) + [UInt8](number: input.number(1), bytes: 4)
        case 6: payload = []
        case _: payload = input.bytes(Int(input.byte() & 63))
        }
        if kind & 0x60 == 0x60 { payload.append(0) }
        return [type, kind & 0x80] + [UInt8](number: stream, bytes: 4)
            + [UInt8](number: UInt64(payload.count), bytes: 4) + payload
    }

    private static let hello: [UInt8] =
        [1, 0] + [UInt8](number: 0, bytes: 4) + [UInt8](number: 56, bytes: 4) + Array("BATN".utf8)
        + [0, 1, 0, 1] + [UInt8](number: 0, bytes: 16) + [UInt8](number: 16_384, bytes: 4)
        + [UInt8](number: 16, bytes: 4) + [UInt8](number: 12, bytes: 4) + [UInt8](number: 0, bytes: 4)
        + [UInt8](number: 100_000, bytes: 8) + [UInt8](number: 30_000, bytes: 8)

    /// The defaults; bounds that an input can reach; budgets that none can; and both.
    private static func limits(_ choice: UInt8) -> Limits {
        var limits = Limits()
        if choice & 1 != 0 {
            limits.openStreams = 8
            limits.unansweredRequests = 8
            limits.unreadStreams = 4
            limits.initialStreamWindow = 3000
            limits.activeStreamWindow = 12_000
            limits.initialConnectionWindow = 8000
            limits.maximumConnectionWindow = 24_000
            limits.queuedControlFrames = 24
        }
        if choice & 2 != 0 {
            let wide = Budget(burst: 100_000, perSecond: 1000)
            limits.resets = wide
            limits.pings = wide
            limits.emptyFrames = wide
            limits.unknownFrames = wide
            limits.credits = wide
        }
        return limits
    }

    static func seeds() -> [[UInt8]] {
        var generator = SeededGenerator(seed: 1)
        // Streams of both sides with all that happens on them, then steps by chance.
        let asked: [UInt8] = [0, 2, 1, 5, 7, 1, 11, 255, 255, 1, 0x14, 1, 200, 6, 1, 4, 0, 8, 1, 11, 9, 0]
        let ended: [UInt8] = [10, 1, 11, 255, 255, 2, 6, 1, 6, 1, 255, 255, 13, 11, 255, 255, 1, 9, 1]
        let asking: [UInt8] = [9, 8, 1, 8, 3, 11, 255, 255, 0, 3, 1, 4, 0, 0x54, 1, 100, 2, 6, 1, 10, 1, 11, 255, 255]
        let closing: [UInt8] = [15, 11, 1, 0, 0, 10, 3, 0, 13, 13, 13]
        let raw: [UInt8] = [2, 0x35, UInt8(hello.count)] + hello + [11, 255, 255]
        var seeds: [[UInt8]] = [
            [1] + asked + ended, [0] + asking + closing, [1] + raw, [0, 13, 13], [13] + asked + ended,
        ]
        for number in 0..<20 {
            seeds.append([UInt8(number & 15) & 0xFD] + generator.bytes(40 + 20 * number))
        }
        return seeds
    }
}
