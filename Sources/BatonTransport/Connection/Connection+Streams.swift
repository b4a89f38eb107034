// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonProtocol

/// What a stream's owner does with it; ``Stream`` is the face of these.
extension Connection {
    /// Opens a stream with an encoded request.
    ///
    /// - Parameter window: what the peer may send before any of it is read, in bytes, where that is known to be much:
    ///   as far as the other streams leave so much of the connection's window (`Session.widenWindow(of:to:)`). Without
    ///   it, the default, what the connection's limits say.
    /// - Throws: ``TransportError`` when the connection is closing or has ended, the peer allows no more streams, or
    ///   the task was cancelled before the handshake was over.
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

    /// The next stream that the peer has opened; `nil` when the connection has ended or the task is cancelled.
    func nextIncoming() async -> IncomingStream? {
        while true {
            if let (id, request) = arrivals.next() {
                return IncomingStream(stream: Stream(id: id, connection: self), request: request)
            }
            if hasEnded { return nil }
            let ticket = arrivals.waiter.ticket()
            await withTaskCancellationHandler {
                await park(unless: !self.arrivals.isEmpty || self.hasEnded) { self.arrivals.waiter.wait($0, ticket) }
            } onCancel: {
                loop.execute { [weak self] in self?.assumeIsolated { $0.arrivals.waiter.wake(ticket) } }
            }
            if Task.isCancelled { return nil }
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
        guard try stream(id).room?.grow(by: bytes) ?? true else {
            throw TransportError(.limitExceeded, "there is no room for the answer: too much is being asked at once")
        }
    }

    func read(
        _ id: StreamID, atLeast bound: Int, reusing buffer: Buffer?, framing: Framing?
    ) async throws(TransportError) -> Buffer? {
        let state = try stream(id)
        // Before anything changes that the waiting one has asked for.
        guard !state.reader.isTaken else { throw .alreadyWaiting }
        if let framing { state.frame(framing) }
        if let buffer { state.recycle(buffer) }
        let consumed = state.takeConsumed()
        streams.release(consumed)
        giveCredit(id, consumed)
        state.readerBound = max(1, min(bound, Self.readBound, session.window(of: id) / 2))
        while true {
            if let failure = state.failure, !state.isWhole { throw failure }
            if streams.isWorthReading(state) || state.hasEnded { return state.next() }
            try await wait(for: \.reader, of: state, id) {
                self.streams.isWorthReading(state) || state.failure != nil || state.hasEnded
            }
        }
    }

    func settle(_ id: StreamID) {
        guard let state = streams[id] else { return }
        state.readerBound = 1
        if streams.isWorthReading(state) { state.reader.wake() }
    }

    nonisolated func ignoreInput(of id: StreamID) {
        loop.execute { [weak self] in
            self?.assumeIsolated { connection in
                connection.streams.ignoreInput(of: id)
                connection.hushTalkative()
                connection.flush()
            }
        }
    }

    func setWeight(_ weight: Int, of id: StreamID) {
        session.setWeight(weight, of: id)
    }

    func write(_ id: StreamID, _ buffer: Buffer, queueBound: Int) async throws(TransportError) -> Int {
        let state = try stream(id)
        if let failure = state.failure { throw failure }
        guard !state.hasFinished else { throw .streamClosed }
        session.send(id, buffer)
        flush()
        return try await waitForQueue(of: id, atMost: queueBound)
    }

    /// Waits until no more than so many bytes of a stream are queued, and returns how many are.
    func waitForQueue(of id: StreamID, atMost bound: Int) async throws(TransportError) -> Int {
        let state = try stream(id)
        while true {
            if let failure = state.failure { throw failure }
            let queued = session.queuedBytes(of: id)
            if queued <= bound { return queued }
            try await wait(for: \.writer, of: state, id) {
                self.session.queuedBytes(of: id) <= bound || state.failure != nil
            } asleep: {
                state.writerBound = bound
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

    /// Waits until a stream has given its place back, cancelled or not.
    func left(_ id: StreamID) async {
        while session.holds(id) {
            if hasEnded { return }
            await park(unless: !self.session.holds(id) || self.hasEnded, cancelled: false) {
                self.placeWaiters.add($0)
            }
        }
    }

    /// Waits until a stream has given its place back, or the task is cancelled.
    func gone(_ id: StreamID) async {
        while session.holds(id), !hasEnded, !Task.isCancelled {
            let ticket = placeWaiters.ticket()
            await withTaskCancellationHandler {
                await park(unless: !self.session.holds(id) || self.hasEnded) { self.placeWaiters.add($0, ticket) }
            } onCancel: {
                loop.execute { [weak self] in self?.assumeIsolated { $0.placeWaiters.wake(ticket) } }
            }
        }
    }

    /// The last reference to a stream is gone: nobody will read it or write to it any more.
    nonisolated func abandon(_ id: StreamID) {
        loop.execute { [weak self] in self?.assumeIsolated { $0.forget(id) } }
    }

    /// Aborts what is not finished.
    ///
    /// Where only the peer's END is missing it is waited for. An abort would take away what is still queued of an
    /// answer that this side gave, and would tell the peer that nobody heard the one that it gave.
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

    /// Ends a stream on this side: who waits for it wakes, and what is unread is dropped. Whoever calls it aborts the
    /// stream in the protocol too, which gives the credit back.
    func fail(_ state: StreamState, with error: TransportError) {
        state.failure = error
        _ = streams.discard(state)
        state.wakeAll()
    }

    /// Aborts streams on which the peer sends what nobody reads.
    func hushTalkative() {
        for id in streams.takeTalkative() {
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

    /// - Parameters:
    ///   - isDue: whether there is nothing to wait for any more.
    ///   - asleep: notes what it waits for, at the moment in which it begins to wait.
    /// - Throws: `alreadyWaiting` where another task does. Who is at fault for that may be this program, which a peer
    ///   has made wait by not reading: nothing more than this stream is to end of it.
    private func wait(
        for waiter: any ReferenceWritableKeyPath<StreamState, Waiter> & Sendable, of state: StreamState, _ id: StreamID,
        until isDue: () -> Bool, asleep: () -> Void = {}
    ) async throws(TransportError) {
        var isRefused = false
        let ticket = state[keyPath: waiter].ticket()
        await withTaskCancellationHandler {
            await park(unless: isDue()) { continuation in
                guard !state[keyPath: waiter].isTaken else {
                    isRefused = true
                    return continuation.resume()
                }
                asleep()
                state[keyPath: waiter].wait(continuation, ticket)
            }
        } onCancel: {
            loop.execute { [weak self] in
                self?.assumeIsolated { $0.streams[id]?[keyPath: waiter].wake(ticket) }
            }
        }
        if isRefused { throw .alreadyWaiting }
        if Task.isCancelled { throw .cancelled }
    }
}
