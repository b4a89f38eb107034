// SPDX-License-Identifier: Apache-2.0

package import BatonEventLoop
package import BatonProtocol
import DequeModule
import Synchronization

/// One connection to a peer: the driver that joins socket, channel and protocol.
///
/// The actor's executor is its event loop, so a readiness handler enters it synchronously, and nothing here needs a
/// lock. Within one turn of the loop, bytes go from the socket through channel and session to stream buffers, or back.
/// Every buffer is bounded: received bytes by the credit that the session grants, sent bytes by ``sendQueueBound`` for
/// each stream.
///
/// This file has the life of the connection. `Connection+Streams.swift` has its streams, and `Connection+Bytes.swift`
/// the movement of bytes.
package actor Connection {
    /// The queued bytes of one stream at which ``Stream/write(_:queueBound:)`` waits. They are two document chunks: one
    /// is sent while the next is read from the disk.
    package static let sendQueueBound = 2 << 20
    /// The most bytes that the kernel holds and has not sent: 256 KiB. That is half a millisecond at the speed of a
    /// disk, and a quarter of a second at 8 Mbit/s.
    static let unsentBound = 256 << 10
    /// The most bytes that a reader may wait for: a chunk of a document and its record header. Half of a stream's first
    /// credit is the bound if that is less, or the peer would wait too.
    package static let readBound = 1 << 20 + 4096

    /// The event loop of this connection.
    package nonisolated let loop: EventLoop
    package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// Streams that the peer opens; ends with the connection.
    package nonisolated var incoming: IncomingStreams { IncomingStreams(connection: self) }

    let limits: Limits
    let wire: Wire
    var session: Session
    var streams: StreamTable
    /// Streams of the peer that were not handed out yet. The protocol's limit of open streams bounds them. They are not
    /// ``Stream`` objects, which would keep this connection alive.
    var arrivals: Deque<(StreamID, request: [UInt8])> = []
    private let budget: ReceiveBudget?
    /// The budget for requests of the peer; `nil` without one.
    let requests: ByteBudget.Part?
    /// The bytes above the floor that the peer may make this connection hold. They are given back with the last
    /// reference to the connection, because received bytes can be read after its end.
    private var share: ByteReservation?

    var state = State.handshaking {
        didSet {
            let opens = if case .open = state, let peer = session.peer { peer.openStreams > 0 } else { false }
            canOpen.store(opens, ordering: .relaxed)
        }
    }
    /// The state behind ``isOpen``, which other loops read.
    private nonisolated let canOpen = Atomic<Bool>(false)
    /// The code of the peer's last GOAWAY.
    var goAwayCode = ApplicationErrorCode.noError
    private let socket: Socket
    /// Made by ``start()``, because its handler refers to this actor.
    private var timer: Timer?
    /// The deadline of a connection that closes or lingers. It keeps the connection alive for that time.
    private var closing: Timer?
    let arrivalWaiters = WaiterList()
    let readyWaiters = WaiterList()
    /// Woken whenever a stream no longer counts as open.
    let closedWaiters = WaiterList()
    private let endWaiters = WaiterList()
    private let closeWaiters = WaiterList()

    enum State {
        /// The peer's first frame has not been read: nothing counts as authenticated.
        case handshaking
        case open
        /// The peer has announced that it is going away: open streams continue, and no new ones begin.
        case draining
        /// ``close(_:)`` was called: queued bytes may still leave.
        case closing(isChannelFinished: Bool)
        case ended(TransportError)
    }

    /// Makes a connection that is not started.
    ///
    /// - Parameters:
    ///   - socket: connected; the connection owns it from here on.
    ///   - channel: fresh.
    ///   - role: the side of the connection.
    ///   - limits: the limits of this side; those of the peer come with its HELLO.
    ///   - revocationNumber: the number of the revocation list held here, for HELLO; 0, the default, if there is none.
    ///   - budget: the shared budget of all connections for received bytes. With one, the connection's window begins at
    ///     its floor and becomes this connection's share, within `limits`, once the peer is known. A stream is then
    ///     refused (`limitExceeded`) if there is no room for its request.
    package init(
        socket: sending Socket, channel: sending any Channel, role: Role, limits: Limits = Limits(),
        revocationNumber: UInt64 = 0, budget: ReceiveBudget? = nil, on loop: EventLoop
    ) {
        let limits = budget?.limitingToFloor(limits) ?? limits
        self.loop = loop
        self.limits = limits
        self.budget = budget
        requests = budget?.requestShare()
        // The session sends urgent frames ahead of documents, but they wait behind all bytes that the kernel has taken.
        socket.limitUnsent(to: Self.unsentBound)
        self.socket = socket
        wire = Wire(socket: socket, channel: channel)
        session = Session(role: role, limits: limits, revocationNumber: revocationNumber, now: .now)
        streams = StreamTable(window: limits.initialConnectionWindow)
    }

    deinit {
        socket.close()
    }

    /// Begins the handshake and reading.
    package func start() {
        guard case .handshaking = state, timer == nil else { return }
        timer = Timer(on: loop) { [weak self] in self?.assumeIsolated { $0.timerFired() } }
        socket.start(
            onReadable: { [weak self] in self?.assumeIsolated { $0.socketIsReadable() } },
            onWritable: { [weak self] in self?.assumeIsolated { $0.flush() } })
        do {
            try wire.channel.start()
        } catch {
            return end(error)
        }
        flush()
    }

    /// Waits until the handshake is over and the peer's first frame has been read. From then on ``peer`` is valid.
    ///
    /// - Throws: ``TransportError``: the reason why the connection ended before, or `cancelled`.
    package func ready() async throws(TransportError) {
        while case .handshaking = state {
            await wait(in: readyWaiters, unless: !self.isHandshaking)
            if Task.isCancelled { throw .cancelled }
        }
        if case .ended(let error) = state { throw error }
    }

    /// The identity of the peer, verified by the channel; `nil` before ``ready()``.
    package var peer: PeerIdentity? {
        switch state {
        case .handshaking: nil
        case .open, .draining, .closing, .ended: wire.channel.peer
        }
    }

    /// Derives keys that only the two ends of this connection know. Every connection has different ones.
    ///
    /// - Parameters:
    ///   - label: the purpose; each has a label of its own.
    ///   - target: is filled completely.
    /// - Throws: ``TransportError``: the reason why the connection ended; `protocolViolation` before ``ready()`` and if
    ///   the channel has no keys.
    package func exportKeyingMaterial(
        _ label: String, into target: UnsafeMutableRawBufferPointer
    ) throws(TransportError) {
        switch state {
        case .handshaking: throw TransportError(.protocolViolation, "the handshake is not over")
        case .ended(let error): throw error
        case .open, .draining, .closing: try wire.channel.exportKeyingMaterial(label, into: target)
        }
    }

    /// The number of the revocation list that the peer holds, by its HELLO; `nil` before ``ready()``.
    package var peerRevocationNumber: UInt64? { session.peer?.revocationNumber }

    /// The address of the peer.
    package nonisolated var remoteAddress: SocketAddress { socket.remoteAddress }

    /// The address of this side.
    package nonisolated var localAddress: SocketAddress { socket.localAddress }

    /// Whether no stream is open, in either direction.
    package var isIdle: Bool { streams.isIdle }

    /// Whether ``open(_:)`` can work: the connection lives, neither side is going away, and the peer serves streams.
    ///
    /// Callable from anywhere, without waiting for the loop. The connection may have ended by the time of the answer.
    package nonisolated var isOpen: Bool { canOpen.load(ordering: .relaxed) }

    /// Waits for the connection's end, cancelled or not, and returns the reason.
    @discardableResult
    package func ended() async -> TransportError {
        while true {
            if case .ended(let error) = state { return error }
            await wait(in: endWaiters, cancelled: false, unless: self.hasEnded)
        }
    }

    /// Closes politely, within 2 s: tells the peer, sends what its credit allows, and waits until the peer has ended
    /// its direction too, so that nothing sent is lost. Then it closes the socket.
    ///
    /// Streams that are still open then fail with ``TransportError/Code/connectionLost``.
    package func close(_ code: ApplicationErrorCode = .noError) async {
        switch state {
        case .handshaking, .open, .draining:
            beginClosing()
            session.goAway(code: code)
            flush()
        case .closing, .ended:
            break
        }
        while closing != nil {
            await wait(in: closeWaiters, cancelled: false, unless: self.closing == nil)
        }
    }

    /// Ends the connection at once: drops queued bytes and reads no more.
    package func abort() {
        end(.connectionEnded)
        closeSocket()
    }

    /// Starts the polite close, in which queued bytes may leave for a limited time.
    func beginClosing() {
        state = .closing(isChannelFinished: false)
        armClosing()
    }

    /// Ends the connection: every wait on it returns, and the socket is closed.
    ///
    /// - Parameter lingering: whether the peer may still have to read the last bytes.
    func end(_ error: TransportError, lingering: Bool = false) {
        if case .ended = state { return }
        let error = error.explained(by: goAwayCode)
        state = .ended(error)
        timer?.cancel()
        streams.fail(with: error)
        if lingering {
            wire.endOutput()
            armClosing()
        } else {
            closeSocket()
        }
        arrivalWaiters.wakeAll()
        readyWaiters.wakeAll()
        closedWaiters.wakeAll()
        endWaiters.wakeAll()
    }

    /// Closes the socket, when the peer has read the last bytes or the time is over.
    func closeSocket() {
        socket.close()
        closing?.cancel()
        closing = nil
        closeWaiters.wakeAll()
    }

    private func armClosing() {
        guard closing == nil else { return }
        let timer = Timer(on: loop) {
            self.assumeIsolated {
                $0.end(.connectionEnded)
                $0.closeSocket()
            }
        }
        timer.schedule(after: limits.closeDeadline)
        closing = timer
    }

    /// Raises the window to this connection's share of the budget, because the peer is known now.
    func claimShare() {
        guard let budget, share == nil else { return }
        let share = budget.share()
        self.share = share
        let bytes = budget.floor + share.bytes
        session.widenConnectionWindow(to: min(bytes, budget.initialWindow), maximum: bytes)
        streams.widen(window: session.connectionWindow)
    }

    // MARK: - Waiting

    var hasEnded: Bool { if case .ended = state { true } else { false } }

    private var isHandshaking: Bool { if case .handshaking = state { true } else { false } }

    /// Waits in a list until it is woken, or a task in it is cancelled, unless there is nothing to wait for any more.
    ///
    /// - Parameter cancelled: whether a cancelled task does not wait.
    func wait(in list: WaiterList, cancelled: Bool = true, unless isDue: @autoclosure () -> Bool) async {
        await withTaskCancellationHandler {
            await park(unless: isDue(), cancelled: cancelled) { list.add($0) }
        } onCancel: {
            if cancelled { loop.execute { list.wakeAll() } }
        }
    }

    /// Suspends a task until it is woken, unless there is nothing to wait for any more.
    ///
    /// By default a continuation resumes on the executor for code without an actor, and the task comes to this actor
    /// from there, so one thread would be woken to wake another. So the task prefers the loop while it waits (SE-0417).
    /// For that it leaves this actor between the caller's look and the wait. So `isDue` is checked again here, and a
    /// caller that admits only one waiting task claims its place before.
    ///
    /// - Parameters:
    ///   - isDue: whether there is nothing to wait for.
    ///   - cancelled: whether a cancelled task does not wait.
    ///   - add: keeps the continuation until it is resumed.
    func park(
        unless isDue: @autoclosure () -> Bool, cancelled: Bool = true,
        _ add: (CheckedContinuation<Void, Never>) -> Void
    ) async {
        await withTaskExecutorPreference(loop.taskExecutor) {
            await withCheckedContinuation { continuation in
                // Closures that captured no actor would run elsewhere, and the compiler does not object.
                self.assertIsolated()
                if isDue() || cancelled && Task.isCancelled { return continuation.resume() }
                add(continuation)
            }
        }
    }

    // MARK: - The protocol's time

    func armTimer() {
        guard let deadline = session.nextTimeout() else {
            timer?.cancel()
            return
        }
        timer?.schedule(at: deadline.nanoseconds)
    }

    private func timerFired() {
        session.handleTimeout(now: .now)
        handleEvents()
        flush()
    }
}
