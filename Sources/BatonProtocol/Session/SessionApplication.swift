// SPDX-License-Identifier: Apache-2.0

// What the application asks for.
extension Session {
    /// A part of the connection's window is worth a frame; the rest is always granted.
    static let connectionWindowParts = 16

    /// Opens a stream with a request.
    ///
    /// Bytes may be queued behind it at once. A dialer may open up to `Limits.streamsBeforeHello` streams before the
    /// peer's HELLO came, which saves a round trip; their bytes wait for credit.
    ///
    /// - Parameter request: an encoded message of at most `Limits.messageBytes`; handed over.
    /// - Returns: the id of the new stream.
    /// - Throws: `StreamOpenError`; the connection is as it was.
    package mutating func open(_ request: Buffer, now: Instant) throws(StreamOpenError) -> StreamID {
        advance(to: now)
        if let failure { throw .dead(failure) }
        guard goAwaySent == nil, goAwayReceived == nil else { throw .goingAway }
        guard request.count <= Limits.messageBytes else { throw .messageTooLarge }
        if let peer {
            guard streams.openLocal < Int(peer.openStreams) else { throw .tooManyStreams }
            guard streams.unansweredLocal < Int(peer.unansweredRequests) else { throw .tooManyUnanswered }
        } else {
            switch role {
            case .acceptor: throw .helloAwaited
            case .dialer: guard streams.openLocal < Limits.streamsBeforeHello else { throw .helloAwaited }
            }
        }
        guard control.count < limits.queuedControlFrames / 2 else { throw .outputFull }
        guard let id = streams.useLocal() else { throw .exhausted }
        streams.addLocal(
            Stream(
                id: id, isLocal: true, message: request, sendWindow: SendWindow(limit: peer?.streamCredit ?? 0),
                receiveWindow: newReceiveWindow()))
        enqueue(.open(id))
        return id
    }

    /// Answers the request of a stream that the peer opened. Bytes queued before follow it.
    ///
    /// - Parameter message: an encoded message of at most `Limits.messageBytes`; handed over.
    /// - Throws: `StreamRespondError`; the stream is as it was.
    package mutating func respond(_ id: StreamID, _ message: Buffer) throws(StreamRespondError) {
        guard let stream = streams[id] else { throw .unknownStream }
        guard stream.isAwaitingOwnAnswer else { throw .notAwaitingAnswer }
        guard message.count <= Limits.messageBytes else { throw .messageTooLarge }
        stream.answer(with: message)
        streams.answered(stream)
        enqueue(.response(id))
        offerTurn(stream)
    }

    /// Queues bytes to send; no copy, the buffer is handed over.
    ///
    /// Nothing is bounded here: the caller stops when `queuedBytes(of:)` is enough and goes on at `Event.writable`. On
    /// a stream that is gone or finished the bytes are dropped.
    package mutating func send(_ id: StreamID, _ data: Buffer) {
        guard data.count > 0, let stream = streams[id], stream.enqueue(data) else { return }
        offerTurn(stream)
    }

    /// Gives a stream so many slices (`Limits.sliceBytes`) at each of its turns: 1 to ``Limits/heaviest``, 1 unless
    /// told.
    ///
    /// For what somebody waits for beside what takes its time: of two streams that always have bytes, one of weight 8
    /// has eight ninths of the link, and nothing stands still for it. On a stream that is gone nothing happens.
    package mutating func setWeight(_ weight: Int, of id: StreamID) {
        precondition((1...Limits.heaviest).contains(weight), "a turn has 1 to \(Limits.heaviest) slices")
        streams[id]?.weight = weight
    }

    /// Ends this side's direction: END follows the queued bytes. A request that was never answered cannot be finished;
    /// it is reset with `internalError`.
    package mutating func finish(_ id: StreamID) {
        guard let stream = streams[id] else { return }
        if stream.isAwaitingOwnAnswer { return reset(id, code: .internalError) }
        guard stream.finish() else { return }
        if stream.isEndDue { enqueue(.end(id)) }
    }

    /// Aborts a stream in both directions: drops what is queued and what comes, gives the credit back. On a stream that
    /// is gone nothing happens.
    ///
    /// `closed` follows when the RESET has its turn: at once, except in a flood of more than `Limits.sentResets`. Until
    /// then the stream keeps its place, and ``open(_:now:)`` may find none; it is of no other use.
    package mutating func reset(_ id: StreamID, code: ApplicationErrorCode) {
        guard let stream = streams[id] else { return }
        // An OPEN that was not written needs no RESET: the peer never hears of the stream, and ids may be skipped.
        let isUnheard = stream.isLocal && stream.message != nil
        if isUnheard || !stream.countsAsOpen { abandon(stream) } else { abort(stream, code) }
    }

    /// The application consumed `count` delivered bytes of a stream: credit for as many may be granted.
    ///
    /// Call it when the bytes have left the memory that they were delivered to, and do not wait for more bytes than
    /// half of ``window(of:)`` before: the peer may not be allowed to send them. For streams that are gone it does
    /// nothing: their bytes were given back when they went.
    package mutating func consumed(_ id: StreamID, _ count: Int, now: Instant) {
        advance(to: now)
        guard let stream = streams[id] else { return }
        let counted = min(max(count, 0), stream.receiveWindow.unconsumed)
        guard counted > 0 else { return }
        let useful = stream.receiveWindow.consume(counted, now: present, roundTrip: liveness.roundTrip)
        grow(stream, to: max(useful, limits.activeStreamWindow))
        giveBack(counted)
        settle(stream)
    }

    /// Begins a polite close: no new streams either way, old ones finish, then `Event.drained`. Once is enough.
    package mutating func goAway(code: ApplicationErrorCode = .noError) {
        guard failure == nil, goAwaySent == nil else { return }
        goAwaySent = GoAway(lastStream: streams.highestPeer, code: code)
        enqueue(.goAway(lastStream: streams.highestPeer, code))
        reportIfDrained()
    }

    /// Whether `open` would be allowed now.
    package var canOpen: Bool {
        guard failure == nil, goAwaySent == nil, goAwayReceived == nil, !streams.isExhausted,
            control.count < limits.queuedControlFrames / 2
        else { return false }
        if let peer {
            return streams.openLocal < Int(peer.openStreams)
                && streams.unansweredLocal < Int(peer.unansweredRequests)
        }
        switch role {
        case .acceptor: return false
        case .dialer: return streams.openLocal < Limits.streamsBeforeHello
        }
    }

    /// Whether no stream is open or waits for its bytes to be consumed; those whose RESET waits are not.
    package var isIdle: Bool { streams.isEmpty }

    /// Whether a stream has not been `closed` yet.
    package func holds(_ id: StreamID) -> Bool { streams.known(id) != nil }

    /// Bytes of a stream that wait to be sent, 0 for one that is gone.
    package func queuedBytes(of id: StreamID) -> Int {
        streams[id]?.queuedBytes ?? 0
    }

    /// Bytes that the peer's credit allows on a stream beyond those queued, by the stream's own credit.
    package func credit(of id: StreamID) -> Int {
        guard let stream = streams[id] else { return 0 }
        return max(0, stream.sendWindow.available - stream.queuedBytes)
    }

    /// The shortest round trip so far, nil before the first PONG.
    package var roundTrip: Duration? {
        liveness.roundTrip.map { .nanoseconds(Int64(clamping: $0)) }
    }

    /// The present window of a stream, in bytes: how much the peer may send ahead of what is consumed.
    package func window(of id: StreamID) -> Int {
        streams[id]?.receiveWindow.size ?? 0
    }

    /// The present window of the connection, in bytes.
    package var connectionWindow: Int { receiveWindow.size }

    /// Lets the peer send more on the connection than its HELLO was told: what a driver can promise once it knows who
    /// the peer is. Windows never shrink.
    ///
    /// - Parameters:
    ///   - size: the connection's window from now on, in bytes.
    ///   - maximum: the most it grows to, in place of `Limits.maximumConnectionWindow`.
    package mutating func widenConnectionWindow(to size: Int, maximum: Int) {
        guard failure == nil else { return }
        receiveWindow.widen(to: size, maximum: maximum)
        // However little it is: it comes once. Where nothing is new, no frame is written.
        if !isCreditQueued {
            isCreditQueued = true
            enqueue(.connectionCredit)
        }
    }

    /// Lets the peer send more on a stream at once than its HELLO was told: for who knows that much is about to come.
    /// On a stream that is gone nothing happens.
    ///
    /// - Parameter size: the stream's window from now on, in bytes, if the others leave so much of the connection's and
    ///   `Limits.maximumStreamWindow` is not less. Windows never shrink.
    package mutating func widenWindow(of id: StreamID, to size: Int) {
        guard failure == nil, let stream = streams[id] else { return }
        grow(stream, to: size)
        offerConnectionCredit()
    }

    /// Lets a stream's window grow to half of what the others leave of the connection's, and tells the peer if that is
    /// worth a frame.
    ///
    /// So however far the windows of streams have grown that are full of what nobody consumes, others go on: these are
    /// dynamic thresholds (Choudhury and Hahne, "Dynamic Queue Length Thresholds for Shared-Memory Packet Switches",
    /// IEEE/ACM Transactions on Networking 6(2), 1998) of promised bytes in place of queued ones. Since no promise is
    /// taken back, the first credit of streams that are yet to come is left out of what is divided
    /// (``Limits/reservedStreams``).
    private mutating func grow(_ stream: Stream, to size: Int) {
        if size > stream.receiveWindow.size, stream.canReceive {
            let others = streams.all.reduce(0) { $0 + $1.promised } - stream.promised
            let whole = receiveWindow.maximum
            let reserved = min(Limits.reservedStreams * limits.initialStreamWindow, whole / 4)
            let granted = whole - whole / Self.connectionWindowParts
            stream.receiveWindow.grow(to: min(size, (granted - reserved - others) / 2))
            // What is promised for streams is of no use when the connection's window is smaller.
            if stream.receiveWindow.size > limits.initialStreamWindow {
                receiveWindow.grow(to: 2 * (others + stream.receiveWindow.size))
            }
        }
        if stream.canReceive, stream.receiveWindow.isCreditDue, !stream.isCreditQueued {
            stream.isCreditQueued = true
            enqueue(.credit(stream.id))
        }
    }

    func newReceiveWindow() -> ReceiveWindow {
        ReceiveWindow(
            initial: limits.initialStreamWindow, maximum: limits.maximumStreamWindow, parts: 4, now: present)
    }

    /// Puts a stream that has bytes and credit into the ring.
    mutating func offerTurn(_ stream: Stream) {
        guard !stream.isInRing, stream.sendable > 0 else { return }
        stream.isInRing = true
        ring.append(stream)
    }
}
