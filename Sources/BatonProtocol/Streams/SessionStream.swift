// SPDX-License-Identifier: Apache-2.0

/// One stream of a connection: the state of its two directions, its windows, and its queue.
///
/// A class, so that the table, the round-robin ring and the caller share one state without copies. It never leaves the
/// session.
final class SessionStream {
    private enum Sending {
        /// The peer asked and this side has not answered. Nothing may be sent before the RESPONSE.
        case awaitingAnswer
        case open
        /// The application queues no more bytes. END follows the queued ones.
        case finishing
        /// END is written.
        case finished
    }

    private enum Receiving {
        /// This side asked; the peer's first frame must be the RESPONSE (or RESET).
        case awaitingAnswer
        case open
        /// The peer's END came.
        case ended
    }

    /// The fate of a DATA frame.
    enum DataVerdict {
        case accepted
        /// Breaks the order of the stream: a stream error.
        case unexpected
        /// Exceeds the stream's credit: a connection error.
        case creditExceeded
    }

    let id: StreamID
    /// Whether this side opened it.
    let isLocal: Bool
    private var sending: Sending
    private var receiving: Receiving
    var sendWindow: SendWindow
    var receiveWindow: ReceiveWindow

    /// The OPEN or RESPONSE message that waits to be written.
    var message: Buffer?
    private var queue = Queue<Buffer>()
    /// Bytes of the first queued buffer that have been sent.
    private var sentOfFirst = 0
    /// Bytes that wait to be sent.
    private(set) var queuedBytes = 0

    // Whether the stream is in the ring, or in a queue, already.
    var isInRing = false
    /// The number of slices that it sends at each turn.
    var weight = 1
    /// Bytes that are left of the present turn; nil before it begins. During its turn the stream is the first in the
    /// ring.
    var turnLeft: Int?
    var isCreditQueued = false
    /// Whether this side has aborted it and its RESET waits.
    var isAborted = false
    /// Whether the application knows of it.
    var isReported = true
    /// Whether it still counts against the limits of open streams and of unanswered requests.
    var countsAsOpen = true
    var countsAsUnanswered = true

    init(id: StreamID, isLocal: Bool, message: Buffer?, sendWindow: SendWindow, receiveWindow: ReceiveWindow) {
        self.id = id
        self.isLocal = isLocal
        self.message = message
        self.sendWindow = sendWindow
        self.receiveWindow = receiveWindow
        sending = isLocal ? .open : .awaitingAnswer
        receiving = isLocal ? .awaitingAnswer : .open
    }

    // MARK: Receiving

    func receiveData(_ count: Int) -> DataVerdict {
        guard receiving == .open else { return .unexpected }
        return receiveWindow.receive(count) ? .accepted : .creditExceeded
    }

    /// Handles the peer's RESPONSE. Returns false if it is not allowed now.
    func receiveResponse() -> Bool {
        guard receiving == .awaitingAnswer else { return false }
        receiving = .open
        return true
    }

    /// Handles the peer's END. Returns false if it is not allowed now.
    func receiveEnd() -> Bool {
        guard receiving == .open else { return false }
        receiving = .ended
        return true
    }

    /// Whether more bytes can come, so that credit is useful.
    var canReceive: Bool { receiving != .ended }

    /// The number of bytes that the peer may make this side hold.
    var promised: Int { canReceive ? receiveWindow.size : receiveWindow.unconsumed }

    // MARK: Sending

    var isAwaitingOwnAnswer: Bool { sending == .awaitingAnswer }

    /// Sets the answer to the peer's request. The caller has checked `isAwaitingOwnAnswer`.
    func answer(with response: Buffer) {
        message = response
        sending = .open
    }

    /// Queues bytes to send. Returns false if the direction has ended.
    func enqueue(_ data: Buffer) -> Bool {
        guard sending == .awaitingAnswer || sending == .open else { return false }
        queue.append(data)
        queuedBytes += data.count
        return true
    }

    /// Ends the sending direction after the queued bytes. Returns false if that was done before.
    func finish() -> Bool {
        guard sending == .open else { return false }
        sending = .finishing
        return true
    }

    /// Whether END is all that is left to send.
    var isEndDue: Bool { sending == .finishing && queuedBytes == 0 }

    func endWritten() {
        sending = .finished
    }

    /// Bytes that the stream could send in DATA frames now, by its own state and credit.
    var sendable: Int {
        switch sending {
        case .open, .finishing: min(queuedBytes, sendWindow.available)
        case .awaitingAnswer, .finished: 0
        }
    }

    /// Copies the next `count` queued bytes to `target` and charges the stream's credit. The caller has checked
    /// `sendable`.
    func copyQueued(_ count: Int, to target: UnsafeMutableRawPointer) {
        var written = 0
        while written < count, let buffer = queue.first {
            let part = min(count - written, buffer.count - sentOfFirst)
            withExtendedLifetime(buffer) {
                if part > 0, let source = buffer.bytes.baseAddress {
                    (target + written).copyMemory(from: source + sentOfFirst, byteCount: part)
                }
            }
            written += part
            sentOfFirst += part
            if sentOfFirst >= buffer.count {
                queue.popFirst()
                sentOfFirst = 0
            }
        }
        queuedBytes -= written
        sendWindow.send(written)
    }

    /// Drops everything that waits to be sent.
    func dropQueued() {
        queue.removeAll()
        sentOfFirst = 0
        queuedBytes = 0
        message = nil
    }

    /// The peer's RESET ends both directions, and what came before it stays to be read.
    ///
    /// - Returns: false if one side has not answered yet: then nothing is worth reading.
    func endByReset() -> Bool {
        guard sending != .awaitingAnswer, receiving != .awaitingAnswer else { return false }
        (sending, receiving) = (.finished, .ended)
        return true
    }

    // MARK: The end

    /// Whether both directions have ended on the wire.
    var isClosed: Bool { sending == .finished && receiving == .ended }

    /// Whether the stream is closed and every byte is consumed.
    var isForgettable: Bool { isClosed && receiveWindow.unconsumed == 0 }
}
