// SPDX-License-Identifier: Apache-2.0

/// A report of a session to its driver. Drain with `Session.nextEvent()` after every call; the order matters.
package enum Event: Sendable, Hashable {
    /// The peer's HELLO came; always the first event of a connection that works.
    case helloReceived(PeerHello)
    /// The peer opened a stream with this request message. Answer with `respond`, or `reset`.
    case opened(StreamID, request: [UInt8])
    /// The peer answered the request of a stream that this side opened. Data of the peer follows, if any.
    case responded(StreamID, message: [UInt8])
    /// The peer's END: every byte it sent on the stream has been delivered before.
    case finished(StreamID)
    /// The stream was aborted in both directions, by the peer or because the peer broke the stream's rules. Drop its
    /// bytes: their credit is already given back. `closed` follows.
    case reset(StreamID, ApplicationErrorCode)
    /// The peer reset the stream with a code that keeps what came before (`ApplicationErrorCode.keepsInput`): nothing
    /// more can be sent, and what was delivered is to be consumed. `closed` follows when it is.
    case stopped(StreamID, ApplicationErrorCode)
    /// Both directions are done and all bytes are consumed; the stream no longer counts as open. The last event of a
    /// stream. A connection that fails sends none.
    case closed(StreamID)
    /// The peer closes politely, or says why it fails. It accepts no stream above `lastStream`, and none may be opened.
    /// Streams of this side above it end with `reset(_, .goingAway)`: they were not processed.
    case goAwayReceived(ApplicationErrorCode, lastStream: StreamID)
    /// A GOAWAY was sent or received and no stream is left: flush the output and close.
    case drained
    /// The connection failed; always the last event. Flush the output (it holds a GOAWAY with the reason) and close.
    case dead(ConnectionError)
}
