// SPDX-License-Identifier: Apache-2.0

/// Every bound of a connection: unit, default, worst-case memory, and the abuse that it stops.
///
/// Memory is what a peer can make one connection hold, in this module and in a driver that buffers only bytes that are
/// delivered and not yet consumed. The sum at the defaults is 16 MiB of received data (`maximumConnectionWindow`), 2
/// MiB of requests (`unansweredRequests`), and under 1 MiB of states and queues. The driver bounds what this side
/// queues to send (`Session.queuedBytes(of:)`).
package struct Limits: Sendable, Hashable {
    /// The largest OPEN or RESPONSE message, in bytes: 65,536, fixed by the protocol.
    package static let messageBytes = 65_536
    /// The smallest value that a side may state for `dataFrameBytes`, in bytes.
    package static let leastDataFrameBytes = 16_384
    /// The number of streams that a dialer may open, and leave unanswered, before the acceptor's HELLO has come.
    package static let streamsBeforeHello = 8

    /// The number of future streams whose first credit is left free when windows grow. It is at most a quarter of the
    /// connection's window.
    static let reservedStreams = 16

    /// Time for the peer's HELLO from the session's start. Default 5 s. Stops connections that send nothing.
    package var helloDeadline: Duration = .seconds(5)

    /// The largest DATA payload accepted, in bytes, 16 KiB to 16 MiB. Default 64 KiB. No memory: payload is delivered
    /// as it arrives. Keeps a sender's control frames from waiting behind one long frame.
    package var dataFrameBytes = 65_536

    /// The largest DATA payload sent at a stream's turn, in bytes, and never more than the peer accepts. Default 64 KiB
    /// less a frame's header, so that frame and header fill four TLS records. Smaller is fairer, larger is cheaper.
    package var sliceBytes = 65_536 - FrameHeader.size

    /// The largest number of slices that a stream sends at its turn: see ``Session/setWeight(_:of:)``.
    package static let maximumWeight = 8

    /// Streams that the peer may have open at a time. Default 128; an acceptor grants at least 8, and 0 forbids the
    /// peer of a dialer to open any. About 0.5 KiB each.
    package var openStreams = 128

    /// Requests of the peer that may be unanswered at a time. Default 32; an acceptor grants at least 8. Memory: 64 KiB
    /// each, 2 MiB. Stops a peer that asks faster than the application answers.
    package var unansweredRequests = 32

    /// Streams that are closed on the wire and whose last bytes are not consumed. Default 256, about 0.5 KiB each;
    /// further streams are refused by RESET. Stops streams of one byte from piling up behind a slow application.
    package var unreadStreams = 256

    /// Credit of each stream at its start, in bytes. Default 1 MiB. HELLO states it before the number of streams is
    /// known.
    package var initialStreamWindow = 1 << 20

    /// The size of a stream's window as soon as some of its bytes are consumed, in bytes. Default 0: the first size
    /// stays. It is at most half of what the other streams leave of the connection's window.
    package var activeStreamWindow = 0

    /// Credit of the connection at its start, in bytes. Default 4 MiB.
    package var initialConnectionWindow = 4 << 20

    /// The size to which the connection's window grows with those of its streams, in bytes. Default 16 MiB, which is
    /// the worst-case memory for received data. Stops any number of streams from adding up.
    ///
    /// Streams whose bytes nobody consumes do not stop another one, however far their windows have grown. Three such
    /// streams leave a fourth its credit if this size and `initialConnectionWindow` are at least four times
    /// `initialStreamWindow`. Fifteen leave it to a sixteenth if they are 64 times as large (``reservedStreams``).
    package var maximumConnectionWindow = 16 << 20

    /// RESET frames of open streams, and stream errors. Default 1,024 at once, 32 a second. Stops "rapid reset": asking
    /// and aborting before the answer costs the sender nothing.
    ///
    /// A peer that keeps to `sentResets` never exceeds it. A network that stalls for 37 s delivers 128 + 37 · 24 =
    /// 1,016 of them at once, and `idleInterval` and `pingDeadline` end the connection after 25 s.
    package var resets = Budget(burst: 1024, perSecond: 32)

    /// RESET frames that this side sends. Default 128 at once, 24 a second.
    ///
    /// It does not bound the peer. A program of the user may make this side abort streams, and must not make it exceed
    /// the peer's `resets`, which would end the connection for everybody. A stream whose RESET waits still counts as
    /// open, so at most `openStreams` of them wait, at about 0.5 KiB each.
    package var sentResets = Budget(burst: 128, perSecond: 24)

    /// PING frames. Default 16 at once, 4 a second; and never two unanswered. Stops a peer from making this side write.
    package var pings = Budget(burst: 16, perSecond: 4)

    /// Frames without effect. Default 256 at once, 64 a second. Stops a peer from using up the processor below every
    /// other limit.
    ///
    /// These are empty DATA, CREDIT that raises nothing, an unexpected PONG, a repeated GOAWAY, any frame but DATA for
    /// a forgotten stream, and OPEN that is refused (`unreadStreams`) or comes after this side's GOAWAY.
    package var emptyFrames = Budget(burst: 256, perSecond: 64)

    /// CREDIT frames that raise a credit. Default 1,024 at once, 64 a second, and one more for each stream that opens
    /// and for each ``dataPerCredit`` bytes of DATA sent. Stops a peer that raises credit by next to nothing, or that
    /// raises credit it never uses.
    ///
    /// A peer never exceeds it if each of its CREDIT frames stands for at least twice ``dataPerCredit`` consumed bytes.
    /// One CREDIT of each stream, which widens its window, may stand for less. The factor 2 is there because each byte
    /// needs credit of its stream and of the connection.
    package var credits = Budget(burst: 1024, perSecond: 64)

    /// The bytes of sent DATA that allow the peer one more CREDIT frame: 1,024.
    static let dataPerCredit = 1024

    /// Ignorable frames of unknown type, each of at most 64 KiB. Default 64 at once, 16 a second. No memory: they are
    /// skipped as they arrive. Stops traffic that no credit bounds.
    package var unknownFrames = Budget(burst: 64, perSecond: 16)

    /// Control frames that wait to be written. Default 4,096, 24 bytes each. Stops a peer that causes frames and does
    /// not read them.
    package var queuedControlFrames = 4096

    /// Silence of the peer after which this side sends a PING. Default 15 s; nil never sends one (local socket, which
    /// shows the end of the peer at once).
    package var idleInterval: Duration? = .seconds(15)

    /// Silence after a PING that fails the connection. Default 10 s.
    package var pingDeadline: Duration = .seconds(10)

    /// Time after a PING that fails the connection when other bytes came but no PONG. Default 60 s: a PONG may be stuck
    /// behind data on a slow link.
    package var pingHardDeadline: Duration = .seconds(60)

    /// The time that a closing connection waits until its queue is sent and the peer has ended its direction. Default 2
    /// s. Stops a peer that keeps a connection alive by not reading.
    package var closeDeadline: Duration = .seconds(2)

    /// Makes the defaults.
    package init() {}
}
