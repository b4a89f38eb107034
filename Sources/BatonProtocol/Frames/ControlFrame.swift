// SPDX-License-Identifier: Apache-2.0

/// A frame that waits to be written ahead of all DATA. Entries are small and own no memory.
///
/// What is written is looked up at that moment: a CREDIT carries the newest offset, a message is taken from its
/// stream, and an entry whose stream is gone writes nothing. So entries need not be searched for and removed.
enum ControlFrame {
    case hello
    case open(StreamID)
    case response(StreamID)
    case end(StreamID)
    case reset(StreamID, ApplicationErrorCode)
    case credit(StreamID)
    case connectionCredit
    case ping(UInt64)
    case pong(UInt64)
    case goAway(lastStream: StreamID, ApplicationErrorCode)
}

/// The rest of an OPEN or RESPONSE whose header is written and whose message did not fit the output.
struct UnfinishedMessage {
    var message: Buffer
    var offset: Int
}

/// What the parser is in the middle of, between two calls of `receive`.
enum InputState {
    /// A header, of which `Session.partial` holds the bytes that came.
    case header
    /// The payload of a frame that is handled as a whole, of which `Session.partial` holds the bytes that came.
    case control(FrameType, FrameHeader)
    /// DATA of a stream, this many bytes of which are still to come.
    case data(StreamID, remaining: Int)
    /// A payload that nobody wants, this many bytes of which are still to come.
    case skipped(remaining: Int)
}
