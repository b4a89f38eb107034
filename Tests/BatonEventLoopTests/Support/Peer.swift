// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonTestSupport
import SystemPackage
import Testing

/// One end of a connection, built like Baton's driver: an actor whose executor is the loop of its socket, entered
/// synchronously from the socket's handlers.
actor Peer {
    nonisolated let socket: Socket
    nonisolated var unownedExecutor: UnownedSerialExecutor { socket.loop.asUnownedSerialExecutor() }

    private(set) var received: [UInt8] = []
    private(set) var isEnded = false
    private(set) var error: SocketError?
    private(set) var writeError: SocketError?
    private(set) var readCalls = 0
    private(set) var writeCalls = 0
    private var outbound: [UInt8] = []
    private var sent = 0
    private var endsAfterSending = false
    private let chunk: Int

    init(_ socket: Socket, chunk: Int = 65536, paused: Bool = false) {
        self.socket = socket
        self.chunk = chunk
        if paused { socket.pauseReading(true) }
        socket.start(
            onReadable: { [weak self] in self?.assumeIsolated { $0.read() } },
            onWritable: { [weak self] in self?.assumeIsolated { $0.write() } })
    }

    var receivedCount: Int { received.count }
    var hasSentAll: Bool { outbound.isEmpty }

    func send(_ bytes: [UInt8], thenEnd: Bool = false) {
        outbound.append(contentsOf: bytes)
        endsAfterSending = thenEnd
        write()
    }

    private func read() {
        readCalls += 1
        let size = chunk
        do throws(SocketError) {
            let (result, bytes) = try Self.readOnce(socket, size)
            switch result {
            case .bytes:
                received.append(contentsOf: bytes)
            case .wouldBlock: break
            case .endOfFile: isEnded = true
            }
        } catch {
            self.error = error
        }
    }

    static func readOnce(_ socket: Socket, _ size: Int) throws(SocketError) -> (Socket.ReadResult, [UInt8]) {
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: size, alignment: 1)
        defer { memory.deallocate() }
        let result = try socket.read(into: memory)
        guard case .bytes(let count) = result else { return (result, []) }
        return (result, Array(memory[..<count]))
    }

    private func write() {
        writeCalls += 1
        do throws(SocketError) {
            while sent < outbound.count {
                let slice = Array(outbound[sent..<min(sent + 262_144, outbound.count)])
                let taken = try Self.writeOnce(socket, slice)
                guard taken > 0 else { return socket.wantWrite(true) }
                sent += taken
            }
            outbound = []
            sent = 0
            socket.wantWrite(false)
            if endsAfterSending { socket.shutdownWrite() }
        } catch {
            writeError = error
            socket.wantWrite(false)
        }
    }

    static func writeOnce(_ socket: Socket, _ bytes: [UInt8]) throws(SocketError) -> Int {
        var count = 0
        var failure: SocketError?
        bytes.withUnsafeBytes { pointer in
            do throws(SocketError) { count = try socket.write(pointer) } catch { failure = error }
        }
        if let failure { throw failure }
        return count
    }
}

/// Bytes that show a lost, doubled or moved byte: a pattern of 251 bytes, which divides no buffer size.
func pattern(_ count: Int) -> [UInt8] {
    let unit = (0..<251).map { UInt8($0) }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(count + unit.count)
    while bytes.count < count { bytes.append(contentsOf: unit) }
    bytes.removeLast(bytes.count - count)
    return bytes
}

/// Two connected peers over TCP on the loopback, with their loops.
func tcpPair(chunk: Int = 65536, paused: Bool = false) async throws -> (dialer: Peer, acceptor: Peer) {
    let accepting = EventLoop(name: "test-accepting")
    let dialing = EventLoop(name: "test-dialing")
    let listener = try Listener(at: .ip(.ipv4Loopback, port: 0), on: accepting)
    let accepted = Box<Socket?>(nil)
    listener.start { accepted.value = $0 }
    let socket = try await Socket.connect(to: listener.localAddress, on: dialing)
    try await eventually("accepted") { accepted.value != nil }
    listener.close()
    return (Peer(socket), Peer(try #require(accepted.value), chunk: chunk, paused: paused))
}

/// Two connected peers over Unix-domain sockets.
func unixPair(chunk: Int = 65536, paused: Bool = false) throws -> (Peer, Peer) {
    let pair = try Socket.pair(on: EventLoop(name: "test-first"), EventLoop(name: "test-second"))
    return (Peer(pair.0), Peer(pair.1, chunk: chunk, paused: paused))
}
