// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonEventLoop

/// A connection between an inviter and a joiner. It carries one message after the other, each with a deadline.
///
/// Nothing is read while no message is awaited, and nothing behind the awaited one. So a peer costs no more memory than
/// one message of the awaited type.
@ControlLoop
final class PairingSocket {
    private typealias Waiter = CheckedContinuation<Result<PairingMessage, PairingError>, Never>

    private let socket: Socket

    private var reader: PairingReader?
    private var waiter: Waiter?
    private var deadline: BatonEventLoop.Timer?
    private var unsent: ArraySlice<UInt8> = []

    /// Takes over a connection of the control loop. Call ``start()`` next.
    nonisolated init(_ socket: Socket) {
        self.socket = socket
    }

    /// Begins to report. Call once.
    func start() {
        socket.pauseReading(true)
        socket.start(
            onReadable: { [weak self] in ControlLoop.assumeIsolated { self?.read() } },
            onWritable: { [weak self] in ControlLoop.assumeIsolated { self?.flush() } })
        deadline = BatonEventLoop.Timer { [weak self] in self?.finish(.failure(.timedOut)) }
    }

    /// Sends a message. A failure shows when the next message is awaited.
    func send(_ message: PairingMessage) {
        unsent += message.encoded
        flush()
    }

    /// Waits for a message. One caller waits at a time.
    ///
    /// - Parameters:
    ///   - kinds: the types that may come, besides `end`.
    ///   - limit: how long to wait.
    /// - Throws: ``PairingError``, `ended` if the other side said so, and `disconnected` after ``close(saying:)`` and
    ///   after a cancellation.
    func receive(
        _ kinds: Set<PairingMessage.Kind>, within limit: Duration
    ) async throws(PairingError) -> PairingMessage {
        guard !socket.isClosed, waiter == nil else { throw .disconnected }
        reader = PairingReader(expecting: kinds)
        deadline?.schedule(after: limit)
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { (waiter: Waiter) in
                self.waiter = waiter
                socket.pauseReading(false)
            }
        } onCancel: {
            ControlLoop.execute { self.close() }
        }
        let message = try result.get()
        if message.kind == .end { throw .ended(PairingEnd(rawValue: message.body[0])) }
        return message
    }

    /// Closes the connection, and says why if there is room for that. Idempotent.
    func close(saying reason: PairingEnd? = nil) {
        if let reason { send(PairingMessage(.end, [reason.rawValue])) }
        socket.close()
        finish(.failure(.disconnected))
    }

    private func flush() {
        do {
            while !unsent.isEmpty {
                let count = try unsent.withUnsafeBytes { bytes throws(SocketError) in try socket.write(bytes) }
                guard count > 0 else { break }
                unsent = unsent.dropFirst(count)
            }
            socket.wantWrite(!unsent.isEmpty)
        } catch {
            unsent = []
            socket.wantWrite(false)
        }
    }

    private func read() {
        guard var reader else { return }
        var buffer = [UInt8](repeating: 0, count: reader.missing)
        do {
            switch try buffer.withUnsafeMutableBytes({ buffer throws(SocketError) in try socket.read(into: buffer) }) {
            case .bytes(let count):
                let message = try buffer.prefix(count).withUnsafeBytes { bytes throws(PairingError) in
                    try reader.receive(bytes)
                }
                self.reader = reader
                if let message { finish(.success(message)) }
            case .wouldBlock:
                break
            case .endOfFile:
                finish(.failure(.disconnected))
            }
        } catch {
            finish(.failure(error as? PairingError ?? .disconnected))
        }
    }

    private func finish(_ result: Result<PairingMessage, PairingError>) {
        reader = nil
        deadline?.cancel()
        socket.pauseReading(true)
        waiter?.resume(returning: result)
        waiter = nil
    }
}
