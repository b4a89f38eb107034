// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonProtocol

/// The way of a connection's bytes: its socket, the channel over it, and the buffers between the two.
///
/// Confined to its connection's actor. It owns neither handlers nor timers: the connection tells it when to move.
final class Wire {
    /// Bytes read from the socket, and bytes sent to it, in one turn of the loop: others on the loop get theirs.
    static let turn = 1 << 20
    /// 256 KiB of what is encoded, and what TLS adds to that: 22 bytes to each 16 KiB.
    private static let capacity = 256 << 10 + 1024

    private let socket: Socket
    private let channel: any Channel
    private let input = Buffer(capacity: capacity)
    private let output = Buffer(capacity: capacity)
    /// How much of `output` the socket has taken.
    private var sent = 0

    init(socket: Socket, channel: any Channel) {
        self.socket = socket
        self.channel = channel
    }

    /// Who the other side is, as the channel has proved it.
    var peer: PeerIdentity? { channel.peer }

    func exportKeyingMaterial(
        _ label: String, into target: UnsafeMutableRawBufferPointer
    ) throws(TransportError) {
        try channel.exportKeyingMaterial(label, into: target)
    }

    func startHandshake() throws(TransportError) {
        try channel.start()
    }

    /// What became of an attempt to read.
    enum Input {
        /// Nothing is there now, or the turn is over.
        case paused
        /// The other side sends no more.
        case ended
    }

    /// Reads and decodes for at most a turn.
    ///
    /// - Parameters:
    ///   - room: where what is decoded next is wanted: see ``Channel``.
    ///   - deliver: gets what was decoded, borrowed for the time of the call; it may close this wire.
    func receive(
        into room: (UnsafeMutableRawBufferPointer) -> UnsafeMutableRawBufferPointer,
        _ deliver: (UnsafeRawBufferPointer) throws(TransportError) -> Void
    ) throws(TransportError) -> Input {
        var budget = Self.turn
        while budget > 0, !socket.isClosed {
            switch try read() {
            case .bytes(let count):
                budget -= count
                let bytes = UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(input.writable)[..<count])
                try channel.decode(bytes, into: room, deliver: deliver)
                // Less than there was room for: the socket is empty, and says when it is not.
                if count < input.capacity { return .paused }
            case .wouldBlock:
                return .paused
            case .endOfFile:
                return .ended
            }
        }
        return .paused
    }

    /// Reads for at most a turn and forgets what came.
    ///
    /// - Returns: whether the other side may still send.
    func discardInput() -> Bool {
        var budget = Self.turn
        while budget > 0 {
            switch try? read() {
            case .bytes(let count): budget -= count
            case .wouldBlock: return true
            case .endOfFile, nil: return false
            }
        }
        return true
    }

    private func read() throws(TransportError) -> Socket.ReadResult {
        do {
            return try socket.read(into: input.writable)
        } catch {
            throw TransportError(.connectionLost, "the connection broke: \(error)")
        }
    }

    /// Whether everything that was encoded has gone to the socket.
    var isEmpty: Bool { sent == output.count }

    /// Encodes the next bytes for the socket, once it has taken the last ones.
    ///
    /// - Parameter next: writes the protocol's next bytes into the space it is given, and returns how many.
    /// - Returns: whether there are any.
    func fill(from next: (UnsafeMutableRawBufferPointer) -> Int) throws(TransportError) -> Bool {
        sent = 0
        output.count = 0
        output.count = try channel.encode(into: output.writable, from: next)
        return output.count > 0
    }

    /// Gives the socket as much as it takes, once.
    ///
    /// - Returns: how many bytes it took.
    func push() throws(TransportError) -> Int {
        do {
            let count = try socket.write(UnsafeRawBufferPointer(rebasing: output.bytes[sent...]))
            sent += count
            return count
        } catch {
            throw TransportError(.connectionLost, "the connection broke: \(error)")
        }
    }

    /// Has the socket tell when it takes bytes again.
    func wantWrite(_ wanted: Bool) {
        socket.wantWrite(wanted)
    }

    /// Queues the channel's farewell, such as TLS's `close_notify`.
    func sayFarewell() {
        channel.finish()
    }

    /// Ends this side's direction. The socket is to be closed when ``discardInput()`` tells that the other side has
    /// ended its own: a socket that is closed while bytes lie unread in it destroys what it sent last (RFC 1122,
    /// section 4.2.2.13).
    func endOutput() {
        socket.wantWrite(false)
        socket.shutdownWrite()
    }

    func close() {
        socket.close()
    }
}
