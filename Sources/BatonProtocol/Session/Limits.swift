// SPDX-License-Identifier: Apache-2.0

/// Every bound of a connection, in one place: unit, default, worst-case memory, and the abuse it stops.
///
/// Memory is what one connection can be made to hold by a peer, in this module and in a driver that buffers no more
/// than what is delivered and not yet consumed. Sum at the defaults: 16 MiB received data (`maximumConnectionWindow`),
/// 2 MiB requests (`unansweredRequests`), under 1 MiB of states and queues. What this side queues to send is bounded by
/// the driver (`Session.queuedBytes(of:)`).
package struct Limits: Sendable, Hashable {
    /// The largest OPEN or RESPONSE message, in bytes: 65,536, fixed by the protocol.
    package static let messageBytes = 65_536
    /// The least value a side may state for `dataFrameBytes`, in bytes.
    package static let leastDataFrameBytes = 16_384
    /// How many streams a dialer may open, and leave unanswered, before the acceptor's HELLO has come.
    package static let streamsBeforeHello = 8

    /// Streams for whose first credit the windows of others leave room when they grow, as far as that is no more than a
    /// quarter of the connection's window.
    static let reservedStreams = 16

    /// Time for the peer's HELLO from the session's start. Default 5 s. Stops connections that say nothing.
    package var helloDeadline: Duration = .seconds(5)

    /// The largest DATA payload accepted, in bytes, 16 KiB to 16 MiB. Default 64 KiB. No memory: payload is delivered
    /// as it arrives. Keeps a sender from blocking its own control frames behind one frame.
    package var dataFrameBytes = 65_536

    /// The largest DATA payload sent at a stream's turn, in bytes, and never more than the peer accepts. Default 64 KiB
    /// less a frame's header: with it, four full records of TLS. Smaller is fairer, larger is cheaper.
    package var sliceBytes = 65_536 - FrameHeader.size

    /// The most slices that a stream is given at a turn: see ``Session/setWeight(_:of:)``.
    package static let heaviest = 8

    /// Streams the peer may have open at a time. Default 128; an acceptor grants at least 8, 0 forbids a dialer's peer
    /// to open any. About 0.5 KiB each.
    package var openStreams = 128

    /// Requests of the peer that may be unanswered at a time. Default 32; an acceptor grants at least 8. Memory: 64 KiB
    /// each, 2 MiB. Stops a peer that asks faster than it can be answered.
    package var unansweredRequests = 32

    /// Streams that are closed on the wire while their last bytes are not consumed. Default 256, about 0.5 KiB each;
    /// beyond it new streams are refused by RESET. Stops streams of one byte from piling up behind a slow application.
    package var unreadStreams = 256

    /// Credit of each stream at its start, in bytes, which HELLO tells before anybody knows how many there will be.
    /// Default 1 MiB.
    package var initialStreamWindow = 1 << 20

    /// What a stream's window becomes as soon as some of its bytes are consumed, in bytes, and at the most half of what
    /// the other streams leave of the connection's. Default 0: it grows with the bandwidth-delay product alone.
    package var activeStreamWindow = 0

    /// The most a stream's window grows to with the bandwidth-delay product, in bytes, and at the most half of what the
    /// other streams leave of the connection's. Default 4 MiB: 1 Gbit/s at 15 ms with the factor 2 that growth aims at.
    package var maximumStreamWindow = 4 << 20

    /// Credit of the connection at its start, in bytes. Default 4 MiB.
    package var initialConnectionWindow = 4 << 20

    /// The most the connection's window grows to, in bytes. Default 16 MiB, and that is the worst-case memory for
    /// received data. Stops any number of streams from adding up.
    ///
    /// Streams whose bytes nobody consumes do not stop another, however far their windows have grown: three do not stop
    /// a fourth where four times `initialStreamWindow` have room in it and in `initialConnectionWindow`, and fifteen no
    /// sixteenth where it is 64 times as large (``reservedStreams``).
    package var maximumConnectionWindow = 16 << 20

    /// RESET frames of live streams and stream errors. Default 1,024 at once, 32 a second. Stops "rapid reset": asking
    /// and aborting before the answer costs the asker nothing.
    ///
    /// A peer that keeps to `sentResets` never exceeds it: 128, and 24 a second for 37 s that a network which stood
    /// still delivers at once, are 1,016, and `idleInterval` and `pingDeadline` end the connection after 25 s of
    /// standing still.
    package var resets = Budget(burst: 1024, perSecond: 32)

    /// RESET frames that this side sends. Default 128 at once, 24 a second. Not against the peer: whoever may make this
    /// side abort streams, a program of its user for instance, must not make it exceed the budget of its peer, whose
    /// `resets` would end the connection for everybody. A stream whose RESET waits keeps its place among the open ones,
    /// so that no more of them wait than may be open: about 0.5 KiB each.
    package var sentResets = Budget(burst: 128, perSecond: 24)

    /// PING frames. Default 16 at once, 4 a second; and never two unanswered. Stops making us write for nothing.
    package var pings = Budget(burst: 16, perSecond: 4)

    /// Frames without effect: DATA of no byte, CREDIT that raises nothing, PONG that nobody asked for, END, RESPONSE,
    /// RESET and CREDIT for forgotten streams, OPEN that is refused (`unreadStreams`, or after our GOAWAY), repeated
    /// GOAWAY. Default 256 at once, 64 a second. Stops burning our processor below every other limit.
    package var emptyFrames = Budget(burst: 256, perSecond: 64)

    /// Ignorable frames of unknown type, each of at most 64 KiB. Default 64 at once, 16 a second. No memory: skipped as
    /// they arrive. Stops traffic that no credit bounds.
    package var unknownFrames = Budget(burst: 64, perSecond: 16)

    /// Control frames that wait to be written. Default 4,096, 24 bytes each. Stops a peer that provokes frames and does
    /// not read.
    package var queuedControlFrames = 4096

    /// Silence of the peer after which a PING asks for life. Default 15 s; nil never asks (a local socket, where the
    /// end of the peer is seen at once).
    package var idleInterval: Duration? = .seconds(15)

    /// Silence after a PING that fails the connection. Default 10 s.
    package var pingDeadline: Duration = .seconds(10)

    /// Time after a PING that fails the connection when other bytes came but no PONG. Default 60 s: a PONG may be stuck
    /// behind data on a slow link.
    package var pingHardDeadline: Duration = .seconds(60)

    /// How long a connection that is closed waits for what is queued to leave, and for the peer to end its own
    /// direction. Default 2 s. Nobody keeps a connection alive by not reading.
    package var closeDeadline: Duration = .seconds(2)

    /// Queued bytes of a stream at which `Event.writable` asks for more. Default 256 KiB. Not a bound; the driver's
    /// refill keeps the link busy.
    package var writableLowWater = 256 << 10

    /// The greatest offset that a peer may grant: the protocol's, and no setting. Tests of attacks see what it is good
    /// for.
    var greatestCredit = PeerHello.maximumOffset

    /// The defaults.
    package init() {}

    /// Stops the program on limits that contradict the protocol: a mistake of ours, never of a peer.
    func check(for role: Role) {
        precondition(
            (Self.leastDataFrameBytes...(16 << 20)).contains(dataFrameBytes), "dataFrameBytes lies in 16 KiB...16 MiB")
        precondition(sliceBytes > 0, "sliceBytes is positive")
        for window in [initialStreamWindow, maximumStreamWindow, initialConnectionWindow, maximumConnectionWindow] {
            precondition((1...(1 << 40)).contains(window), "windows lie in 1 byte...1 TiB")
        }
        precondition((0...(1 << 40)).contains(activeStreamWindow), "activeStreamWindow lies in 0...1 TiB")
        for budget in [resets, sentResets, pings, emptyFrames, unknownFrames] {
            precondition(
                (0...(1 << 30)).contains(budget.burst) && (0...(1 << 30)).contains(budget.perSecond),
                "budgets lie in 0...2^30")
        }
        precondition((0...(1 << 30)).contains(openStreams), "openStreams lies in 0...2^30")
        precondition((0...(1 << 30)).contains(unansweredRequests), "unansweredRequests lies in 0...2^30")
        switch role {
        case .acceptor:
            precondition(
                openStreams >= Self.streamsBeforeHello && unansweredRequests >= Self.streamsBeforeHello,
                "an acceptor grants what a dialer may use before HELLO")
        case .dialer:
            break
        }
    }
}
