// SPDX-License-Identifier: Apache-2.0

/// One connection of `baton/1`: a state machine without I/O, clock or thread.
///
/// `receive` takes bytes from the peer, and `nextOutput` gives bytes for the peer. Every call brings the time. An
/// `Event` reports everything that happens. The driver's loop is:
///
///     while unread bytes remain: receive → drain nextEvent
///     after any call:            drain nextEvent, then nextOutput while hasOutput and the socket takes bytes
///     at nextTimeout:            handleTimeout
///
/// The driver must keep reading the socket whatever the application does: credit, not the socket, limits the peer, and
/// a PONG may be behind data. A session is confined to its owner. It is not copyable, because two copies of one
/// connection would disagree.
package struct Session: ~Copyable {
    /// The smallest space that `nextOutput` accepts, in bytes: the longest frame that is not split.
    package static let minimumOutput = 128

    enum Phase {
        case awaitingHello(deadline: Instant)
        case established
        case dead(ConnectionError)
    }

    struct Buckets {
        var resets: TokenBucket
        var sentResets: TokenBucket
        var pings: TokenBucket
        var emptyFrames: TokenBucket
        var credits: TokenBucket
        var unknownFrames: TokenBucket
    }

    /// Which side this is.
    package let role: Role
    /// The bounds that this side enforces and states.
    package let limits: Limits
    /// The content of the peer's HELLO, nil until it has come.
    package internal(set) var peer: PeerHello?

    /// The latest time that a call brought. Calls without a time happen then.
    var present: Instant
    let hello: PeerHello
    var isHelloWritten = false
    var phase: Phase
    var streams: SessionStreamTable
    var events = Queue<Event>()

    var input = InputState.header
    /// The part of a header or control payload that has arrived. Its memory is kept.
    var partial: [UInt8] = []

    var control = Queue<ControlFrame>()
    /// Aborted streams whose RESET waits for its turn: see `Limits.sentResets`.
    var waitingResets = Queue<WaitingReset>()
    var unfinished: UnfinishedMessage?
    /// Streams with bytes and stream credit, in the order of their turns.
    var ring = Queue<SessionStream>()

    var sendWindow = SendWindow(limit: 0)
    var receiveWindow: ReceiveWindow
    /// The size to which `receiveWindow` grows.
    var maximumWindow: Int
    var isCreditQueued = false
    /// Bytes of sent DATA that have not refunded the peer's budget for CREDIT yet: see ``Limits/credits``.
    var unrefundedData = 0
    var liveness: Liveness
    var isPongQueued = false
    var buckets: Buckets
    var isGoAwaySent = false
    /// The last stream that the peer's GOAWAY accepts.
    var goAwayReceived: StreamID?
    var isDrainedReported = false

    /// Begins a connection; its HELLO is the first output.
    ///
    /// - Parameters:
    ///   - role: the side of the connection.
    ///   - limits: the bounds of this side. HELLO states those that the peer must know.
    ///   - revocationNumber: the number of the revocation list held, 0 if there is none.
    ///   - now: the present; the deadline of the peer's HELLO counts from it.
    package init(
        role: Role, limits: Limits = Limits(), revocationNumber: UInt64 = 0, now: Instant
    ) {
        self.role = role
        self.limits = limits
        present = now
        hello = PeerHello(limits: limits, revocationNumber: revocationNumber)
        phase = .awaitingHello(deadline: now + limits.helloDeadline)
        streams = SessionStreamTable(role: role)
        receiveWindow = ReceiveWindow(size: limits.initialConnectionWindow, parts: Self.connectionWindowParts)
        maximumWindow = max(limits.initialConnectionWindow, limits.maximumConnectionWindow)
        liveness = Liveness(now: now)
        buckets = Buckets(
            resets: TokenBucket(limits.resets, now: now), sentResets: TokenBucket(limits.sentResets, now: now),
            pings: TokenBucket(limits.pings, now: now), emptyFrames: TokenBucket(limits.emptyFrames, now: now),
            credits: TokenBucket(limits.credits, now: now), unknownFrames: TokenBucket(limits.unknownFrames, now: now))
        partial.reserveCapacity(FrameHeader.size)
        control.append(.hello)
    }

    /// The error that ended the connection, nil while it lives.
    package var failure: ConnectionError? {
        if case .dead(let error) = phase { error } else { nil }
    }

    /// The next event, nil if none waits.
    package mutating func nextEvent() -> Event? { events.popFirst() }

    /// Moves the session's time forward.
    mutating func advance(to now: Instant) {
        present = max(present, now)
    }

    // MARK: The end of a connection

    /// Ends the connection: drops everything, and leaves a GOAWAY with the reason in the output and `dead` as the last
    /// event.
    mutating func fail(_ error: ConnectionError) {
        guard failure == nil else { return }
        phase = .dead(error)
        for stream in streams.all { stream.dropQueued() }
        streams.removeAll()
        ring.removeAll()
        waitingResets.removeAll()
        control.removeAll()
        partial = []
        if !isHelloWritten { control.append(.hello) }
        control.append(.goAway(lastStream: streams.highestPeer, error.code))
        events.append(.dead(error))
    }

    /// Adds an event; `dead` stays the last one.
    mutating func report(_ event: Event) {
        if failure == nil { events.append(event) }
    }

    /// Reports `drained` once when a GOAWAY was sent or received and no stream is left.
    mutating func reportIfDrained() {
        guard isGoAwaySent || goAwayReceived != nil, streams.isEmpty, !isDrainedReported, failure == nil else {
            return
        }
        isDrainedReported = true
        report(.drained)
    }

    // MARK: The end of a stream

    /// Puts a frame into the control queue, which is bounded.
    mutating func enqueue(_ frame: ControlFrame) {
        guard failure == nil else { return }
        control.append(frame)
        if control.count > limits.queuedControlFrames { fail(.controlBacklog) }
    }

    /// Forgets a stream that needs no RESET: discards its bytes and returns their credit.
    mutating func abandon(_ stream: SessionStream) {
        dropQueued(of: stream)
        streams.remove(stream)
        returnCredit(stream.receiveWindow.unconsumed)
        reportClosed(stream)
    }

    /// Drops the queued bytes of a stream.
    mutating func dropQueued(of stream: SessionStream) {
        stream.dropQueued()
        if stream.isInRing { ring.keep { $0 !== stream } }
        stream.isInRing = false
    }

    /// Removes a stream that is closed and consumed.
    mutating func forget(_ stream: SessionStream) {
        streams.remove(stream)
        reportClosed(stream)
    }

    private mutating func reportClosed(_ stream: SessionStream) {
        if stream.isReported { report(.closed(stream.id)) }
        reportIfDrained()
    }

    /// Closes a stream if both of its directions have ended, and forgets it if its bytes are consumed.
    mutating func closeIfDone(_ stream: SessionStream) {
        guard stream.isClosed else { return }
        streams.closed(stream)
        guard stream.isForgettable else { return }
        forget(stream)
    }

    /// Counts bytes as consumed for the connection, and grants credit if that is due.
    mutating func returnCredit(_ count: Int) {
        guard count > 0 else { return }
        receiveWindow.consume(count)
        queueConnectionCreditIfDue()
    }

    /// Grants credit of the connection if that is due.
    mutating func queueConnectionCreditIfDue() {
        guard receiveWindow.isCreditDue, !isCreditQueued else { return }
        isCreditQueued = true
        enqueue(.connectionCredit)
    }
}
