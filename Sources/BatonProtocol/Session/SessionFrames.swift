// SPDX-License-Identifier: Apache-2.0

// The effect of each frame of the peer.
extension Session {
    /// Charges a DATA frame to the windows, and decides what happens to its payload.
    mutating func beginData(_ header: FrameHeader) throws(ConnectionError) {
        if header.length == 0 { try chargeEmpty() }
        guard receiveWindow.receive(header.length) else { throw .creditExceeded(.connection) }
        guard let stream = streams.known(header.stream) else {
            try checkForgotten(header.stream)
            return discard(header.length)
        }
        switch stream.receiveData(header.length) {
        case .accepted where stream.isAborted:
            discard(header.length)
        case .accepted:
            if header.length > 0 { input = .data(header.stream, remaining: header.length) }
        case .creditExceeded:
            throw .creditExceeded(header.stream)
        case .unexpected:
            try abortForPeer(stream)
            discard(header.length)
        }
    }

    /// Skips a payload that was charged to the connection, and returns its credit.
    private mutating func discard(_ length: Int) {
        returnCredit(length)
        if length > 0 { input = .skipped(remaining: length) }
    }

    /// Handles any frame but DATA. The caller has checked its stream and length.
    mutating func handle(
        _ type: FrameType, _ header: FrameHeader, _ payload: UnsafeRawBufferPointer
    ) throws(ConnectionError) {
        let id = header.stream
        switch type {
        case .hello: try receiveHello(payload)
        case .open: try receiveOpen(id, payload)
        case .response: try receiveResponse(id, payload)
        case .data: break  // begun by `beginData`, never gathered
        case .credit: try receiveCredit(id, offset: payload.loadBigEndian(at: 0))
        case .end: try receiveEnd(id)
        case .reset: try receiveReset(id, ApplicationErrorCode(rawValue: payload.loadBigEndian(at: 0)))
        case .ping: try receivePing(payload.loadBigEndian(at: 0))
        case .pong: if !liveness.answered(token: payload.loadBigEndian(at: 0)) { try chargeEmpty() }
        case .goAway:
            try receiveGoAway(
                StreamID(rawValue: payload.loadBigEndian(at: 0)),
                ApplicationErrorCode(rawValue: payload.loadBigEndian(at: 4)))
        }
    }

    // MARK: Frames of the connection

    private mutating func receiveHello(_ payload: UnsafeRawBufferPointer) throws(ConnectionError) {
        let hello = try PeerHello(payload, from: role == .dialer ? .acceptor : .dialer)
        peer = hello
        phase = .established
        _ = sendWindow.raise(to: hello.connectionCredit)
        report(.helloReceived(hello))
        // Streams that were opened before the HELLO get their first credit.
        for stream in streams.all.sorted(by: { $0.id < $1.id }) { raise(stream, to: hello.streamCredit) }
    }

    private mutating func receivePing(_ token: UInt64) throws(ConnectionError) {
        guard !isPongQueued, buckets.pings.spend(now: present) else { throw .tooManyPings }
        isPongQueued = true
        enqueue(.pong(token))
    }

    private mutating func receiveGoAway(
        _ lastStream: StreamID, _ code: ApplicationErrorCode
    ) throws(ConnectionError) {
        if let earlier = goAwayReceived {
            guard lastStream <= earlier else { throw .goAwayRaised }
            try chargeEmpty()
        }
        goAwayReceived = lastStream
        report(.goAwayReceived(code, lastStream: lastStream))
        let refused = streams.all.filter { $0.isLocal && $0.id > lastStream }
        for stream in refused.sorted(by: { $0.id < $1.id }) {
            report(.reset(stream.id, .goingAway))
            abandon(stream)
        }
        for stream in streams.allAborted where stream.isLocal && stream.id > lastStream {
            dropWaitingReset(of: stream)
        }
        reportIfDrained()
    }

    private mutating func receiveCredit(_ id: StreamID, offset: UInt64) throws(ConnectionError) {
        guard offset <= PeerHello.maximumOffset else { throw .creditOverflow(id) }
        if id == .connection {
            try sendWindow.raise(to: offset) ? chargeCredit() : chargeEmpty()
        } else if let stream = streams.known(id) {
            try raise(stream, to: offset) ? chargeCredit() : chargeEmpty()
        } else {
            try checkForgotten(id)
            try chargeEmpty()
        }
    }

    /// Raises the credit of a stream. Returns false if the offset allows nothing new.
    @discardableResult
    private mutating func raise(_ stream: SessionStream, to offset: UInt64) -> Bool {
        guard stream.sendWindow.raise(to: offset) else { return false }
        scheduleIfSendable(stream)
        return true
    }

    // MARK: Frames of a stream

    private mutating func receiveOpen(_ id: StreamID, _ request: UnsafeRawBufferPointer) throws(ConnectionError) {
        guard goAwayReceived == nil else { throw .openAfterGoAway(id) }
        guard streams.usePeer(id) else { throw .invalidStreamID(id) }
        // It crossed this side's GOAWAY, which tells the peer that this stream is not processed.
        guard !isGoAwaySent else { return try chargeEmpty() }
        guard streams.openPeer < limits.openStreams else { throw .tooManyStreams }
        guard streams.unansweredPeer < limits.unansweredRequests else { throw .tooManyUnanswered }
        guard streams.unread < limits.unreadStreams else {
            try chargeEmpty()
            let refused = newPeerStream(id)
            refused.isReported = false
            return abort(refused, .limitExceeded)
        }
        _ = newPeerStream(id)
        report(.opened(id, request: Array(request)))
    }

    private mutating func newPeerStream(_ id: StreamID) -> SessionStream {
        let stream = SessionStream(
            id: id, isLocal: false, message: nil, sendWindow: SendWindow(limit: peer?.streamCredit ?? 0),
            receiveWindow: newReceiveWindow())
        streams.addPeer(stream)
        buckets.credits.refund(1)
        return stream
    }

    private mutating func receiveResponse(_ id: StreamID, _ message: UnsafeRawBufferPointer) throws(ConnectionError) {
        guard let stream = try knownStream(id) else { return }
        guard stream.receiveResponse() else { return try abortForPeer(stream) }
        streams.answered(stream)
        if !stream.isAborted { report(.responded(id, message: Array(message))) }
    }

    private mutating func receiveEnd(_ id: StreamID) throws(ConnectionError) {
        guard let stream = try knownStream(id) else { return }
        guard stream.receiveEnd() else { return try abortForPeer(stream) }
        if !stream.isAborted {
            report(.finished(id))
            closeIfDone(stream)
        } else if stream.isClosed {
            dropWaitingReset(of: stream)
        }
    }

    private mutating func receiveReset(_ id: StreamID, _ code: ApplicationErrorCode) throws(ConnectionError) {
        guard let stream = try knownStream(id) else { return }
        guard stream.countsAsOpen else { return try chargeEmpty() }
        guard buckets.resets.spend(now: present) else { throw .tooManyResets }
        guard !stream.isAborted else { return dropWaitingReset(of: stream) }
        guard code.keepsInput, stream.endByReset() else {
            report(.reset(id, code))
            return abandon(stream)
        }
        report(.stopped(id, code))
        dropQueued(of: stream)
        closeIfDone(stream)
    }

    // MARK: Scope of errors

    /// The stream of a frame. Nil if it is forgotten, which is charged. An id that was never used is an error.
    private mutating func knownStream(_ id: StreamID) throws(ConnectionError) -> SessionStream? {
        if let stream = streams.known(id) { return stream }
        try checkForgotten(id)
        try chargeEmpty()
        return nil
    }

    private func checkForgotten(_ id: StreamID) throws(ConnectionError) {
        guard streams.wasUsed(id) else { throw .unknownStream(id) }
    }

    private mutating func chargeEmpty() throws(ConnectionError) {
        guard buckets.emptyFrames.spend(now: present) else { throw .tooManyEmptyFrames }
    }

    private mutating func chargeCredit() throws(ConnectionError) {
        guard buckets.credits.spend(now: present) else { throw .tooManyCredits }
    }

    /// Aborts a stream whose rules the peer broke. The connection continues.
    private mutating func abortForPeer(_ stream: SessionStream) throws(ConnectionError) {
        guard buckets.resets.spend(now: present) else { throw .tooManyResets }
        guard !stream.isAborted else { return }
        report(.reset(stream.id, .protocolError))
        if stream.countsAsOpen { abort(stream, .protocolError) } else { abandon(stream) }
    }
}

extension UnsafeRawBufferPointer {
    /// The big-endian integer at `offset`. The caller has checked the length.
    fileprivate func loadBigEndian<Value: FixedWidthInteger & BitwiseCopyable>(at offset: Int) -> Value {
        Value(bigEndian: loadUnaligned(fromByteOffset: offset, as: Value.self))
    }
}
