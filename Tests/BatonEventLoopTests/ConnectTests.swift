// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonTestSupport
import Glibc
import SystemPackage
import Testing

@Suite("Connecting")
struct ConnectTests {
    private let loop = EventLoop(name: "test-connect")

    @Test("Without a listener the connection is refused")
    func refused() async throws {
        let address = try Dialing.deadAddress()
        // The kernel may still be closing the listener.
        try await eventually("refused") {
            await Dialing.failure { () async throws(SocketError) in try await Socket.connect(to: address, on: loop) }?
                .code
                == .connectionRefused
        }
    }

    @Test("Without an answer the attempt ends in time")
    func timesOut() async throws {
        let hole = try Dialing.BlackHole()
        let start = MonotonicClock.nanoseconds()
        let error = await Dialing.failure { () async throws(SocketError) in
            try await Socket.connect(to: hole.address, on: loop, timeout: .milliseconds(150))
        }
        #expect(error?.code == .timedOut)
        #expect(MonotonicClock.nanoseconds() - start >= 150_000_000)
        #expect(error?.description.contains("connecting to 127.0.0.1") == true)
        let atOnce = await Dialing.failure { () async throws(SocketError) in
            try await Socket.connect(to: hole.address, on: loop, timeout: .zero)
        }
        #expect(atOnce?.code == .timedOut)
    }

    @Test("A cancelled task ends the attempt at once, also one that was cancelled before")
    func cancels() async throws {
        let hole = try Dialing.BlackHole()
        let task = Task { [loop] in
            await Dialing.failure { () async throws(SocketError) in
                try await Socket.connect(to: hole.address, on: loop, timeout: .seconds(3600))
            }
        }
        task.cancel()
        #expect(await task.value?.code == .cancelled)
        let started = Box(false)
        let later = Task { [loop] in
            started.value = true
            return await Dialing.failure { () async throws(SocketError) in
                try await Socket.connect(
                    toAnyOf: [hole.address, hole.address], on: loop, timeout: .seconds(3600))
            }
        }
        try await eventually("started") { started.value }
        later.cancel()
        #expect(await later.value?.code == .cancelled)
    }

    @Test("Socket files: none there, a plain file there, one whose path is long")
    func socketFiles() async throws {
        let folder = try ScratchFolder("socket")
        defer { folder.remove() }
        let missing = SocketAddress.unix(folder.filePath.appending("missing"))
        let none = await Dialing.failure { () async throws(SocketError) in
            try await Socket.connect(to: missing, on: loop)
        }
        #expect(none?.code == .notFound)

        let plain = folder.filePath.appending("plain")
        try FileDescriptor.open(plain, .writeOnly, options: .create, permissions: .ownerReadWrite).close()
        let refused = await Dialing.failure { () async throws(SocketError) in
            try await Socket.connect(to: .unix(plain), on: loop)
        }
        #expect(refused?.code == .connectionRefused)

        let tooLong = SocketAddress.unix(folder.filePath.appending(String(repeating: "x", count: 108)))
        let long = await Dialing.failure { () async throws(SocketError) in
            try await Socket.connect(to: tooLong, on: loop)
        }
        #expect(long?.code == .other)
        for path in ["", "/", "/tmp/.."] {
            let error = await Dialing.failure { () async throws(SocketError) in
                try await Socket.connect(to: .unix(FilePath(path)), on: loop)
            }
            #expect(error != nil)
        }
    }

    @Test("An attempt fails at once if the queue of a Unix-domain listener is full")
    func fullUnixQueue() async throws {
        let folder = try ScratchFolder("socket")
        defer { folder.remove() }
        let listener = try Listener(at: .unix(folder.filePath.appending("s")), on: loop, backlog: 0)
        let first = try await Socket.connect(to: listener.localAddress, on: loop)
        let full = await Dialing.failure { () async throws(SocketError) in
            try await Socket.connect(to: listener.localAddress, on: loop)
        }
        #expect(full?.code == .timedOut)
        withExtendedLifetime(first) {}
    }

    @Test("The first address that answers wins, without waiting for a silent one")
    func race() async throws {
        let hole = try Dialing.BlackHole()
        let listener = try Listener(at: .ip(.ipv4Loopback, port: 0), on: loop)
        let accepted = Box<[Socket]>([])
        listener.start { socket in accepted.change { $0.append(socket) } }
        let dead = try Dialing.deadAddress()
        let socket = try await Socket.connect(
            toAnyOf: [dead, hole.address, dead, listener.localAddress], on: loop, stagger: .milliseconds(20),
            timeout: .seconds(30))
        #expect(socket.remoteAddress == listener.localAddress)
        try await eventually("accepted") { accepted.value.count == 1 }
    }

    @Test("The losers of the race are closed")
    func losers() async throws {
        let first = try Listener(at: .ip(.ipv4Loopback, port: 0), on: loop)
        let second = try Listener(at: .ip(.ipv4Loopback, port: 0), on: loop)
        let accepted = Box<[Peer]>([])
        for listener in [first, second] {
            listener.start { socket in accepted.change { $0.append(Peer(socket)) } }
        }
        var winners: [Socket] = []
        for _ in 0..<30 {
            winners.append(
                try await Socket.connect(
                    toAnyOf: [first.localAddress, second.localAddress], on: loop, stagger: .zero))
        }
        let count = winners.count
        try await eventually("all but the winners end") {
            var open = 0
            for peer in accepted.value {
                let isEnded = await peer.isEnded
                let error = await peer.error
                if !isEnded, error == nil { open += 1 }
            }
            return open == count
        }
        withExtendedLifetime(winners) {}
    }

    @Test("No address, one address, and more than sixteen")
    func bounds() async throws {
        let none = await Dialing.failure { () async throws(SocketError) in
            try await Socket.connect(toAnyOf: [], on: loop)
        }
        #expect(none?.code == .unreachable)

        let listener = try Listener(at: .ip(.ipv4Loopback, port: 0), on: loop)
        listener.start { _ in }
        _ = try await Socket.connect(toAnyOf: [listener.localAddress, listener.localAddress], on: loop)

        // Sixteen addresses without a listener put the good one in place 16 or 17; all of 127/8 is this machine.
        let port = try Dialing.deadAddress().port ?? 0
        let dead = try (1...16).map { number in
            SocketAddress.ip(try #require(IPAddress("127.7.7.\(number)")), port: port)
        }
        _ = try await Socket.connect(
            toAnyOf: Array(dead.prefix(Socket.addressLimit - 1)) + [listener.localAddress], on: loop)
        let beyond = await Dialing.failure { () async throws(SocketError) in
            try await Socket.connect(toAnyOf: dead + [listener.localAddress], on: loop)
        }
        #expect(beyond?.code == .connectionRefused)
    }

    @Test("When all fail, the most informative failure is reported")
    func mostInformative() async throws {
        let hole = try Dialing.BlackHole()
        let error = await Dialing.failure { () async throws(SocketError) in
            try await Socket.connect(
                toAnyOf: [hole.address, try Dialing.deadAddress()], on: loop, stagger: .milliseconds(1),
                timeout: .seconds(8))
        }
        #expect(error?.code == .connectionRefused)
    }

    private static func deadSocketAddress() throws(SocketError) -> SocketAddress {
        let listener = try Listener(at: .ip(.ipv4Loopback, port: 0), on: EventLoop(name: "dead"))
        defer { listener.close() }
        return listener.localAddress
    }
}

extension OwnProcess {
    @Suite("Connecting")
    struct ConnectResourceTests {
        @Test("No attempt leaves a descriptor behind: refused, timed out, cancelled, raced")
        func noLeak() async throws {
            await #expect(processExitsWith: .success) {
                let loop = EventLoop(name: "test")
                let listener = try Listener(at: .ip(.ipv4Loopback, port: 0), on: loop)
                listener.start { _ in }
                _ = try await Socket.connect(to: listener.localAddress, on: loop)
                let hole = try Dialing.BlackHole()
                await Machine.warmUp()
                let before = Machine.openDescriptors()
                let dead = try Dialing.deadAddress()
                for round in 0..<100 {
                    _ = await Dialing.failure { () async throws(SocketError) in
                        try await Socket.connect(to: dead, on: loop)
                    }
                    _ = await Dialing.failure { () async throws(SocketError) in
                        try await Socket.connect(to: hole.address, on: loop, timeout: .microseconds(round * 10))
                    }
                    _ = try? await Socket.connect(
                        to: listener.localAddress, on: loop, timeout: .microseconds(round))
                    let task = Task {
                        try? await Socket.connect(
                            toAnyOf: [hole.address, dead, listener.localAddress], on: loop, stagger: .microseconds(100))
                    }
                    if round % 2 == 0 { usleep(UInt32(round * 10)) }
                    task.cancel()
                    _ = await task.value
                }
                try await eventually("all closed") { Machine.openDescriptors() <= before }
            }
        }
    }
}
