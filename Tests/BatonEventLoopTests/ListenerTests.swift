// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonTestSupport
import Glibc
import SystemPackage
import Testing

@Suite("Listener")
struct ListenerTests {
    private let loop = EventLoop(name: "test-listener")

    private static func status(_ path: FilePath) -> stat? {
        var status = stat()
        return path.withPlatformString { lstat($0, &status) } == 0 ? status : nil
    }

    private static func code(_ body: () throws(SocketError) -> Listener) -> SocketError.Code? {
        do throws(SocketError) {
            _ = try body()
            return nil
        } catch {
            return error.code
        }
    }

    /// Leaves the socket file of a dead program.
    private static func leaveStale(at path: FilePath) throws {
        let number = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(number) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array(path.string.utf8)) }
        let bound = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(number, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        try #require(bound == 0)
    }

    // MARK: - TCP

    @Test("One listener serves IPv6 and IPv4, and an IPv4 peer has an IPv4 address")
    func dualStack() async throws {
        let listener = try Listener.onAllAddresses(port: 0, on: loop)
        let port = try #require(listener.localAddress.port)
        #expect(port >= 1024)
        let accepted = Box<[Socket]>([])
        listener.start { socket in accepted.change { $0.append(socket) } }
        let overIPv4 = try await Socket.connect(to: .ip(.ipv4Loopback, port: port), on: loop)
        let overIPv6 = try await Socket.connect(to: .ip(.ipv6Loopback, port: port), on: loop)
        try await eventually("both accepted") { accepted.value.count == 2 }
        #expect(Set(accepted.value.map(\.remoteAddress)) == [overIPv4.localAddress, overIPv6.localAddress])
    }

    @Test("A port in use is reported, and free again after a close")
    func portInUse() async throws {
        let first = try Listener.onAllAddresses(port: 0, on: loop)
        let port = try #require(first.localAddress.port)
        #expect(
            Self.code { () throws(SocketError) in try Listener.onAllAddresses(port: port, on: loop) } == .addressInUse)
        #expect(
            Self.code { () throws(SocketError) in try Listener(at: .ip(.ipv4Any, port: port), on: loop) }
                == .addressInUse)
        first.close()
        first.close()
        try await eventually("free again") {
            Self.code { () throws(SocketError) in try Listener.onAllAddresses(port: port, on: loop) } == nil
        }
    }

    @Test("An address of another machine is reported")
    func foreignAddress() throws {
        let address = try #require(SocketAddress("192.0.2.1:0"))
        #expect(Self.code { () throws(SocketError) in try Listener(at: address, on: loop) } == .unreachable)
    }

    @Test("Sockets and handlers run on the listener's loop")
    func loops() async throws {
        let listener = try Listener(at: .ip(.ipv4Loopback, port: 0), on: loop)
        let accepted = Box<[Socket]>([])
        let onLoop = Box(true)
        listener.start { [loop] socket in
            if !loop.isCurrent { onLoop.value = false }
            accepted.change { $0.append(socket) }
        }
        var sockets: [Socket] = []
        for _ in 0..<4 { sockets.append(try await Socket.connect(to: listener.localAddress, on: loop)) }
        try await eventually("accepted") { accepted.value.count == 4 }
        #expect(accepted.value.allSatisfy { $0.loop === loop })
        #expect(onLoop.value)
    }

    @Test("A closed listener refuses, and drops waiting connections")
    func closed() async throws {
        let listener = try Listener(at: .ip(.ipv4Loopback, port: 0), on: loop)
        let address = listener.localAddress
        let waiting = Peer(try await Socket.connect(to: address, on: loop))
        listener.close()
        listener.start { _ in Issue.record("accepted after the close") }
        try await eventually("dropped") {
            let error = await waiting.error
            let isEnded = await waiting.isEnded
            return error != nil || isEnded
        }
        try await eventually("refused") {
            await Dialing.failure { () async throws(SocketError) in
                try await Socket.connect(to: address, on: loop)
            }?.code == .connectionRefused
        }
    }

    // MARK: - Socket files

    @Test("A socket file has mode 0600 and goes with the listener")
    func mode() async throws {
        let folder = try ScratchFolder("socket")
        defer { folder.remove() }
        let path = folder.filePath.appending("node")
        let listener = try Listener(at: .unix(path), on: loop)
        #expect(Self.status(path).map { $0.st_mode } == S_IFSOCK | 0o600)
        #expect(listener.localAddress == .unix(path))
        listener.start { _ in }
        _ = try await Socket.connect(to: .unix(path), on: loop)
        listener.close()
        #expect(Self.status(path) == nil)
        do {
            _ = try Listener(at: .unix(path), on: loop)
        }
        #expect(Self.status(path) == nil)
    }

    @Test("The file of a dead program is replaced")
    func stale() async throws {
        let folder = try ScratchFolder("socket")
        defer { folder.remove() }
        let path = folder.filePath.appending("node")
        try Self.leaveStale(at: path)
        let listener = try Listener(at: .unix(path), on: loop)
        listener.start { _ in }
        _ = try await Socket.connect(to: .unix(path), on: loop)
    }

    @Test("The file of a living program is left alone, also when its queue is full")
    func live() async throws {
        let folder = try ScratchFolder("socket")
        defer { folder.remove() }
        let path = folder.filePath.appending("node")
        let first = try Listener(at: .unix(path), on: loop, backlog: 0)
        #expect(Self.code { () throws(SocketError) in try Listener(at: .unix(path), on: loop) } == .addressInUse)
        // The probe of the first try fills the queue for the second.
        #expect(Self.code { () throws(SocketError) in try Listener(at: .unix(path), on: loop) } == .addressInUse)
        let accepted = Box(0)
        first.start { _ in accepted.change { $0 += 1 } }
        try await eventually("the queue is empty") { accepted.value == 1 }
        _ = try await Socket.connect(to: .unix(path), on: loop)
        try await eventually("still serves") { accepted.value == 2 }
        #expect(Self.status(path) != nil)
    }

    @Test("A file, a folder and a link at the path are left alone")
    func notASocket() throws {
        let folder = try ScratchFolder("socket")
        defer { folder.remove() }
        let file = folder.filePath.appending("file")
        let descriptor = try FileDescriptor.open(file, .writeOnly, options: .create, permissions: .ownerReadWrite)
        try descriptor.writeAll([1, 2, 3])
        try descriptor.close()
        let inner = folder.filePath.appending("folder")
        let link = folder.filePath.appending("link")
        #expect(inner.withPlatformString { mkdir($0, 0o700) } == 0)
        #expect(link.withPlatformString { symlink("file", $0) } == 0)
        for path in [file, inner, link] {
            #expect(Self.code { () throws(SocketError) in try Listener(at: .unix(path), on: loop) } == .other)
        }
        #expect(Self.status(file)?.st_size == 3)
        #expect(Self.status(link).map { $0.st_mode & S_IFMT } == S_IFLNK)
    }

    @Test("A file that replaced the listener's own is left alone")
    func replaced() throws {
        let folder = try ScratchFolder("socket")
        defer { folder.remove() }
        let path = folder.filePath.appending("node")
        let first = try Listener(at: .unix(path), on: loop)
        #expect(path.withPlatformString { unlink($0) } == 0)
        let second = try Listener(at: .unix(path), on: loop)
        first.close()
        #expect(Self.status(path) != nil)
        second.close()
        #expect(Self.status(path) == nil)
    }

    @Test("Paths up to the 107 bytes of the kernel's address", arguments: [106, 107])
    func longPaths(_ length: Int) async throws {
        let folder = try ScratchFolder("socket")
        defer { folder.remove() }
        var path = folder.filePath
        path.append(String(repeating: "s", count: length - path.length - 1))
        #expect(path.length == length)
        for _ in 0..<2 {
            let listener = try Listener(at: .unix(path), on: loop)
            let accepted = Box<Peer?>(nil)
            listener.start { accepted.value = Peer($0) }
            #expect(Self.status(path).map { $0.st_mode } == S_IFSOCK | 0o600)
            let dialer = Peer(try await Socket.connect(to: .unix(path), on: loop))
            await dialer.send([1, 2, 3], thenEnd: true)
            try await eventually("came") { await accepted.value?.received == [1, 2, 3] }
            #expect(Self.code { () throws(SocketError) in try Listener(at: .unix(path), on: loop) } == .addressInUse)
            listener.close()
            #expect(Self.status(path) == nil)
        }
    }

    @Test("A path that is too long, a folder that is missing, no path")
    func badPaths() throws {
        let folder = try ScratchFolder("socket")
        defer { folder.remove() }
        let long = folder.filePath.appending(String(repeating: "x", count: 107 - folder.filePath.length))
        #expect(long.length == 108)
        #expect(Self.code { () throws(SocketError) in try Listener(at: .unix(long), on: loop) } == .other)
        #expect(Self.status(long) == nil)
        let missing = folder.filePath.appending("none").appending("node")
        #expect(Self.code { () throws(SocketError) in try Listener(at: .unix(missing), on: loop) } == .notFound)
        #expect(Self.code { () throws(SocketError) in try Listener(at: .unix(""), on: loop) } == .other)
    }

    @Test("Exactly one of several programs that start at once gets the file", arguments: 0..<10)
    func startRace(_ round: Int) async throws {
        let folder = try ScratchFolder("socket")
        defer { folder.remove() }
        let path = folder.filePath.appending("node")
        try Self.leaveStale(at: path)
        let codes = await withTaskGroup(of: (Listener?, SocketError.Code?).self) { group in
            for _ in 0..<8 {
                group.addTask { [loop] in
                    do throws(SocketError) {
                        return (try Listener(at: .unix(path), on: loop), nil)
                    } catch {
                        return (nil, error.code)
                    }
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(codes.count { $0.0 != nil } == 1)
        #expect(codes.count { $0.1 == .addressInUse } == 7)
        #expect(Self.status(path) != nil)
    }
}

extension OwnProcess {
    @Suite("Listener")
    struct ListenerResourceTests {
        @Test("Near the limit of descriptors, accepting pauses, reports it once, does not spin, and resumes")
        func outOfDescriptors() async throws {
            await #expect(processExitsWith: .success) {
                let loop = EventLoop(name: "test")
                let listener = try Listener(at: .ip(.ipv4Loopback, port: 0), on: loop)
                let accepted = Box<[Socket]>([])
                let troubles = Box<[SocketError]>([])
                listener.start(
                    onTrouble: { error in troubles.change { $0.append(error) } },
                    onAccept: { socket in accepted.change { $0.append(socket) } })
                let first = try await Socket.connect(to: listener.localAddress, on: loop)
                try await eventually("accepted") { accepted.value.count == 1 }
                for round in 1...3 {
                    let dialer = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
                    // From here on only the reserve is free, because all lower numbers are in use.
                    let fillers = try Descriptors.fill(to: 128)
                    var target = sockaddr_in()
                    target.sin_family = sa_family_t(AF_INET)
                    target.sin_port = (listener.localAddress.port ?? 0).bigEndian
                    target.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
                    let connected = withUnsafePointer(to: &target) { pointer in
                        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                            connect(dialer, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
                        }
                    }
                    #expect(connected == 0)
                    try await eventually("told") { troubles.value.count == round }
                    let before = Machine.processorTime()
                    let rested = Box(false)
                    let timer = Timer(on: loop) { rested.value = true }
                    timer.schedule(after: .milliseconds(350))
                    while !rested.value { usleep(20_000) }
                    #expect(Machine.processorTime() - before < 100_000_000)
                    #expect(troubles.value.count == round)
                    #expect(accepted.value.count == round)
                    // An attempt to connect fails in plain words now, and leaves nothing behind.
                    let failure = await Dialing.failure { () async throws(SocketError) in
                        try await Socket.connect(to: listener.localAddress, on: loop)
                    }
                    #expect(failure?.code == .outOfResources)
                    for filler in fillers { close(filler) }
                    try await eventually("recovered") { accepted.value.count == round + 1 }
                    close(dialer)
                }
                #expect(
                    troubles.value.allSatisfy { $0.code == .outOfResources && $0.underlyingError == .tooManyOpenFiles })
                withExtendedLifetime(first) {}
            }
        }

        @Test("A listener releases its descriptors and handlers, and so do failed ones")
        func release() async throws {
            await #expect(processExitsWith: .success) {
                let folder = try ScratchFolder("socket")
                defer { folder.remove() }
                let loop = EventLoop(name: "test")
                let warm = try Listener(at: .ip(.ipv4Loopback, port: 0), on: loop)
                let accepted = Box<Socket?>(nil)
                warm.start { accepted.value = $0 }
                let dialed = try await Socket.connect(to: warm.localAddress, on: loop)
                try await eventually("warm") { accepted.value != nil }
                let inUse = try #require(warm.localAddress.port)
                await Machine.warmUp()
                let before = Machine.openDescriptors()
                let held = Box<[WeakBox<Box<Int>>]>([])
                for round in 0..<20 {
                    // The handler may hold a socket for a moment if it was released and not closed.
                    let path = folder.filePath.appending("node-\(round)")
                    let count = Box(0)
                    held.change { $0.append(WeakBox(count)) }
                    let listener = try Listener(at: .unix(path), on: loop)
                    #expect(throws: SocketError.self) { _ = try Listener(at: .unix(path), on: loop) }
                    #expect(throws: SocketError.self) { _ = try Listener.onAllAddresses(port: inUse, on: loop) }
                    if round & 1 == 0 { listener.start { _ in count.change { $0 += 1 } } }
                    if round & 4 == 0 { _ = try? await Socket.connect(to: listener.localAddress, on: loop) }
                    if round & 8 == 0 { listener.close() }
                }
                try await eventually("all released") {
                    held.value.allSatisfy(\.isReleased) && Machine.openDescriptors() <= before
                }
                withExtendedLifetime((warm, dialed)) {}
            }
        }
    }
}
