// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonTestSupport
import Glibc
import SystemPackage
import Testing

@Suite("Socket")
struct SocketTests {
    @Test("Bytes go both ways, and each side ends its own direction", arguments: ["127.0.0.1", "::1", "unix"])
    func halfClose(_ kind: String) async throws {
        let folder = try ScratchFolder("socket")
        defer { folder.remove() }
        let loop = EventLoop(name: "test")
        let address: SocketAddress
        if kind == "unix" {
            address = .unix(folder.filePath.appending("s"))
        } else {
            address = .ip(try #require(IPAddress(kind)), port: 0)
        }
        let listener = try Listener(at: address, on: loop)
        let accepted = Box<Peer?>(nil)
        listener.start { accepted.value = Peer($0) }
        let dialer = Peer(try await Socket.connect(to: listener.localAddress, on: EventLoop(name: "dialer")))
        try await eventually("accepted") { accepted.value != nil }
        let acceptor = try #require(accepted.value)

        let question = pattern(100_000)
        let answer = pattern(3_000_000)
        await dialer.send(question, thenEnd: true)
        try await eventually("the question and its end came") { await acceptor.isEnded }
        #expect(await acceptor.received == question)
        #expect(await !dialer.isEnded)
        await acceptor.send(answer, thenEnd: true)
        try await eventually("the answer and its end came") { await dialer.isEnded }
        #expect(await dialer.received == answer)
        #expect(await dialer.error == nil)
        #expect(await acceptor.error == nil)
        #expect(dialer.socket.remoteAddress == listener.localAddress)
        #expect(acceptor.socket.remoteAddress == dialer.socket.localAddress)
    }

    @Test("A slow reader stops the writer, and every byte arrives in order")
    func backPressure() async throws {
        let (dialer, acceptor) = try await tcpPair(paused: true)
        let bytes = pattern(16 << 20)
        await dialer.send(bytes)
        #expect(await !dialer.hasSentAll)
        #expect(await acceptor.receivedCount == 0)
        acceptor.socket.pauseReading(false)
        try await eventually("all came") { await acceptor.receivedCount == bytes.count }
        #expect(await acceptor.received == bytes)
        try await eventually("all was sent") { await dialer.hasSentAll }
    }

    @Test("A reader that awaits a number of bytes is woken by them or the end, and not by fewer")
    func awaitedBytes() async throws {
        let (dialer, acceptor) = try await tcpPair()
        acceptor.socket.awaitBytes(10)
        await dialer.send(pattern(9))
        // A round trip over another connection gives a wrong call the time to happen.
        let (other, otherEnd) = try await tcpPair()
        await other.send([1])
        try await eventually("came") { await otherEnd.receivedCount == 1 }
        #expect(await acceptor.readCalls == 0)
        await dialer.send([1])
        try await eventually("all came") { await acceptor.receivedCount == 10 }
        #expect(await acceptor.readCalls == 1)
        await dialer.send([1], thenEnd: true)
        try await eventually("the end came") { await acceptor.isEnded }
        #expect(await acceptor.receivedCount == 11)
    }

    @Test("A moved connection continues on another loop with its unread bytes, and the old socket is closed")
    func moved() async throws {
        let (dialer, acceptor) = try await tcpPair(paused: true)
        let bytes = pattern(100_000)
        await dialer.send(bytes)
        let other = EventLoop(name: "other")
        let moved = Peer(try acceptor.socket.moved(to: other))
        #expect(moved.socket.loop === other)
        #expect(moved.socket.remoteAddress == dialer.socket.localAddress)
        #expect(acceptor.socket.isClosed)
        try await eventually("all came") { await moved.receivedCount == bytes.count }
        #expect(await moved.received == bytes)
        #expect(await acceptor.receivedCount == 0)
        await moved.send(bytes, thenEnd: true)
        try await eventually("the answer and its end came") { await dialer.isEnded }
        #expect(await dialer.received == bytes)
        #expect { _ = try acceptor.socket.moved(to: other) } throws: { ($0 as? SocketError)?.code == .closed }
    }

    @Test("An idle socket with room to write causes no calls and no work")
    func idle() async throws {
        let (dialer, acceptor) = try await tcpPair()
        await dialer.send([1])
        try await eventually("came") { await acceptor.receivedCount == 1 }
        let before = (await dialer.writeCalls, await acceptor.readCalls)
        // A round trip over another connection gives thousands of wrong calls the time to happen.
        let (other, otherEnd) = try await tcpPair()
        await other.send(pattern(1_000_000), thenEnd: true)
        try await eventually("the other one is through") { await otherEnd.isEnded }
        #expect(await dialer.writeCalls == before.0)
        #expect(await acceptor.readCalls == before.1)
    }

    @Test("Bytes sent before a hang-up are read to the end, however slowly", arguments: [false, true])
    func hangUpPartialReads(_ paused: Bool) async throws {
        let (first, second) = try unixPair(chunk: 100, paused: paused)
        let bytes = pattern(60_000)
        await first.send(bytes)
        try await eventually("sent") { await first.hasSentAll }
        first.socket.close()
        if paused {
            // The hang-up comes while the source is suspended.
            try await eventually("closed") { first.socket.isClosed }
            second.socket.pauseReading(false)
        }
        try await eventually("read to the end") { await second.isEnded }
        #expect(await second.received == bytes)
        #expect(await second.error == nil)
    }

    @Test("Reading may be paused repeatedly after the hang-up")
    func hangUpPauses() async throws {
        let bytes = pattern(60_000)
        let (first, second) = try unixPair(chunk: 10, paused: true)
        await first.send(bytes)
        try await eventually("sent") { await first.hasSentAll }
        first.socket.close()
        var last = 0
        while await !second.isEnded {
            second.socket.pauseReading(false)
            let seen = last
            let goesOn = await eventually {
                let count = await second.receivedCount
                let isEnded = await second.isEnded
                return count > seen || isEnded
            }
            try #require(goesOn, "neither bytes nor the end came")
            second.socket.pauseReading(true)
            last = await second.receivedCount
        }
        #expect(await second.received == bytes)
    }

    @Test("A socket that starts after the hang-up still reads everything")
    func startAfterHangUp() async throws {
        let pair = try Socket.pair(on: EventLoop(name: "a"), EventLoop(name: "b"))
        #expect(try Peer.writeOnce(pair.0, pattern(5000)) == 5000)
        pair.0.close()
        let second = Peer(pair.1, chunk: 7)
        try await eventually("read to the end") { await second.isEnded }
        #expect(await second.received == pattern(5000))
    }

    @Test("A waiting writer learns of the hang-up, even if its source is made later")
    func hangUpWhileWriting() async throws {
        let bytes = pattern(10 << 20)
        let (first, second) = try unixPair()
        second.socket.pauseReading(true)
        first.socket.pauseReading(true)
        await first.send(bytes)
        #expect(await !first.hasSentAll)
        second.socket.close()
        try await eventually("told") { await first.writeError != nil }
        #expect(await first.writeError?.code == .connectionReset)

        let pair = try Socket.pair(on: EventLoop(name: "a"), EventLoop(name: "b"))
        let called = Box(0)
        pair.0.start(onReadable: {}, onWritable: { called.change { $0 += 1 } })
        pair.0.pauseReading(true)
        pair.1.close()
        // Dispatch gets the hang-up before the write source exists.
        let (other, otherEnd) = try unixPair()
        await other.send([1], thenEnd: true)
        try await eventually("the other one is through") { await otherEnd.isEnded }
        pair.0.wantWrite(true)
        try await eventually("called") { called.value > 0 }
        pair.0.close()
    }

    @Test("Writing to a peer that is gone is an error and not a signal")
    func brokenPipe() async throws {
        let pair = try Socket.pair(on: EventLoop(name: "a"), EventLoop(name: "b"))
        pair.1.close()
        try await eventually("broken") {
            do throws(SocketError) {
                return try Peer.writeOnce(pair.0, [1]) < 0
            } catch {
                return error.code == .connectionReset
            }
        }
        let other = try Socket.pair(on: EventLoop(name: "a"), EventLoop(name: "b"))
        other.0.shutdownWrite()
        other.0.shutdownWrite()
        let error = #expect(throws: SocketError.self) { try Peer.writeOnce(other.0, [1]) }
        #expect(error?.underlyingError == .brokenPipe)
    }

    @Test("A reset is reported once, with its reason")
    func reset() async throws {
        let (dialer, acceptor) = try await tcpPair(paused: true)
        await dialer.send(pattern(1000))
        try await eventually("came") { (try? Peer.readOnce(acceptor.socket, 1).0) == .bytes(1) }
        // Closing with unread bytes resets (RFC 1122, 4.2.2.13).
        acceptor.socket.close()
        try await eventually("reset") { await dialer.error != nil }
        #expect(await dialer.error?.code == .connectionReset)
        #expect(await dialer.readCalls <= 3)
    }

    @Test("Closing is idempotent and final")
    func close() async throws {
        let (dialer, acceptor) = try await tcpPair()
        dialer.socket.close()
        dialer.socket.close()
        #expect(dialer.socket.isClosed)
        #expect(#expect(throws: SocketError.self) { try Peer.readOnce(dialer.socket, 1) }?.code == .closed)
        #expect(#expect(throws: SocketError.self) { try Peer.writeOnce(dialer.socket, [1]) }?.code == .closed)
        dialer.socket.shutdownWrite()
        dialer.socket.wantWrite(true)
        dialer.socket.pauseReading(true)
        dialer.socket.pauseReading(false)
        dialer.socket.limitUnsent(to: 1)
        dialer.socket.awaitBytes(1)
        dialer.socket.start(onReadable: {}, onWritable: {})
        #expect(dialer.socket.peerUser == nil)
        try await eventually("the other side sees the end") { await acceptor.isEnded }
    }

    @Test("Empty buffers and empty writes do nothing")
    func nothing() throws {
        let pair = try Socket.pair(on: EventLoop(name: "a"), EventLoop(name: "b"))
        #expect(try Peer.readOnce(pair.0, 0).0 == .bytes(0))
        #expect(try Peer.writeOnce(pair.0, []) == 0)
        #expect(try Peer.readOnce(pair.0, 10).0 == .wouldBlock)
        withExtendedLifetime(pair.1) {}
    }

    @Test("A second start replaces the handlers, for another owner")
    func secondOwner() async throws {
        let pair = try Socket.pair(on: EventLoop(name: "a"), EventLoop(name: "b"))
        let (first, second) = (Box<Set<String>>([]), Box<Set<String>>([]))
        for owner in [first, second] {
            pair.0.start(
                onReadable: { owner.change { $0.insert("readable") } },
                onWritable: { owner.change { $0.insert("writable") } })
        }
        pair.0.wantWrite(true)
        #expect(try Peer.writeOnce(pair.1, [1]) == 1)
        try await eventually("both are reported") { second.value == ["readable", "writable"] }
        pair.0.close()
        #expect(first.value.isEmpty)
    }

    @Test("The user of a Unix-domain peer is known, that of a TCP peer is not")
    func credentials() async throws {
        let pair = try Socket.pair(on: EventLoop(name: "a"), EventLoop(name: "b"))
        #expect(pair.0.peerUser == geteuid())
        #expect(pair.0.remoteAddress == .unix(""))
        pair.0.limitUnsent(to: 1000)
        let (dialer, _) = try await tcpPair()
        #expect(dialer.socket.peerUser == nil)
    }

    @Test("A limit on unsent bytes does not block the connection")
    func unsentLimit() async throws {
        let (dialer, acceptor) = try await tcpPair()
        dialer.socket.limitUnsent(to: 131_072)
        await dialer.send(pattern(8 << 20), thenEnd: true)
        try await eventually("all came") { await acceptor.isEnded }
        #expect(await acceptor.received == pattern(8 << 20))
    }
}

extension OwnProcess {
    @Suite("Socket")
    struct SocketResourceTests {
        @Test("After the end of the input nothing spins")
        func noSpinAtTheEnd() async throws {
            await #expect(processExitsWith: .success) {
                // One connection is half-closed, one is gone while reading is paused, and one was reset.
                let (a, b) = try await tcpPair()
                await a.send([], thenEnd: true)
                try await eventually("ended") { await b.isEnded }
                let (c, d) = try unixPair(paused: true)
                await c.send([1])
                c.socket.close()
                let (e, f) = try await tcpPair()
                await e.send(pattern(1000))
                try await eventually("came") { await f.receivedCount == 1000 }
                f.socket.pauseReading(true)
                await e.send(pattern(1000))
                f.socket.close()
                try await eventually("reset or ended") {
                    let error = await e.error
                    let isEnded = await e.isEnded
                    return error != nil || isEnded
                }

                let before = (Machine.processorTime(), await b.readCalls, await d.readCalls, await e.readCalls)
                let done = Box(false)
                let timer = Timer(on: EventLoop(name: "test")) { done.value = true }
                timer.schedule(after: .milliseconds(300))
                while !done.value { usleep(50_000) }
                #expect(await b.readCalls == before.1)
                #expect(await d.readCalls == before.2)
                #expect(await e.readCalls == before.3)
                // A spinning manager thread would use all of the 300 ms.
                #expect(Machine.processorTime() - before.0 < 100_000_000)
                withExtendedLifetime((a, c)) {}
            }
        }

        @Test("Every socket releases its descriptor and handlers, closed or not, started or not")
        func release() async throws {
            await #expect(processExitsWith: .success) {
                let loop = EventLoop(name: "test")
                await Machine.warmUp([loop])
                let before = Machine.openDescriptors()
                let held = Box<[WeakBox<Box<Int>>]>([])
                for round in 0..<64 {
                    let pair = try Socket.pair(on: loop, loop)
                    let count = Box(0)
                    held.change { $0.append(WeakBox(count)) }
                    if round & 1 == 0 {
                        pair.0.start(
                            onReadable: { count.change { $0 += 1 } }, onWritable: { count.change { $0 += 1 } })
                    }
                    if round & 2 == 0 { pair.0.wantWrite(true) }
                    if round & 4 == 0 { pair.0.pauseReading(true) }
                    if round & 8 == 0 { _ = try Peer.writeOnce(pair.1, [1, 2, 3]) }
                    if round & 16 == 0 { pair.1.close() }
                    if round & 32 == 0 { pair.0.close() }
                }
                try await eventually("all released") {
                    held.value.allSatisfy(\.isReleased) && Machine.openDescriptors() <= before
                }
            }
        }

        @Test("Many connections that hang up at once on several loops leave nothing behind")
        func storm() async throws {
            await #expect(processExitsWith: .success) {
                let group = EventLoopGroup(name: "test", count: 4)
                await Machine.warmUp((0..<4).map { _ in group.next() })
                let before = Machine.openDescriptors()
                for _ in 0..<50 {
                    var peers: [Peer] = []
                    for _ in 0..<40 {
                        let pair = try Socket.pair(on: group.next(), group.next())
                        peers += [Peer(pair.0), Peer(pair.1)]
                    }
                    for peer in peers { await peer.send([1, 2, 3, 4]) }
                    for (index, peer) in peers.enumerated() where index % 2 == 0 { peer.socket.close() }
                    for (index, peer) in peers.enumerated() where index % 2 == 1 {
                        try await eventually("ended") {
                            let error = await peer.error
                            let isEnded = await peer.isEnded
                            return isEnded || error != nil
                        }
                    }
                }
                try await eventually("all released") { Machine.openDescriptors() <= before }
            }
        }

        /// A regression test. With libdispatch's own sources, about 12,000 such connections crashed the process,
        /// because several threads changed one list of sources at once.
        @Test("Connections that are reset while they are watched and closed do not crash the process")
        func resets() async throws {
            await #expect(processExitsWith: .success) {
                let group = EventLoopGroup(name: "test", count: 2)
                await Machine.warmUp((0..<2).map { _ in group.next() })
                let before = Machine.openDescriptors()
                let live = Box<[ObjectIdentifier: Socket]>([:])
                let accepted = Box(0)
                let listener = try Listener(at: .ip(.ipv4Loopback, port: 0), on: group.next())
                listener.start { stranger in
                    guard let socket = try? stranger.moved(to: group.next()) else { return }
                    accepted.change { $0 += 1 }
                    live.change { $0[ObjectIdentifier(socket)] = socket }
                    let read: @Sendable () -> Void = { [weak socket] in
                        guard let socket else { return }
                        let found = try? withUnsafeTemporaryAllocation(byteCount: 64, alignment: 1) {
                            (buffer) throws(SocketError) in try socket.read(into: buffer)
                        }
                        // Some are closed at about the moment in which they are reset.
                        let isSentAway = Bool.random()
                        switch found {
                        case .bytes where !isSentAway, .wouldBlock: return
                        case .bytes:
                            usleep(.random(in: 0..<100))
                            fallthrough
                        case .endOfFile, nil:
                            socket.close()
                            live.change { $0[ObjectIdentifier(socket)] = nil }
                        }
                    }
                    socket.start(onReadable: read, onWritable: {})
                    socket.wantWrite(true)
                    socket.wantWrite(false)
                }
                let port = try #require(listener.localAddress.port)
                let (ends, end) = AsyncStream<Int>.makeStream()
                let strangers = try (0..<3).map { try BlockingExecutor(name: "stranger-\($0)") }
                for stranger in strangers {
                    stranger.submit { end.yield((0..<10_000).count { _ in Dialing.resetConnection(to: port) }) }
                }
                var counts: [Int] = []
                for await count in ends {
                    counts.append(count)
                    if counts.count == strangers.count { break }
                }
                let made = counts.reduce(0, +)
                #expect(made > 20_000)
                // The kernel drops some that come while its queue is full, though their dialer believes them connected.
                try await eventually("most are heard") { accepted.value > made / 2 }
                try await eventually("all are gone") { live.value.isEmpty }
                listener.close()
                try await eventually("all released") { Machine.openDescriptors() <= before }
            }
        }
    }
}
