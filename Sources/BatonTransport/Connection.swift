public import BatonEventLoop
public import BatonProtocol

/// One connection to a peer: the driver that joins socket, channel and protocol.
///
/// The actor's executor is its event loop, so that a readiness handler enters it synchronously, and so that nothing
/// here needs a lock. Bytes go socket → channel → session → stream buffers, and back the same way, within one turn of
/// the loop. Nothing is buffered without bound: receiving is bounded by the credit that the session grants, sending
/// by ``sendQueueBound`` for each stream.
public actor Connection {
    /// How much of one stream may be queued before ``Stream/write(_:)`` waits. Two document chunks: one that is being
    /// sent while the next is read from the disk.
    public static let sendQueueBound = 2 << 20
    /// The most that a reader may wait for: half of what a stream's credit allows at first, or the peer would wait too.
    public static let readBound = 1 << 20
    /// Bytes read from the socket, and bytes sent to it, in one turn of the loop: others on the loop get theirs.
    private static let turn = 1 << 20
    /// Size of the two buffers between socket and channel.
    private static let wireCapacity = 256 << 10
    /// How long ``close(_:)`` waits for what is queued to leave.
    private static let closeDeadline = Duration.seconds(2)

    /// The event loop that this connection lives on.
    public nonisolated let loop: EventLoop
    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    /// Streams that the peer opens. Bounded by the session's limit of open streams; ends with the connection.
    public nonisolated let incoming: AsyncStream<IncomingStream>

    private let incomingContinuation: AsyncStream<IncomingStream>.Continuation
    private let socket: Socket
    private let channel: any Channel
    private let limits: Limits
    private var session: Session
    private var streams: [StreamID: StreamState] = [:]
    /// Bytes that arrived and that no application has taken, of all streams.
    private var unread = 0
    /// Streams that sent something that nobody will read in this turn.
    private var talkative: Set<StreamID> = []
    /// Made by ``start()``, because its handler refers to this actor.
    private var timer: Timer?
    private var armedDeadline: Instant?

    private let wireIn: Buffer
    private let wireOut: Buffer
    private var wireSent = 0

    private var state = State.handshaking
    private var readyWaiters: [CheckedContinuation<Void, Never>] = []
    private var endWaiters: [CheckedContinuation<Void, Never>] = []

    private enum State {
        /// The peer's first frame has not been read: nothing counts as authenticated.
        case handshaking
        case open
        /// The peer said that it is going away: what is under way goes on, nothing new begins.
        case draining
        /// ``close(_:)`` was called: what is queued may still leave.
        case closing(hasSaidFarewell: Bool)
        case ended(TransportError)
    }

    /// - Parameters:
    ///   - socket: connected; the connection owns it from here on.
    ///   - channel: fresh.
    ///   - role: who dialled.
    ///   - limits: what this side allows; the peer's come with its HELLO.
    public init(
        socket: sending Socket, channel: sending any Channel, role: Role, limits: Limits = Limits(), on loop: EventLoop
    ) {
        self.loop = loop
        self.socket = socket
        self.channel = channel
        self.limits = limits
        session = Session(role: role, limits: limits, now: .now)
        wireIn = Buffer(capacity: Self.wireCapacity)
        wireOut = Buffer(capacity: Self.wireCapacity)
        (incoming, incomingContinuation) = AsyncStream.makeStream()
    }

    deinit {
        socket.close()
    }

    /// Begins the handshake and reading.
    public func start() {
        guard case .handshaking = state, timer == nil else { return }
        timer = Timer(on: loop) { [weak self] in self?.assumeIsolated { $0.timerFired() } }
        socket.start(
            onReadable: { [weak self] in self?.assumeIsolated { $0.socketIsReadable() } },
            onWritable: { [weak self] in self?.assumeIsolated { $0.flush() } })
        do {
            try channel.start()
        } catch {
            return end(error)
        }
        flush()
    }

    /// Waits until the handshake is over and the peer's first frame has been read: from then on ``peer`` holds.
    public func ready() async throws(TransportError) {
        while case .handshaking = state {
            await withCheckedContinuation { continuation in
                if case .handshaking = state { readyWaiters.append(continuation) } else { continuation.resume() }
            }
        }
        if case .ended(let error) = state { throw error }
    }

    /// Who the peer is, proved by the channel; `nil` before ``ready()``.
    public var peer: PeerIdentity? {
        switch state {
        case .handshaking: nil
        case .open, .draining, .closing, .ended: channel.peer
        }
    }

    /// Where the peer is.
    public var remoteAddress: SocketAddress? { socket.remoteAddress }

    /// Whether no stream is open, in either direction.
    public var isIdle: Bool { streams.values.allSatisfy(\.isAbandoned) }

    /// Whether ``open(_:)`` can work.
    public var isOpen: Bool {
        if case .open = state { true } else { false }
    }

    /// Waits for the connection's end and tells why it ended.
    @discardableResult
    public func ended() async -> TransportError {
        while true {
            if case .ended(let error) = state { return error }
            await withCheckedContinuation { continuation in
                if case .ended = state { continuation.resume() } else { endWaiters.append(continuation) }
            }
        }
    }

    /// Closes politely: tells the peer, lets what its credit allows leave for at most 2 s, and closes the socket.
    ///
    /// Streams that are still open then fail with ``TransportError/Code/connectionLost``.
    public func close(_ code: ApplicationErrorCode = .noError) async {
        switch state {
        case .ended:
            return
        case .closing:
            break
        case .handshaking, .open, .draining:
            state = .closing(hasSaidFarewell: false)
            session.goAway(code: code)
            flush()
            let deadline = Timer(on: loop) { [weak self] in self?.assumeIsolated { $0.end(.connectionEnded) } }
            deadline.schedule(after: Self.closeDeadline)
            await ended()
            deadline.cancel()
            return
        }
        await ended()
    }
}

// MARK: - Streams

extension Connection {
    /// Opens a stream with an encoded request.
    ///
    /// - Throws: ``TransportError`` when the connection is closing or has ended, or the peer allows no more streams.
    public func open(_ request: [UInt8]) async throws(TransportError) -> Stream {
        try await ready()
        let id: StreamID
        do {
            id = try session.open(Buffer(copying: request), now: .now)
        } catch {
            throw TransportError(openError: error)
        }
        streams[id] = StreamState(isLocal: true)
        flush()
        return Stream(id: id, connection: self)
    }

    func response(of id: StreamID) async throws(TransportError) -> [UInt8] {
        let state = try stream(id)
        while true {
            if let response = state.response { return response }
            if let failure = state.failure { throw failure }
            if state.hasEnded {
                throw TransportError(.protocolViolation, "the other side ended the stream without an answer")
            }
            try await wait(for: \.responseWaiter, of: state, id)
        }
    }

    func respond(_ id: StreamID, _ message: [UInt8]) throws(TransportError) {
        let state = try stream(id)
        if let failure = state.failure { throw failure }
        do {
            try session.respond(id, Buffer(copying: message))
        } catch {
            throw TransportError(respondError: error)
        }
        flush()
    }

    func read(_ id: StreamID, atLeast bound: Int, reusing buffer: Buffer?) async throws(TransportError) -> Buffer? {
        let state = try stream(id)
        if let buffer { state.recycle(buffer) }
        giveCredit(id, state.takeConsumed())
        state.readerBound = max(1, min(bound, Self.readBound, limits.initialStreamWindow / 2))
        while true {
            if let failure = state.failure, !state.isWhole { throw failure }
            if isWorthReading(state) || state.hasEnded {
                let next = state.next()
                unread -= next?.count ?? 0
                return next
            }
            try await wait(for: \.reader, of: state, id)
        }
    }

    func ignoreInput(of id: StreamID) {
        streams[id]?.ignoresInput = true
        if let stream = streams[id], stream.unread > 0 { talkative.insert(id) }
        hushTalkative()
        flush()
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
            state.writerBound = bound
            try await wait(for: \.writer, of: state, id)
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
        state.failure = .streamClosed
        discard(state)
        session.reset(id, code: code)
        state.wakeAll()
        flush()
    }

    /// The last reference to a stream is gone: nobody will read it or write to it any more.
    nonisolated func abandon(_ id: StreamID) {
        loop.execute { [weak self] in self?.assumeIsolated { $0.forget(id) } }
    }

    /// Aborts what is not finished.
    ///
    /// A stream of the peer's that was answered to its end is left alone until the peer ends it too: an abort would
    /// take away what is still queued of the answer.
    private func forget(_ id: StreamID) {
        guard let state = streams[id] else { return }
        if case .ended = self.state {
            streams[id] = nil
            return
        }
        giveCredit(id, discard(state))
        let isDone = state.hasFinished && state.hasEnded
        if isDone || state.failure != nil {
            streams[id] = nil
        } else if state.hasFinished, !state.isLocal {
            state.isAbandoned = true
        } else {
            streams[id] = nil
            session.reset(id, code: .cancelled)
            flush()
        }
    }

    private func stream(_ id: StreamID) throws(TransportError) -> StreamState {
        if let state = streams[id] { return state }
        if case .ended(let error) = state { throw error }
        throw .streamClosed
    }

    /// Drops what is unread of a stream, and returns how many bytes its application has not done with.
    @discardableResult
    private func discard(_ state: StreamState) -> Int {
        unread -= state.unread
        return state.discard()
    }

    private func giveCredit(_ id: StreamID, _ count: Int) {
        guard count > 0 else { return }
        if case .ended = state { return }
        session.consumed(id, count, now: .now)
        flush()
    }

    private func wait(
        for waiter: any ReferenceWritableKeyPath<StreamState, Waiter> & Sendable, of state: StreamState, _ id: StreamID
    ) async throws(TransportError) {
        await withTaskCancellationHandler {
            // `self` makes the closure run on this actor: one that captures only the state would not, and the compiler
            // does not object.
            await withCheckedContinuation { self.register($0, with: waiter, of: state) }
        } onCancel: {
            loop.execute { [weak self] in
                self?.assumeIsolated { $0.streams[id]?[keyPath: waiter].wake() }
            }
        }
        if Task.isCancelled { throw .cancelled }
    }

    private func register(
        _ continuation: CheckedContinuation<Void, Never>, with waiter: ReferenceWritableKeyPath<StreamState, Waiter>,
        of state: StreamState
    ) {
        state[keyPath: waiter].wait(continuation)
    }
}

// MARK: - Bytes

extension Connection {
    private func socketIsReadable() {
        var budget = Self.turn
        reading: while budget > 0 {
            if case .ended = state { return }
            do {
                switch try socket.read(into: wireIn.writable) {
                case .bytes(let count):
                    budget -= count
                    try receive(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(wireIn.writable)[..<count]))
                case .wouldBlock:
                    break reading
                case .endOfFile:
                    return end(.connectionEnded)
                }
            } catch let error as TransportError {
                return end(error, tellingPeer: true)
            } catch {
                return end(TransportError(.connectionLost, "the connection broke: \(error)"))
            }
        }
        flush()
    }

    private func receive(_ wire: UnsafeRawBufferPointer) throws(TransportError) {
        let now = Instant.now
        try channel.decode(wire) { plain in
            var rest = plain
            while !rest.isEmpty {
                let taken = try? session.receive(rest, now: now) { id, bytes in
                    guard let stream = streams[id] else { return }
                    stream.append(bytes)
                    unread += bytes.count
                    if isWorthReading(stream) { stream.reader.wake() }
                    if stream.isAbandoned || stream.ignoresInput { talkative.insert(id) }
                }
                handleEvents()
                hushTalkative()
                if isCrowded { wakeReaders() }
                // A session that failed has said so by its last event, which ended this connection.
                guard let taken else { return }
                rest = UnsafeRawBufferPointer(rebasing: rest[taken...])
            }
        }
    }

    /// Whether a reader that waits for more is better served with what is there.
    private func isWorthReading(_ stream: StreamState) -> Bool {
        stream.unread >= stream.readerBound || (stream.unread > 0 && isCrowded)
    }

    /// Half of what the peer may send on the connection lies here. If everybody went on waiting for more of one stream,
    /// the peer could not send it.
    private var isCrowded: Bool { unread >= limits.initialConnectionWindow / 2 }

    private func wakeReaders() {
        for stream in streams.values where stream.unread > 0 { stream.reader.wake() }
    }

    /// Aborts streams on which the peer sends what nobody reads.
    private func hushTalkative() {
        for id in talkative {
            guard let stream = streams[id] else { continue }
            discard(stream)
            session.reset(id, code: stream.isAbandoned ? .cancelled : .protocolError)
            if stream.isAbandoned {
                streams[id] = nil
            } else {
                stream.failure = .streamClosed
                stream.wakeAll()
            }
        }
        talkative = []
    }

    private func handleEvents() {
        while let event = session.nextEvent() { handle(event) }
    }

    private func handle(_ event: Event) {
        switch event {
        case .helloReceived:
            if case .handshaking = state { state = .open }
            wakeReadyWaiters()
        case .opened(let id, let request):
            streams[id] = StreamState(isLocal: false)
            incomingContinuation.yield(
                IncomingStream(stream: Stream(id: id, connection: self), request: request))
        case .responded(let id, let message):
            streams[id]?.response = message
            streams[id]?.responseWaiter.wake()
        case .finished(let id):
            streams[id]?.hasEnded = true
            streams[id]?.reader.wake()
            streams[id]?.responseWaiter.wake()
        case .reset(let id, let code):
            guard let stream = streams[id], stream.failure == nil else { return }
            stream.failure = .reset(code)
            discard(stream)
            stream.wakeAll()
        case .writable:
            break
        case .closed(let id):
            if streams[id]?.isAbandoned == true { streams[id] = nil }
        case .goAwayReceived:
            if case .open = state { state = .draining }
        case .drained:
            if case .draining = state { state = .closing(hasSaidFarewell: false) }
        case .dead(let error):
            end(TransportError(connectionError: error), tellingPeer: true)
        }
    }

    /// Sends what there is to send, until the socket takes no more.
    private func flush() {
        var budget = Self.turn
        do {
            while true {
                if case .ended = state { return }
                if wireSent == wireOut.count {
                    guard try fillWire() else { break }
                }
                let pending = UnsafeRawBufferPointer(rebasing: wireOut.bytes[wireSent...])
                let count = try socket.write(pending)
                wireSent += count
                budget -= count
                if count < pending.count || budget <= 0 { return socket.wantWrite(true) }
            }
        } catch let error as TransportError {
            return end(error)
        } catch {
            return end(TransportError(.connectionLost, "the connection broke: \(error)"))
        }
        socket.wantWrite(false)
        handleEvents()
        guard case .closing(let hasSaidFarewell) = state else { return armTimer() }
        if hasSaidFarewell { return end(.connectionEnded) }
        state = .closing(hasSaidFarewell: true)
        channel.finish()
        flush()
    }

    /// Encodes the next bytes for the socket; `false` when there are none.
    private func fillWire() throws(TransportError) -> Bool {
        let now = Instant.now
        wireSent = 0
        wireOut.count = try channel.encode(into: wireOut.writable) { space in
            session.nextOutput(into: space, now: now)
        }
        handleEvents()
        wakeWriters()
        return wireOut.count > 0
    }

    private func wakeWriters() {
        for (id, stream) in streams where stream.writer.isTaken && session.queuedBytes(of: id) <= stream.writerBound {
            stream.writer.wake()
        }
    }

    private func armTimer() {
        guard let deadline = session.nextTimeout() else {
            armedDeadline = nil
            timer?.cancel()
            return
        }
        guard deadline != armedDeadline else { return }
        armedDeadline = deadline
        timer?.schedule(at: deadline.nanoseconds)
    }

    private func timerFired() {
        armedDeadline = nil
        session.handleTimeout(now: .now)
        handleEvents()
        flush()
    }

    /// Ends the connection: every wait on it returns, and the socket is closed.
    private func end(_ error: TransportError, tellingPeer: Bool = false) {
        if case .ended = state { return }
        if tellingPeer { sendLastWords() }
        state = .ended(error)
        socket.close()
        timer?.cancel()
        for stream in streams.values {
            if stream.failure == nil {
                stream.failure = error
                stream.isWhole = stream.hasEnded
            }
            stream.wakeAll()
        }
        incomingContinuation.finish()
        wakeReadyWaiters()
        let waiting = endWaiters
        endWaiters = []
        for waiter in waiting { waiter.resume() }
    }

    /// One attempt to tell the peer why: an alert of the channel or a GOAWAY that the session has queued.
    private func sendLastWords() {
        guard wireSent == wireOut.count, let hasWords = try? fillWire(), hasWords else { return }
        _ = try? socket.write(wireOut.bytes)
    }

    private func wakeReadyWaiters() {
        let waiting = readyWaiters
        readyWaiters = []
        for waiter in waiting { waiter.resume() }
    }
}
