// SPDX-License-Identifier: Apache-2.0

/// A frame that waits to be written ahead of all DATA. Entries are small and own no memory.
///
/// The content is looked up when the frame is written: a CREDIT carries the newest offset, a message comes from its
/// stream, and an entry whose stream is gone writes nothing. So nobody has to find and remove entries.
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

/// The rest of an OPEN or RESPONSE whose header is written and whose message did not fit into the output.
struct UnfinishedMessage {
    var message: Buffer
    var offset: Int
}

/// The state of the parser between two calls of `receive`.
enum InputState {
    /// A header. `Session.partial` holds the bytes that have arrived.
    case header
    /// The payload of a frame that is handled as a whole. `Session.partial` holds the bytes that have arrived.
    case control(FrameType, FrameHeader)
    /// DATA of a stream, with the number of bytes that are still to come.
    case data(StreamID, remaining: Int)
    /// A payload that is ignored, with the number of bytes that are still to come.
    case skipped(remaining: Int)
}
