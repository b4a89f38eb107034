// SPDX-License-Identifier: Apache-2.0

import BatonCore
import BatonDocuments
import BatonProtocol

/// The bounds on what other devices, strangers and this user's applications can make a node spend: connections, their
/// bytes, activities and documents.
///
/// The bounds of one connection (streams, requests, resets, pings, empty frames, bytes) are ``session``. All that
/// others make the node keep has one budget of 144 MiB (``buffers``).
///
/// The bound of a table stands with the table (``HandoffTable``, ``PeerTable``, ``PeerDirectory/watcherBound``), and
/// the time for an answer stands where it is asked for. `QueryBudget` bounds discovery.
struct NodeLimits: Sendable {
    /// Ranges of a document that its receiver holds open at once, of one chunk each: 4, so that some are on their way
    /// while another is written. There are fewer, down to parts of one, if other streams hold much of the connection's
    /// window.
    ///
    /// A range is opened by credit for a chunk's record, which is given when an earlier one has been verified, written
    /// and noted. So whatever ends a transfer, at most one chunk of each open range has to be sent again. Ranges are
    /// counted in bytes: several small or compressed chunks take the place of one. (Measured between lab hosts at
    /// 1 GB/s, in turns: 3 and 4 take 3 to 20 % less time than 2, and 6 no less than 4.)
    static let openRanges = 4

    /// Of each connection. A stream begins with 64 KiB, so that three streams which nobody reads leave room for a
    /// fourth, also if the connection has only its floor of ``buffers``. A stream gets 1 MiB when some of it was read,
    /// and one that fetches a document gets ``openRanges`` at once.
    var session: Limits = {
        var limits = Limits()
        limits.initialStreamWindow = 64 << 10
        limits.activeStreamWindow = 1 << 20
        limits.initialConnectionWindow = 8 << 20
        return limits
    }()

    // MARK: Connections

    /// How many connections there may be, and how many are made at once.
    var links = LinkLimits()
    /// How long dialling may take, over all addresses of a device. Default 10 s.
    var dialDeadline = Duration.seconds(10)
    /// How long dialling may take if no connection has proved the device and no user has named it, handshake included:
    /// what does not exist keeps the others waiting. Default 3 s.
    var unprovedDialDeadline = Duration.seconds(3)

    // MARK: Bytes

    /// The one budget for bytes that others make the node keep. Default 144 MiB.
    var buffers = BufferLimits()

    // MARK: Connections of others, which the gate has let in

    /// How long a handshake may take, HELLO included. Default 10 s.
    var handshakeDeadline = Duration.seconds(10)

    /// How long a device may take to tell its revocation lists. Default 5 s.
    var listsDeadline = Duration.seconds(5)
    /// The pause before revocation lists that could not be stored are stored again. Default 15 s.
    var storingPause = Duration.seconds(15)
    /// How long a request waits for its device to take over revocation lists that it lacks. Default 5 s.
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
    /// meanwhile two are read at once, with at most two buffers each beside those, and three wait. Default 3.
    var transfersPerDevice = 3
    /// How long a chunk may wait for a device that does not read, since it holds buffers that others wait for. A
    /// document of which nothing comes for so long has failed, too. Default 30 s.
    var stallDeadline = Duration.seconds(30)
    /// The least bytes of a document that have to come in that time, unless less is left of it: 4 kbit/s. Else a device
    /// that sends a byte now and then would hold the user's accept for ever. Default 16 KiB.
    var leastProgress = 16 << 10
    /// Documents that a rule has accepted and that wait for their turn, at most half of them of one device. One more is
    /// left to the user, as the log says. Default 32.
    var acceptedWaiting = 32
}
