// SPDX-License-Identifier: Apache-2.0

import BatonDocuments
import BatonProtocol

/// What other devices, strangers and this user's applications can make a node spend: every bound on connections, their
/// bytes, activities and documents in one place.
///
/// The bounds of what one connection carries (streams, requests, resets, pings, empty frames, bytes) are ``session``.
/// What all together may make the node keep of what they send, ask and fetch is one budget of 144 MiB (``buffers``),
/// whoever tries.
///
/// What a table of the node holds at the most stands with the table (``HandoffTable``, ``PeerTable``,
/// ``PeerDirectory/watcherBound``), how long one answer may take with who asks, and what discovery spends in
/// `QueryBudget` of its room.
struct NodeLimits: Sendable {
    /// Ranges of a document that its receiver holds open at once, of one chunk each: 4 at first, so that some are on
    /// their way while another is written, and up to 6 where the bandwidth-delay product asks for more. Fewer, down to
    /// parts of one, where other streams hold much of the connection's window.
    ///
    /// A range is opened by credit for a chunk's record, which is given when an earlier one has been verified, written
    /// and noted. So whatever ends a transfer, at most one chunk of each open range has to be sent again. That is
    /// counted in bytes: where chunks are shorter on the wire, being small files or compressed, several are in the
    /// place of one. (Measured between lab hosts at 1 GB/s, in turns: 3 and 4 take 3 to 20 % less time than 2, and 6 no
    /// less than 4.)
    static let openRanges = 4...6

    /// Of each connection. A stream begins with 64 KiB, so that three on which nobody consumes what comes leave room
    /// for a fourth even where the connection has no more than its floor of ``buffers``; it is given 1 MiB when some
    /// was consumed, and one that fetches a document ``openRanges`` at once.
    var session: Limits = {
        var limits = Limits()
        limits.initialStreamWindow = 64 << 10
        limits.activeStreamWindow = 1 << 20
        limits.maximumStreamWindow = openRanges.upperBound * ChunkRecord.plainSize
        limits.initialConnectionWindow = 8 << 20
        return limits
    }()

    // MARK: Connections

    /// Connections at once, in both directions, those that are being dialled among them; one more is closed unread, and
    /// where others were first during its handshake, behind that. Each costs at the worst 1 MiB and its share of
    /// ``buffers``. Default 32.
    var connections = 32
    /// Live connections with one device, so that none uses up those of the others. Default 4.
    var connectionsPerDevice = 4
    /// A connection without a stream, on which nobody holds a claim, is closed after this time. Default 60 s.
    var idleLife = Duration.seconds(60)
    /// How long dialling may take, over all addresses of a device. Default 10 s.
    var dialDeadline = Duration.seconds(10)
    /// Devices that are dialled at once, so that others always find a place beside them; half of them at the most may
    /// be such as no connection has proved. Where a revocation is to be told to more, they have their turn a little
    /// later. Default 16.
    var dials = 16
    /// Devices that are dialled at once without the user naming them, of those that no connection has proved: whoever
    /// has the account's keys can announce devices that do not exist. Default 4.
    var unprovedDials = 4
    /// How long each of these may take, handshake included: what does not exist keeps the others waiting. Default 3 s.
    var unprovedDialDeadline = Duration.seconds(3)

    // MARK: Bytes

    /// The one budget for bytes that others make the node keep. Default 144 MiB.
    var buffers = BufferLimits()

    // MARK: Handshakes: the gate has let the other side in

    /// Connections of others that have not shown yet who they are. Default 16.
    var handshakes = 16
    /// The same from one address: a device that says nothing keeps no other out, unless it has several addresses, as
    /// whoever makes himself some in an IPv6 network has. Default 4.
    var handshakesPerAddress = 4
    /// How long a handshake may take, HELLO included. Default 10 s.
    var handshakeDeadline = Duration.seconds(10)

    /// How long a device may take to tell its revocation lists. Default 5 s.
    var listsDeadline = Duration.seconds(5)
    /// How long after revocation lists could not be stored that is tried again. Default 15 s.
    var storingPause = Duration.seconds(15)
    /// How long what a device asks waits for it to take over revocation lists that it lacks. Default 5 s.
    var catchUpDeadline = Duration.seconds(5)

    // MARK: Admission of incoming connections

    /// Connections that wait for the rest of their first message. Default 64.
    var pendingConnections = 64
    /// The same from one address, so that one slow sender does not keep others out. Default 4.
    var pendingConnectionsPerAddress = 4
    /// How long the first message may take. The kernel keeps connections that have sent nothing for about as long.
    /// Default 5 s.
    var admissionDeadline = Duration.seconds(5)
    /// The most bytes that are read of a first message. A Baton client sends about 400. Default 16 KiB.
    var firstMessageBytes = 16 << 10

    // MARK: Activities and documents

    /// Activities that this user's applications offer at once; one more is refused. Each keeps at most one payload
    /// (64 KiB, and up to 640 KiB when it is read). Default 64.
    var offers = 64
    /// Applications connected at once: all that may offer, accept and watch, and some more so that `baton status` and
    /// `baton withdraw` always reach the node. One more is closed unread.
    var localConnections: Int { offers + HandoffTable.bound + PeerDirectory.watcherBound + 16 }
    /// Documents that one device is sent at once; one more is refused. Each takes a thread, at most three buffers of 1
    /// MiB, and 2 MiB to encode chunks in. As many are described at once. Of those that its applications look at
    /// meanwhile one is read at a time, with at most two buffers beside those; as many wait in line. Default 3.
    var transfersPerDevice = 3
    /// How long a chunk may wait for a device that does not read, which holds buffers that others wait for; and how
    /// long nothing may come of a document. Default 30 s.
    var stallDeadline = Duration.seconds(30)
    /// What has to come of a document in that time at the least, in bytes, unless less is left of it: 4 kbit/s. Default
    /// 16 KiB; who sends a byte now and then would hold the user's accept for ever.
    var leastProgress = 16 << 10
    /// Documents that a rule of the user has accepted and that wait for their turn, half of them of one device at the
    /// most; one more is left to the user, as is said in the log. Default 32.
    var acceptedWaiting = 32
}
