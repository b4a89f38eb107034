// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonProtocol
import DequeModule

/// Calls of a stream's owner; ``Stream`` is their public face.
extension Connection {
    /// Opens a stream with an encoded request.
    ///
    /// - Parameter window: the bytes that the peer may send before any are read, for a caller that expects many. It is
    ///   limited by what the other streams leave of the connection's window (`Session.widenWindow(of:to:)`). Nil, the
    ///   default, uses the connection's limits.
    /// - Throws: ``TransportError`` if the connection is closing or has ended, the peer allows no more streams, or the
    ///   task was cancelled before the handshake was over.
    package func open(_ request: [UInt8], window: Int? = nil) async throws(TransportError) -> Stream {
        try await ready()
        let id: StreamID
        do {
            id = try session.open(Buffer(copying: request), now: .now)
        } catch {
            throw TransportError(openError: error)
        }
        if let window { session.widenWindow(of: id, to: window) }
        streams.insert(id, StreamState(isLocal: true))
        flush()
        return Stream(id: id, connection: self)
    }

    /// The next stream that the peer has opened; `nil` if the connection has ended or the task is cancelled.
    func nextIncoming() async -> IncomingStream? {
        while true {
            if let (id, request) = arrivals.popFirst() {
                return IncomingStream(stream: Stream(id: id, connection: self), request: request)
            }
            if hasEnded || Task.isCancelled { return nil }
            await wait(in: arrivalWaiters, unless: !self.arrivals.isEmpty || self.hasEnded)
        }
    }

    func response(of id: StreamID) async throws(TransportError) -> [UInt8] {
        let state = try stream(id)
        while true {
            if let response = state.response { return response }
            if let failure = state.failure { throw failure }
            if state.hasEnded {
                throw TransportError(.protocolViolation, "the other side ended the stream without an answer")
            }
            try await wait(for: \.responseWaiter, of: state, id) {
                state.response != nil || state.failure != nil || state.hasEnded
            }
        }
    }

    func respond(_ id: StreamID, _ message: [UInt8]) throws(TransportError) {
        let state = try stream(id)
        if let failure = state.failure { throw failure }
        try reserve(id, message.count)
        do {
            try session.respond(id, Buffer(copying: message))
        } catch {
            throw TransportError(respondError: error)
        }
        flush()
    }

    func reserve(_ id: StreamID, _ bytes: Int) throws(TransportError) {
        guard try stream(id).reservation?.grow(by: bytes) ?? true else {
            throw TransportError(.limitExceeded, "there is no room for the answer: too much is being asked at once")
        }
    }

    func read(
        _ id: StreamID, atLeast bound: Int, reusing buffer: Buffer?, framing: Framing?
    ) async throws(TransportError) -> Buffer? {
        let state = try stream(id)
        // Checked before this changes what the waiting task has asked for.
        guard !state.reader.hasWaiter else { throw .alreadyWaiting }
        if let framing { state.setFraming(framing) }
        if let buffer { state.recycle(buffer) }
        let consumed = state.takeConsumed()
        streams.release(consumed)
        giveCredit(id, consumed)
        state.readerBound = max(1, min(bound, Self.readBound, session.window(of: id) / 2))
        while true {
            if let failure = state.failure, !state.isWhole { throw failure }
            if streams.isWorthReading(state) || state.hasEnded {
                if let buffer = state.next() { return buffer }
                if let failure = state.endFailure { throw failure }
                return nil
            }
            try await wait(for: \.reader, of: state, id) {
                self.streams.isWorthReading(state) || state.failure != nil || state.hasEnded
            }
        }
    }

    func lowerReadBound(_ id: StreamID) {
        guard let state = streams[id] else { return }
        state.readerBound = 1
        if streams.isWorthReading(state) { state.reader.wake() }
    }

    nonisolated func ignoreInput(of id: StreamID) {
        loop.execute { [weak self] in
            self?.assumeIsolated { connection in
                connection.streams.ignoreInput(of: id)
                connection.resetStreamsWithUnwantedInput()
                connection.flush()
            }
        }
    }

    func setWeight(_ weight: Int, of id: StreamID) {
        session.setWeight(weight, of: id)
    }

    func write(_ id: StreamID, _ buffer: Buffer, queueBound: Int) async throws(TransportError) -> Int {
        let state = try stream(id)
        if let failure = state.failure ?? state.writeFailure { throw failure }
        guard !state.hasFinished else { throw .streamClosed }
        if session.queuedBytes(of: id) + buffer.count > queueBound {
            guard !state.writer.hasWaiter else { throw .alreadyWaiting }
            guard !Task.isCancelled else { throw .cancelled }
        }
        session.send(id, buffer)
        flush()
        do throws(TransportError) {
            return try await waitForQueue(of: id, atMost: queueBound)
        } catch {
            // The bytes are queued and will be sent. After an error the caller might send them again.
            guard error.code == .cancelled else { throw error }
            return session.queuedBytes(of: id)
        }
    }

    /// Waits until at most `bound` bytes of a stream are queued, and returns how many are.
    func waitForQueue(of id: StreamID, atMost bound: Int) async throws(TransportError) -> Int {
        let state = try stream(id)
        while true {
            if let failure = state.failure ?? state.writeFailure { throw failure }
            let queued = session.queuedBytes(of: id)
            if queued <= bound { return queued }
            guard !state.writer.hasWaiter else { throw .alreadyWaiting }
            state.writerBound = bound
            try await wait(for: \.writer, of: state, id) {
                self.session.queuedBytes(of: id) <= bound || state.failure != nil
            }
        }
    }

    func finish(_ id: StreamID) {
        guard let state = streams[id], state.failure == nil, !state.hasFinished else { return }
        state.hasFinished = true
        session.finish(id)
        flush()
    }

    func reset(_ id: StreamID, _ code: ApplicationErrorCode) {
        guard let state = streams[id], state.failure == nil else { return }
        fail(state, with: .streamClosed)
        session.reset(id, code: code)
        flush()
    }

    /// Waits until a stream no longer counts as open.
    ///
    /// - Parameter cancelled: whether a cancelled task does not wait.
    func untilClosed(_ id: StreamID, cancelled: Bool) async {
        while session.holds(id), !hasEnded, !(cancelled && Task.isCancelled) {
            await wait(in: closedWaiters, cancelled: cancelled, unless: !self.session.holds(id) || self.hasEnded)
        }
    }

    /// Forgets a stream whose last reference is gone: nobody will read from it or write to it.
    nonisolated func abandon(_ id: StreamID) {
        loop.execute { [weak self] in self?.assumeIsolated { $0.forget(id) } }
    }

    /// Aborts a stream that is not finished.
    ///
    /// If only the peer's END is missing, it waits for that. An abort would drop queued bytes of an answer of this
    /// side, and would tell the peer that nobody read its own.
    private func forget(_ id: StreamID) {
        guard let state = streams[id] else { return }
        let unread = streams.discard(state)
        if case .ended = self.state { return streams.remove(id) }
        giveCredit(id, unread)
        let isDone = state.hasFinished && state.hasEnded
        let isAnswered = !state.isLocal || (state.response != nil && !state.hasReceived)
        if isDone || state.failure != nil {
            streams.remove(id)
        } else if state.hasFinished, isAnswered {
            state.isAbandoned = true
        } else {
            streams.remove(id)
            session.reset(id, code: .cancelled)
            flush()
        }
    }

    /// Ends a stream on this side: wakes its waiting tasks and drops unread bytes. The caller also aborts the stream in
    /// the protocol, which returns their credit.
    func fail(_ state: StreamState, with error: TransportError) {
        state.failure = error
        _ = streams.discard(state)
        state.wakeAll()
    }

    /// Aborts streams on which the peer sends bytes that nobody reads.
    func resetStreamsWithUnwantedInput() {
        for id in streams.takeUnwantedInput() {
            guard let state = streams[id] else { continue }
            session.reset(id, code: state.isAbandoned ? .cancelled : .protocolError)
            fail(state, with: .streamClosed)
            if state.isAbandoned { streams.remove(id) }
        }
    }

    private func stream(_ id: StreamID) throws(TransportError) -> StreamState {
        if let state = streams[id] { return state }
        if case .ended(let error) = state { throw error }
        throw .streamClosed
    }

    private func giveCredit(_ id: StreamID, _ count: Int) {
        guard count > 0 else { return }
        if case .ended = state { return }
        session.consumed(id, count, now: .now)
        flush()
    }

    /// Waits for a change of a stream's state.
    ///
    /// - Parameter isDue: whether there is nothing to wait for any more.
    /// - Throws: `alreadyWaiting` if another task waits for the same; `cancelled`.
    private func wait(
        for waiter: any ReferenceWritableKeyPath<StreamState, Waiter> & Sendable, of state: StreamState, _ id: StreamID,
        until isDue: () -> Bool
    ) async throws(TransportError) {
        guard state[keyPath: waiter].claim() else { throw .alreadyWaiting }
        await withTaskCancellationHandler {
            await park(unless: isDue()) { state[keyPath: waiter].wait($0) }
        } onCancel: {
            loop.execute { [weak self] in
                self?.assumeIsolated { $0.streams[id]?[keyPath: waiter].wake() }
            }
        }
        state[keyPath: waiter].release()
        if Task.isCancelled { throw .cancelled }
    }
}
