// SPDX-License-Identifier: Apache-2.0

/// One connection of `baton/1`: a state machine without I/O, clock or thread.
///
/// Bytes from the peer go in with `receive`, bytes for the peer come out of `nextOutput`, time comes in with every
/// call, and everything that happens is an `Event`. The driver's loop is:
///
///     while unread bytes remain: receive → drain nextEvent
///     after any call:            drain nextEvent, then nextOutput while hasOutput and the socket takes bytes
///     at nextTimeout:            handleTimeout
///
/// The driver must keep reading the socket whatever the application does: credit, not the socket, holds the peer back,
/// and a PONG may stand behind data. A session is confined to its owner; it is not copyable, because two copies of one
/// connection could only disagree.
package struct Session: ~Copyable {
    /// The least room that `nextOutput` accepts, in bytes: the longest frame that is not split.
    package static let minimumOutput = 128

    enum Phase {
        case awaitingHello(deadline: Instant)
        case established
        case dead(ConnectionError)
    }

    struct GoAway {
        var lastStream: StreamID
        var code: ApplicationErrorCode
    }

    struct Buckets {
        var resets: TokenBucket
        var sentResets: TokenBucket
        var pings: TokenBucket
        var emptyFrames: TokenBucket
        var unknownFrames: TokenBucket
    }

    /// Which side this is.
    package let role: Role
    /// The bounds that this side keeps and states.
    package let limits: Limits
    /// What the peer said about itself, nil until its HELLO came.
    package internal(set) var peer: PeerHello?

    /// The latest instant that a call brought; calls without one happen then.
    var present: Instant
    let hello: PeerHello
    var isHelloWritten = false
    var phase: Phase
    var streams: StreamTable
    var events = Queue<Event>()

    var input = InputState.header
    /// The part of a header or control payload that came; its memory is kept.
    var partial: [UInt8] = []

    var control = Queue<ControlFrame>()
    /// Aborted streams whose RESET waits for its turn: see `Limits.sentResets`.
    var waitingResets = Queue<WaitingReset>()
    var unfinished: UnfinishedMessage?
    /// Streams with bytes and stream credit, in the order of their turns.
    var ring = Queue<Stream>()

    var sendWindow = SendWindow(limit: 0)
    var receiveWindow: ReceiveWindow
    var isCreditQueued = false
    var liveness: Liveness
    var isPongQueued = false
    var buckets: Buckets
    var goAwaySent: GoAway?
    var goAwayReceived: GoAway?
    var isDrainedReported = false

    /// Begins a connection; its HELLO is the first output.
    ///
    /// - Parameters:
    ///   - role: which side this is.
    ///   - limits: the bounds this side keeps; stated to the peer where it must know them.
    ///   - features: feature bits to state.
    ///   - revocationNumber: number of the revocation list held, 0 where there is none.
    ///   - now: the present; the deadline of the peer's HELLO counts from it.
    package init(
        role: Role, limits: Limits = Limits(), features: UInt64 = 0, revocationNumber: UInt64 = 0, now: Instant
    ) {
        limits.check(for: role)
        self.role = role
        self.limits = limits
        present = now
        hello = PeerHello(limits: limits, features: features, revocationNumber: revocationNumber)
        phase = .awaitingHello(deadline: now + limits.helloDeadline)
        streams = StreamTable(role: role)
        receiveWindow = ReceiveWindow(
            initial: limits.initialConnectionWindow, maximum: limits.maximumConnectionWindow,
            parts: Self.connectionWindowParts, now: now)
        liveness = Liveness(now: now)
        buckets = Buckets(
            resets: TokenBucket(limits.resets, now: now), sentResets: TokenBucket(limits.sentResets, now: now),
            pings: TokenBucket(limits.pings, now: now), emptyFrames: TokenBucket(limits.emptyFrames, now: now),
            unknownFrames: TokenBucket(limits.unknownFrames, now: now))
        partial.reserveCapacity(FrameHeader.size)
        control.append(.hello)
    }

    /// The error that ended the connection, nil while it lives.
    package var failure: ConnectionError? {
        switch phase {
        case .dead(let error): error
        case .awaitingHello, .established: nil
        }
    }

    /// The next thing that happened, nil when nothing waits.
    package mutating func nextEvent() -> Event? {
        guard let event = events.popFirst() else { return nil }
        switch event {
        case .writable(let id):
            streams[id]?.isWritableReported = false
        case .helloReceived, .opened, .responded, .finished, .reset, .closed, .goAwayReceived, .drained, .dead:
            break
        }
        return event
    }

    /// Moves the session's time forward.
    mutating func advance(to now: Instant) {
        present = max(present, now)
    }

    // MARK: The end of a connection

    /// Ends the connection: drops everything, leaves a GOAWAY with the reason in the output and `dead` as last event.
    mutating func fail(_ error: ConnectionError) {
        switch phase {
        case .dead:
            return
        case .awaitingHello, .established:
            break
        }
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

    /// Reports `drained` once when a GOAWAY was said and no stream is left.
    mutating func reportIfDrained() {
        guard goAwaySent != nil || goAwayReceived != nil, streams.isEmpty, !isDrainedReported, failure == nil else {
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

    /// Forgets a stream that needs no RESET: its bytes are discarded and their credit is given back.
    mutating func abandon(_ stream: Stream) {
        dropQueued(of: stream)
        streams.remove(stream)
        giveBack(stream.receiveWindow.unconsumed)
        reportClosed(stream)
    }

    /// Drops what a stream would send.
    mutating func dropQueued(of stream: Stream) {
        stream.dropQueued()
        if stream.isInRing { ring.keep { $0 !== stream } }
    }

    /// Removes a stream of which nothing is left.
    mutating func forget(_ stream: Stream) {
        streams.remove(stream)
        reportClosed(stream)
    }

    private mutating func reportClosed(_ stream: Stream) {
        if stream.isReported { report(.closed(stream.id)) }
        reportIfDrained()
    }

    /// Moves a stream on after one of its directions ended or its bytes were consumed.
    mutating func settle(_ stream: Stream) {
        guard stream.isClosed else { return }
        streams.closed(stream)
        guard stream.isForgettable else { return }
        forget(stream)
    }

    /// Counts bytes as consumed for the connection, and grants credit when that is due.
    mutating func giveBack(_ count: Int) {
        guard count > 0 else { return }
        receiveWindow.grow(to: receiveWindow.consume(count, now: present, roundTrip: liveness.roundTrip))
        offerConnectionCredit()
    }

    /// Grants credit of the connection when that is due.
    mutating func offerConnectionCredit() {
        guard receiveWindow.isCreditDue, !isCreditQueued else { return }
        isCreditQueued = true
        enqueue(.connectionCredit)
    }
}
