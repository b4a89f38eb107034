// SPDX-License-Identifier: Apache-2.0

// Calls of the application.
extension Session {
    /// A sixteenth of the connection's window is worth a CREDIT frame. At least the rest is always granted.
    static let connectionWindowParts = 16

    /// Opens a stream with a request.
    ///
    /// Bytes may be queued at once. A dialer may open up to `Limits.streamsBeforeHello` streams before the peer's HELLO
    /// has come, which saves a round trip; their bytes wait for credit.
    ///
    /// - Parameter request: an encoded message of at most `Limits.messageBytes`; handed over.
    /// - Returns: the id of the new stream.
    /// - Throws: `StreamOpenError`; the connection is unchanged.
    package mutating func open(_ request: Buffer, now: Instant) throws(StreamOpenError) -> StreamID {
        advance(to: now)
        if let failure { throw .dead(failure) }
        guard !isGoAwaySent, goAwayReceived == nil else { throw .goingAway }
        guard request.count <= Limits.messageBytes else { throw .messageTooLarge }
        if let peer {
            guard streams.openLocal < Int(peer.openStreams), streams.unansweredLocal < Int(peer.unansweredRequests)
            else { throw .tooMuchUnderWay }
        } else {
            guard role == .dialer, streams.openLocal < Limits.streamsBeforeHello else { throw .helloAwaited }
        }
        guard control.count < limits.queuedControlFrames / 2 else { throw .tooMuchUnderWay }
        guard let id = streams.useLocal() else { throw .goingAway }
        streams.addLocal(
            SessionStream(
                id: id, isLocal: true, message: request, sendWindow: SendWindow(limit: peer?.streamCredit ?? 0),
                receiveWindow: newReceiveWindow()))
        buckets.credits.refund(1)
        enqueue(.open(id))
        return id
    }

    /// Answers the request of a stream that the peer opened. Bytes that were queued before follow the answer.
    ///
    /// - Parameter message: an encoded message of at most `Limits.messageBytes`; handed over.
    /// - Throws: `StreamRespondError`; the stream is unchanged.
    package mutating func respond(_ id: StreamID, _ message: Buffer) throws(StreamRespondError) {
        guard let stream = streams[id], stream.isAwaitingOwnAnswer else { throw .notAwaitingAnswer }
        guard message.count <= Limits.messageBytes else { throw .messageTooLarge }
        stream.answer(with: message)
        streams.answered(stream)
        enqueue(.response(id))
        scheduleIfSendable(stream)
    }

    /// Queues bytes to send, without a copy: the buffer is handed over.
    ///
    /// This queue has no bound: the caller stops when `queuedBytes(of:)` is enough, and asks again after each output.
    /// On a stream that is gone or finished the bytes are dropped.
    package mutating func send(_ id: StreamID, _ data: Buffer) {
        guard data.count > 0, let stream = streams[id], stream.enqueue(data) else { return }
        scheduleIfSendable(stream)
    }

    /// Sets the number of slices (`Limits.sliceBytes`) that a stream sends at each of its turns, 1 to
    /// ``Limits/maximumWeight``. The default is 1.
    ///
    /// A stream that somebody waits for gets more than bulk. Of two streams that always have bytes, one of weight 8
    /// gets eight ninths of the link, and the other still advances. Does nothing on a stream that is gone.
    package mutating func setWeight(_ weight: Int, of id: StreamID) {
        precondition((1...Limits.maximumWeight).contains(weight), "a turn has 1 to \(Limits.maximumWeight) slices")
        streams[id]?.weight = weight
    }

    /// Ends this side's direction: END follows the queued bytes. A request that was never answered is reset with
    /// `internalError` instead.
    package mutating func finish(_ id: StreamID) {
        guard let stream = streams[id] else { return }
        if stream.isAwaitingOwnAnswer { return reset(id, code: .internalError) }
        guard stream.finish() else { return }
        if stream.isEndDue { enqueue(.end(id)) }
    }

    /// Aborts a stream in both directions: drops queued and arriving bytes, and returns their credit. Does nothing on a
    /// stream that is gone.
    ///
    /// `closed` follows when the RESET is sent, which is at once unless more are waiting than `Limits.sentResets`
    /// allows. Until then the stream counts as open, so ``open(_:now:)`` may be refused.
    package mutating func reset(_ id: StreamID, code: ApplicationErrorCode) {
        guard let stream = streams[id] else { return }
        // An OPEN that was not written needs no RESET: the peer does not know the stream, and ids may be skipped.
        let isUnsent = stream.isLocal && stream.message != nil
        if isUnsent || !stream.countsAsOpen { abandon(stream) } else { abort(stream, code) }
    }

    /// Counts `count` delivered bytes of a stream as consumed, so that as much credit may be granted.
    ///
    /// Call it when the bytes have left the memory that they were delivered to. Do not wait for more than half of
    /// ``window(of:)`` before: the peer may not be allowed to send more. Does nothing for streams that are gone, whose
    /// credit was returned when they went.
    package mutating func consumed(_ id: StreamID, _ count: Int, now: Instant) {
        advance(to: now)
        guard let stream = streams[id] else { return }
        let counted = min(max(count, 0), stream.receiveWindow.unconsumed)
        guard counted > 0 else { return }
        stream.receiveWindow.consume(counted)
        grow(stream, to: limits.activeStreamWindow)
        returnCredit(counted)
        closeIfDone(stream)
    }

    /// Begins a polite close: no new streams in either direction, old ones finish, then `Event.drained`. Later calls do
    /// nothing.
    package mutating func goAway(code: ApplicationErrorCode = .noError) {
        guard failure == nil, !isGoAwaySent else { return }
        isGoAwaySent = true
        enqueue(.goAway(lastStream: streams.highestPeer, code))
        reportIfDrained()
    }

    /// Whether no stream is open or waits until its bytes are consumed. Aborted streams whose RESET waits do not count.
    package var isIdle: Bool { streams.isEmpty }

    /// Whether a stream has not been `closed` yet.
    package func holds(_ id: StreamID) -> Bool { streams.known(id) != nil }

    /// Bytes of a stream that wait to be sent, 0 for one that is gone.
    package func queuedBytes(of id: StreamID) -> Int {
        streams[id]?.queuedBytes ?? 0
    }

    /// The window of a stream, in bytes: how far the peer may send ahead of consumption.
    package func window(of id: StreamID) -> Int {
        streams[id]?.receiveWindow.size ?? 0
    }

    /// The window of the connection, in bytes.
    package var connectionWindow: Int { receiveWindow.size }

    /// Raises the connection's window beyond what HELLO stated, for a driver that grants more once it knows the peer.
    /// Windows never shrink.
    ///
    /// - Parameters:
    ///   - size: the new window, in bytes.
    ///   - maximum: the size to which it may grow, in place of `Limits.maximumConnectionWindow`.
    package mutating func widenConnectionWindow(to size: Int, maximum: Int) {
        guard failure == nil else { return }
        maximumWindow = max(maximumWindow, maximum)
        growConnectionWindow(to: size)
        // Even a small raise is sent, because this happens once. If nothing is new, no frame is written.
        if !isCreditQueued {
            isCreditQueued = true
            enqueue(.connectionCredit)
        }
    }

    /// Raises a stream's window at once, for a caller that expects much data. Does nothing on a stream that is gone.
    ///
    /// - Parameter size: the new window, in bytes. It is limited by what the other streams leave of the connection's
    ///   window. Windows never shrink.
    package mutating func widenWindow(of id: StreamID, to size: Int) {
        guard failure == nil, let stream = streams[id] else { return }
        grow(stream, to: size)
        queueConnectionCreditIfDue()
    }

    /// Grows a stream's window, to at most half of what the others leave of the connection's, and queues a CREDIT if it
    /// is worth a frame.
    ///
    /// So streams whose bytes nobody consumes never stop others, however far their windows have grown. These are
    /// dynamic thresholds (Choudhury and Hahne, "Dynamic Queue Length Thresholds for Shared-Memory Packet Switches",
    /// IEEE/ACM Transactions on Networking 6(2), 1998), of promised bytes in place of queued ones. A promise cannot be
    /// taken back, so the first credit of future streams is set aside (``Limits/reservedStreams``).
    private mutating func grow(_ stream: SessionStream, to size: Int) {
        if size > stream.receiveWindow.size, stream.canReceive {
            let others = streams.all.reduce(0) { $0 + $1.promised } - stream.promised
            let reserved = min(Limits.reservedStreams * limits.initialStreamWindow, maximumWindow / 4)
            let granted = maximumWindow - maximumWindow / Self.connectionWindowParts
            stream.receiveWindow.grow(to: min(size, (granted - reserved - others) / 2))
            // A stream's window is of no use beyond the connection's.
            if stream.receiveWindow.size > limits.initialStreamWindow {
                growConnectionWindow(to: 2 * (others + stream.receiveWindow.size))
            }
        }
        if stream.canReceive, stream.receiveWindow.isCreditDue, !stream.isCreditQueued {
            stream.isCreditQueued = true
            enqueue(.credit(stream.id))
        }
    }

    private mutating func growConnectionWindow(to size: Int) {
        receiveWindow.grow(to: min(size, maximumWindow))
    }

    func newReceiveWindow() -> ReceiveWindow { ReceiveWindow(size: limits.initialStreamWindow, parts: 4) }

    /// Puts a stream that has bytes and credit into the ring.
    mutating func scheduleIfSendable(_ stream: SessionStream) {
        guard !stream.isInRing, stream.sendable > 0 else { return }
        stream.isInRing = true
        ring.append(stream)
    }
}
