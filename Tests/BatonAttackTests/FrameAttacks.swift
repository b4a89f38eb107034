// SPDX-License-Identifier: Apache-2.0

import Testing

@testable package import BatonProtocol

/// Attacks with frames, by a device that was let in or by a program on the local socket.
@Suite("Attacks with frames")
struct FrameAttacks {
    /// Quick Share took a file without the introduction of its protocol (CVE-2024-38271, CVE-2024-38272; SafeBreach,
    /// "QuickShell", DEF CON 32). Here: OPEN in the place of HELLO.
    @Test("A frame that skips the introduction")
    func skippedIntroduction() async {
        await attack("a request before HELLO") { defence in
            let hostile = HostileSession()
            if !defence.isOn {
                // The session is made to believe that it has met the peer.
                hostile.session.peer = HostileSession.introduced().session.peer
            }
            hostile.send(Frame.open(1))
            return Outcome(succeeds: hostile.openedStreams == [1] && hostile.failure == nil)
        }
    }

    /// RFC 9113, section 5.1.1: an identifier that is not higher than all before is a connection error. A stream that
    /// is opened twice would have two owners for its state.
    @Test("The same stream id twice")
    func repeatedStream() async {
        await attack("the id of a stream that was closed, again") { defence in
            let hostile = HostileSession.introduced()
            hostile.send(Frame.open(1) + Frame.reset(1))
            // The session is made to forget which ids were used.
            if !defence.isOn { hostile.session.streams = SessionStreamTable(role: .acceptor) }
            hostile.send(Frame.open(1))
            return Outcome(succeeds: hostile.openedStreams == [1, 1] && hostile.failure == nil)
        }
        await attack("the id of a stream that is open, again") { defence in
            let hostile = HostileSession.introduced()
            hostile.send(Frame.open(1))
            if !defence.isOn { hostile.session.streams = SessionStreamTable(role: .acceptor) }
            hostile.send(Frame.open(1))
            return Outcome(succeeds: hostile.openedStreams == [1, 1] && hostile.failure == nil)
        }
    }

    /// RFC 9113, section 5.2.1, and CVE-2019-9511 ("Data Dribble"), CVE-2019-9517 ("Internal Data Buffering"): who
    /// keeps to no window makes the other side hold what nobody reads.
    @Test("Data beyond credit, of the stream and of the connection", arguments: [1, 4])
    func dataBeyondCredit(streams: UInt32) async {
        await attack("1 MiB on \(streams) streams against windows of 256 KiB") { defence in
            var limits = Limits()
            // One stream breaks its own window, four break that of the connection.
            let window = defence.isOn ? 256 << 10 : 1 << 30
            limits.initialStreamWindow = streams == 1 ? window : 1 << 30
            limits.initialConnectionWindow = streams == 1 ? 1 << 30 : window
            let hostile = HostileSession.introduced(limits: limits)
            for number in 0..<streams { hostile.send(Frame.open(2 * number + 1)) }
            let piece = [UInt8](repeating: 0, count: 65_536)
            for count in 0..<16 { hostile.send(Frame.data(2 * (UInt32(count) % streams) + 1, piece)) }
            return Outcome(succeeds: hostile.delivered == 1 << 20)
        }
    }

    /// A sum of offsets that overflows would turn "no credit" into "any credit": RFC 9113, section 6.9.1.
    @Test("A credit that overflows")
    func overflowingCredit() async {
        await attack("an offset above 2^62") {
            let hostile = HostileSession.introduced()
            hostile.send(Frame.credit(0, .max))
            return Outcome(succeeds: hostile.failure == nil)
        }
    }

    /// CVE-2023-44487 ("Rapid Reset"): asking and aborting costs the asker nothing and the other side all the work.
    @Test("Resets in a flood")
    func resetFlood() async {
        await attack("10,000 requests, each aborted at once") { defence in
            var limits = Limits()
            if !defence.isOn { limits.resets = Self.unlimited }
            let hostile = HostileSession.introduced(limits: limits)
            for number in 0..<UInt32(10_000) { hostile.send(Frame.open(2 * number + 1) + Frame.reset(2 * number + 1)) }
            return Outcome(succeeds: hostile.openedStreams.count == 10_000)
        }
    }

    /// CVE-2019-9512 ("Ping Flood"), CVE-2019-9518 ("Empty Frames Flood"), CVE-2019-9515 ("Settings Flood"): frames
    /// that cost their sender nothing. And CVE-2025-8671 ("MadeYouReset"), where the victim is brought to do the
    /// aborting.
    @Test(
        "Frames without effect in a flood",
        arguments: [
            "pings", "empty data", "credit that raises nothing", "credit that raises next to nothing", "unknown frames",
            "provoked resets",
        ])
    func emptyFlood(kind: String) async {
        await attack("10,000 \(kind)") { defence in
            var limits = Limits()
            if kind == "provoked resets" { (limits.resets, limits.emptyFrames) = (Self.unlimited, Self.unlimited) }
            if !defence.isOn {
                switch kind {
                case "pings": limits.pings = Self.unlimited
                case "empty data", "credit that raises nothing": limits.emptyFrames = Self.unlimited
                case "credit that raises next to nothing": limits.credits = Self.unlimited
                case "unknown frames": limits.unknownFrames = Self.unlimited
                default: limits.sentResets = Self.unlimited
                }
            }
            let hostile = HostileSession.introduced(limits: limits)
            hostile.send(Frame.open(1))
            for number in 0..<UInt32(10_000) where hostile.failure == nil {
                switch kind {
                case "pings": hostile.send(Frame.ping(UInt64(number)))
                case "empty data": hostile.send(Frame.data(1, []))
                case "credit that raises nothing": hostile.send(Frame.credit(1, 1))
                case "credit that raises next to nothing": hostile.send(Frame.credit(0, 1 << 40 + UInt64(number)))
                case "unknown frames": hostile.send([0x66, 0x80] + Frame.make(0x66).dropFirst(2))
                default:
                    // Data behind its own END: the node aborts the stream.
                    let stream = 2 * number + 3
                    hostile.send(Frame.open(stream) + Frame.end(stream) + Frame.data(stream, [1]))
                }
                hostile.read()
            }
            return Outcome(succeeds: hostile.failure == nil)
        }
    }

    /// CVE-2019-9516 and CVE-2019-9517: who provokes answers and reads none of them fills the other side's queue.
    @Test("Provoked frames that are never read")
    func unreadAnswers() async {
        await attack("answers to 100,000 requests beyond the limit, none of them read") { defence in
            var limits = Limits()
            limits.resets = Self.unlimited
            limits.emptyFrames = Self.unlimited
            limits.sentResets = Self.unlimited
            if !defence.isOn { limits.queuedControlFrames = .max }
            let hostile = HostileSession.introduced(limits: limits)
            for number in 0..<UInt32(100_000) where hostile.failure == nil {
                let stream = 2 * number + 1
                hostile.send(Frame.open(stream) + Frame.end(stream) + Frame.data(stream, [1]))
            }
            return Outcome(succeeds: hostile.failure == nil)
        }
    }

    /// The class of CVE-2020-26164: KDE Connect kept everything that a peer announced, until memory was gone. Every
    /// length field since RFC 1035 has it: a number that is used before it is checked.
    @Test("Oversize lengths: judged by the header, before anything is reserved")
    func oversizeLength() async {
        await attack("a DATA frame of 15 MiB") { defence in
            var limits = Limits()
            if !defence.isOn { limits.dataFrameBytes = 16 << 20 }
            limits.initialStreamWindow = 32 << 20
            limits.initialConnectionWindow = 32 << 20
            let hostile = HostileSession.introduced(limits: limits)
            hostile.send(Frame.open(1) + Frame.header(0x04, stream: 1, length: 15 << 20))
            return Outcome(succeeds: hostile.failure == nil)
        }
        // And no other frame has such a length: nothing is kept of it, whatever it promises.
        for type in UInt8(1)...10 {
            for length in [UInt32(65_537), 1 << 24, .max] {
                let hostile = type == 1 ? HostileSession() : .introduced()
                hostile.send(Frame.header(type, stream: [1, 8, 9, 10].contains(type) ? 0 : 1, length: length))
                #expect(hostile.failure != nil, "type \(type), length \(length)")
            }
        }
    }

    /// More streams, and more requests nobody has answered yet, than were allowed: CVE-2024-27983's kind.
    @Test("More streams and more unanswered requests than were allowed")
    func tooManyStreams() async {
        for (what, bound) in [("streams", \Limits.openStreams), ("unanswered requests", \.unansweredRequests)] {
            await attack("1,000 \(what) at once") { defence in
                var limits = Limits()
                (limits.openStreams, limits.unansweredRequests) = (10_000, 10_000)
                if defence.isOn { limits[keyPath: bound] = Limits()[keyPath: bound] }
                let hostile = HostileSession.introduced(limits: limits)
                for number in 0..<UInt32(1_000) { hostile.send(Frame.open(2 * number + 1)) }
                return Outcome(succeeds: hostile.openedStreams.count == 1_000)
            }
        }
    }

    /// "Slow loris" (RSnake, 2009) in HELLO: a connection that says a byte now and then.
    @Test("Slow loris in HELLO")
    func slowHello() async {
        await attack("one byte of HELLO a second") { defence in
            var limits = Limits()
            if !defence.isOn { limits.helloDeadline = .seconds(3600) }
            let hostile = HostileSession(limits: limits)
            for byte in Frame.hello().dropLast() {
                hostile.send([byte])
                hostile.wait(.seconds(1))
            }
            return Outcome(succeeds: hostile.failure == nil)
        }
    }

    /// The same in a request: half of it, and then nothing, or so little that it never ends.
    @Test("Slow loris in a request", arguments: [0, 1])
    func slowRequest(bytesAnHour: Int) async {
        await attack("half a request, then \(bytesAnHour) bytes an hour") { defence in
            var limits = Limits()
            if !defence.isOn { limits.idleInterval = nil }
            let hostile = HostileSession.introduced(limits: limits)
            hostile.send(Frame.header(0x02, stream: 1, length: 60_000))
            for _ in 0..<24 {
                hostile.send([UInt8](repeating: 0, count: bytesAnHour))
                hostile.wait(.seconds(3600))
                hostile.read()
            }
            return Outcome(succeeds: hostile.failure == nil)
        }
    }

    private static let unlimited = Budget(burst: 1 << 30, perSecond: 0)
}

extension StreamID: ExpressibleByIntegerLiteral {
    package init(integerLiteral value: UInt32) {
        self.init(rawValue: value)
    }
}
