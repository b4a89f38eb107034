// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonProtocol

/// The path of a connection's bytes: its socket, the channel over it, and the buffers between the two.
///
/// Confined to its connection's actor. It has neither handlers nor timers: the connection calls it.
final class Wire {
    /// The most bytes that one turn of the loop reads or sends, so that other connections get their turn.
    static let turn = 1 << 20
    /// 256 KiB of encoded bytes, and the overhead of TLS: 22 bytes for each 16 KiB.
    private static let capacity = 256 << 10 + 1024

    let socket: Socket
    let channel: any Channel
    private let input = Buffer(capacity: capacity)
    private let output = Buffer(capacity: capacity)
    /// The number of bytes of `output` that the socket has taken.
    private var sent = 0

    init(socket: Socket, channel: any Channel) {
        self.socket = socket
        self.channel = channel
    }

    /// Reads and decodes for at most a turn.
    ///
    /// - Parameters:
    ///   - destination: the place for the next decoded bytes: see ``Channel``.
    ///   - deliver: gets the decoded bytes, borrowed for the time of the call; it may close this wire.
    /// - Returns: whether the other side may still send.
    func receive(
        into destination: (UnsafeMutableRawBufferPointer) -> UnsafeMutableRawBufferPointer,
        _ deliver: (UnsafeRawBufferPointer) throws(TransportError) -> Void
    ) throws(TransportError) -> Bool {
        var budget = Self.turn
        while budget > 0, !socket.isClosed {
            switch try read() {
            case .bytes(let count):
                budget -= count
                let bytes = UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(input.writable)[..<count])
                try channel.decode(bytes, into: destination, deliver: deliver)
                // A short read means that the socket is empty. It reports when it is not.
                if count < input.capacity { return true }
            case .wouldBlock:
                return true
            case .endOfFile:
                return false
            }
        }
        return true
    }

    /// Reads for at most a turn and drops the bytes.
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

    /// Whether the socket has taken all encoded bytes.
    var isEmpty: Bool { sent == output.count }

    /// Encodes the next bytes for the socket, after it has taken the last ones.
    ///
    /// - Parameter next: writes the protocol's next bytes into the given space, and returns their number.
    /// - Returns: whether there are any.
    func fill(from next: (UnsafeMutableRawBufferPointer) -> Int) throws(TransportError) -> Bool {
        sent = 0
        output.count = 0
        output.count = try channel.encode(into: output.writable, from: next)
        return output.count > 0
    }

    /// Gives the socket as much as it takes, once.
    ///
    /// - Returns: the number of bytes taken.
    func push() throws(TransportError) -> Int {
        do {
            let count = try socket.write(UnsafeRawBufferPointer(rebasing: output.bytes[sent...]))
            sent += count
            return count
        } catch {
            throw TransportError(.connectionLost, "the connection broke: \(error)")
        }
    }

    /// Ends this side's direction.
    ///
    /// Close the socket when ``discardInput()`` reports that the other side has ended its own. A socket that is closed
    /// with unread bytes destroys the last bytes that it sent (RFC 1122, section 4.2.2.13).
    func endOutput() {
        socket.wantWrite(false)
        socket.shutdownWrite()
    }
}
