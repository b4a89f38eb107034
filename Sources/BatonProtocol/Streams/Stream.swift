// SPDX-License-Identifier: Apache-2.0

/// One stream of a connection: the state of its two directions, its windows, and what waits to be sent.
///
/// A class so that the table, the round-robin ring and the caller share one state without copies. It never leaves the
/// session.
final class Stream {
    private enum Sending {
        /// The peer asked and this side has not answered; nothing may be sent before the RESPONSE.
        case awaitingAnswer
        case open
        /// No more is queued by the application; END follows the queued bytes.
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

    /// What becomes of a DATA frame.
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
    /// Bytes of the first queued buffer that are sent.
    private var sentOfFirst = 0
    /// Bytes that wait to be sent.
    private(set) var queuedBytes = 0

    // What the stream already stands in, so that it stands there once.
    var isInRing = false
    /// How many slices its turn has.
    var weight = 1
    /// Bytes of its turn that are left, once it has begun; then it is the first in the ring.
    var turnLeft: Int?
    var isCreditQueued = false
    var isWritableReported = false
    /// Whether this side aborted it, and its RESET waits.
    var isAborted = false
    /// Whether the application has heard of it.
    var isReported = true
    /// Whether it still counts against the limit of open streams, and of unanswered requests.
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
        switch receiving {
        case .open: receiveWindow.receive(count) ? .accepted : .creditExceeded
        case .awaitingAnswer, .ended: .unexpected
        }
    }

    /// The peer's RESPONSE came. False when it may not.
    func receiveResponse() -> Bool {
        switch receiving {
        case .awaitingAnswer:
            receiving = .open
            return true
        case .open, .ended:
            return false
        }
    }

    /// The peer's END came. False when it may not.
    func receiveEnd() -> Bool {
        switch receiving {
        case .open:
            receiving = .ended
            return true
        case .awaitingAnswer, .ended:
            return false
        }
    }

    /// Whether more bytes can come, so that credit is of use.
    var canReceive: Bool {
        switch receiving {
        case .awaitingAnswer, .open: true
        case .ended: false
        }
    }

    /// What the peer may make this side hold of the stream, in bytes.
    var promised: Int { canReceive ? receiveWindow.size : receiveWindow.unconsumed }

    // MARK: Sending

    var isAwaitingOwnAnswer: Bool {
        switch sending {
        case .awaitingAnswer: true
        case .open, .finishing, .finished: false
        }
    }

    /// Takes the answer to the peer's request. The caller has checked `isAwaitingOwnAnswer`.
    func answer(with response: Buffer) {
        message = response
        sending = .open
    }

    /// Takes bytes to send. False when the direction is already finished.
    func enqueue(_ data: Buffer) -> Bool {
        switch sending {
        case .awaitingAnswer, .open:
            queue.append(data)
            queuedBytes += data.count
            return true
        case .finishing, .finished:
            return false
        }
    }

    /// No more bytes will be queued. False when that was known.
    func finish() -> Bool {
        switch sending {
        case .open:
            sending = .finishing
            return true
        case .awaitingAnswer, .finishing, .finished:
            return false
        }
    }

    /// Whether END is all that is left to send.
    var isEndDue: Bool {
        switch sending {
        case .finishing: queuedBytes == 0
        case .awaitingAnswer, .open, .finished: false
        }
    }

    func endWritten() {
        sending = .finished
    }

    /// Bytes that the stream could put into DATA frames now, as far as its own state and credit go.
    var sendable: Int {
        switch sending {
        case .open, .finishing: min(queuedBytes, sendWindow.available)
        case .awaitingAnswer, .finished: 0
        }
    }

    /// Copies the next `count` queued bytes to `target` and charges the stream's credit. The caller has checked
    /// `sendable`.
    func take(_ count: Int, to target: UnsafeMutableRawPointer) {
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

    /// Drops what waits to be sent.
    func dropQueued() {
        queue.removeAll()
        sentOfFirst = 0
        queuedBytes = 0
        message = nil
    }

    // MARK: The end

    /// Whether both directions are at their end on the wire.
    var isClosed: Bool {
        switch (sending, receiving) {
        case (.finished, .ended): true
        case (.awaitingAnswer, _), (.open, _), (.finishing, _), (.finished, .awaitingAnswer), (.finished, .open): false
        }
    }

    /// Whether nothing is left to remember: closed, and every byte consumed.
    var isForgettable: Bool {
        isClosed && receiveWindow.unconsumed == 0
    }
}
