// SPDX-License-Identifier: Apache-2.0

package import BatonEventLoop
package import BatonProtocol
import Synchronization

/// One connection to a peer: the driver that joins socket, channel and protocol.
///
/// The actor's executor is its event loop, so that a readiness handler enters it synchronously, and so that nothing
/// here needs a lock. Bytes go socket → channel → session → stream buffers, and back the same way, within one turn of
/// the loop. Nothing is buffered without bound: receiving is bounded by the credit that the session grants, sending
/// by ``sendQueueBound`` for each stream.
///
/// This file has the connection's life; its streams are in `Connection+Streams.swift`, and the movement of bytes in
/// `Connection+Bytes.swift`.
package actor Connection {
    /// How much of one stream may be queued before ``Stream/write(_:queueBound:)`` waits. Two document chunks: one that
    /// is being sent while the next is read from the disk.
    package static let sendQueueBound = 2 << 20
    /// Bytes that the kernel is given ahead of what the network takes, at most: 256 KiB. Half a millisecond at the
    /// speed of a disk, a quarter of a second at 8 Mbit/s.
    static let unsentBound = 256 << 10
    /// The most that a reader may wait for: a chunk of a document, and what its record adds. Half of what a stream's
    /// credit allows at first is the bound where that is less, or the peer would wait too.
    package static let readBound = 1 << 20 + 4096

    /// The event loop that this connection lives on.
    package nonisolated let loop: EventLoop
    package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// Streams that the peer opens; ends with the connection.
    package nonisolated var incoming: IncomingStreams { IncomingStreams(connection: self) }

    let limits: Limits
    let wire: Wire
    var session: Session
    var streams: StreamTable
    var arrivals = Arrivals()
    private let budget: ReceiveBudget?
    /// What the peer's requests may hold; `nil` without a budget.
    let requests: RequestShare?
    /// What the peer may make this connection hold: given back when nobody holds the connection any more, because what
    /// has arrived can be read after its end.
    private var share: ReceiveShare?

    var state = State.handshaking {
        didSet {
            let opens = if case .open = state, let peer = session.peer { peer.openStreams > 0 } else { false }
            canOpen.store(opens, ordering: .relaxed)
        }
    }
    /// For ``isOpen``, which is asked on other loops.
    private nonisolated let canOpen = Atomic<Bool>(false)
    /// What the peer's last GOAWAY said.
    var goAwayCode = ApplicationErrorCode.noError
    private let socket: Socket
    /// Made by ``start()``, because its handler refers to this actor.
    private var timer: Timer?
    private var armedDeadline: Instant?
    /// Runs while the connection closes or its socket lingers, and keeps the connection alive for that time.
    private var closing: Timer?
    private var readyWaiters = WaiterList()
    /// Woken whenever a stream has given its place back.
    var placeWaiters = WaiterList()
    private var endWaiters = WaiterList()
    private var closeWaiters = WaiterList()

    enum State {
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
    ///   - revocationNumber: what HELLO tells of the revocation lists held here; 0, the default, where there is none.
    ///   - budget: what all connections share for what they receive. With one, the connection's window begins at its
    ///     floor and becomes this connection's share, within `limits`, once the peer is known; and a stream is refused
    ///     (`limitExceeded`) for whose request there is no room.
    package init(
        socket: sending Socket, channel: sending any Channel, role: Role, limits: Limits = Limits(),
        revocationNumber: UInt64 = 0, budget: ReceiveBudget? = nil, on loop: EventLoop
    ) {
        let limits = budget?.limitingToFloor(limits) ?? limits
        self.loop = loop
        self.limits = limits
        self.budget = budget
        requests = budget?.requestShare()
        // What is urgent is queued here in front of documents, and waits behind all that the kernel has taken.
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
            try wire.startHandshake()
        } catch {
            return end(error)
        }
        flush()
    }

    /// Waits until the handshake is over and the peer's first frame has been read: from then on ``peer`` holds.
    ///
    /// - Throws: ``TransportError``: why the connection ended before, or `cancelled`.
    package func ready() async throws(TransportError) {
        while case .handshaking = state {
            let ticket = readyWaiters.ticket()
            await withTaskCancellationHandler {
                await park(unless: !self.isHandshaking) { self.readyWaiters.add($0, ticket) }
            } onCancel: {
                loop.execute { [weak self] in self?.assumeIsolated { $0.readyWaiters.wake(ticket) } }
            }
            if Task.isCancelled { throw .cancelled }
        }
        if case .ended(let error) = state { throw error }
    }

    /// Who the peer is, proved by the channel; `nil` before ``ready()``.
    package var peer: PeerIdentity? {
        switch state {
        case .handshaking: nil
        case .open, .draining, .closing, .ended: wire.peer
        }
    }

    /// Derives keys that only the two ends of this connection know, and no other connection of theirs.
    ///
    /// - Parameters:
    ///   - label: what they are for; each purpose has its own.
    ///   - target: gets as many bytes as it has room for.
    /// - Throws: ``TransportError``: why the connection ended; `protocolViolation` before ``ready()`` and where the
    ///   channel has no keys.
    package func exportKeyingMaterial(
        _ label: String, into target: UnsafeMutableRawBufferPointer
    ) throws(TransportError) {
        switch state {
        case .handshaking: throw TransportError(.protocolViolation, "the handshake is not over")
        case .ended(let error): throw error
        case .open, .draining, .closing: try wire.exportKeyingMaterial(label, into: target)
        }
    }

    /// What the peer's HELLO told of the revocation lists that it holds; `nil` before ``ready()``.
    package var peerRevocationNumber: UInt64? { session.peer?.revocationNumber }

    /// Where the peer is.
    package nonisolated var remoteAddress: SocketAddress { socket.remoteAddress }

    /// Where this side's end of the connection is.
    package nonisolated var localAddress: SocketAddress { socket.localAddress }

    /// Whether no stream is open, in either direction.
    package var isIdle: Bool { streams.isIdle }

    /// Whether ``open(_:)`` can work: the connection lives, neither side is going away, and the peer serves streams.
    ///
    /// Callable from anywhere, without waiting for the loop: it may have ended by the time of the answer.
    package nonisolated var isOpen: Bool { canOpen.load(ordering: .relaxed) }

    /// Waits for the connection's end, cancelled or not, and tells why it ended.
    @discardableResult
    package func ended() async -> TransportError {
        while true {
            if case .ended(let error) = state { return error }
            await park(unless: self.hasEnded, cancelled: false) { self.endWaiters.add($0) }
        }
    }

    /// Closes politely: tells the peer, lets what its credit allows leave, and waits until the peer has ended its
    /// direction too, so that nothing that was sent is lost; all that for at most 2 s. Then it closes the socket.
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
            await park(unless: self.closing == nil, cancelled: false) { self.closeWaiters.add($0) }
        }
    }

    /// Ends the connection at once: nothing that is queued leaves any more, and nothing is read.
    package func abort() {
        end(.connectionEnded)
        closeSocket()
    }

    /// Lets what is queued leave, from now on and for a time.
    func beginClosing() {
        state = .closing(hasSaidFarewell: false)
        armClosing()
    }

    /// Ends the connection: every wait on it returns, and the socket is closed.
    ///
    /// - Parameter lingering: the peer may still have to read what was sent last.
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
        arrivals.waiter.wake()
        readyWaiters.wakeAll()
        placeWaiters.wakeAll()
        endWaiters.wakeAll()
    }

    /// The last words have been said, and heard as far as that can be known.
    func closeSocket() {
        wire.close()
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

    /// The peer is known now: its window becomes its share of what there is for all.
    func takeShare() {
        guard let budget, share == nil else { return }
        let share = budget.share()
        self.share = share
        session.widenConnectionWindow(to: min(share.bytes, budget.initialWindow), maximum: share.bytes)
        streams.widen(window: session.connectionWindow)
    }

    // MARK: - Waiting

    var hasEnded: Bool { if case .ended = state { true } else { false } }

    private var isHandshaking: Bool { if case .handshaking = state { true } else { false } }

    /// Puts a task to sleep on this actor's loop, unless there is nothing to wait for any more.
    ///
    /// By itself a continuation resumes wherever its task runs what belongs to no actor, and the task comes here from
    /// there: one thread would be woken to wake another. So the task prefers the loop while it waits (SE-0417). It
    /// leaves this actor for that: what it waits for may come between its look and its wait, and so may another task
    /// that waits for the same. The former is looked at once more here; where only one may wait, `add` looks at the
    /// latter.
    ///
    /// - Parameters:
    ///   - isDue: whether what is waited for has come.
    ///   - cancelled: whether a cancelled task does not wait.
    ///   - add: keeps the continuation where it will be woken.
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

    func wakeReadyWaiters() {
        readyWaiters.wakeAll()
    }
}
