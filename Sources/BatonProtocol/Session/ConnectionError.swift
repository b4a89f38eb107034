// SPDX-License-Identifier: Apache-2.0

/// The reason why a connection failed. Every case ends the connection; an `ApplicationErrorCode` ends only a stream.
package enum ConnectionError: Error, Sendable, Hashable {
    /// The peer's HELLO did not come by its deadline.
    case helloTimeout
    /// A PING stayed unanswered.
    case pingTimeout
    /// The first bytes are not a HELLO of this protocol.
    case notBaton
    /// A second HELLO.
    case helloRepeated
    /// A HELLO that is too short, too long or contradicts itself.
    case helloMalformed
    /// A HELLO whose limits are below the minimum of the protocol, or whose credits are above its maximum.
    case helloLimits
    /// The peer speaks at most this version, which is too old.
    case peerTooOld(UInt16)
    /// The peer speaks at least this version, which is too new.
    case peerTooNew(UInt16)
    /// A frame longer than allowed.
    case frameTooLarge(type: UInt8, length: Int)
    /// A frame with a length that its type does not have.
    case frameMalformed(type: UInt8)
    /// A frame of the connection with a stream id, or a frame of a stream without one.
    case frameMisplaced(type: UInt8, stream: StreamID)
    /// A frame of unknown type that may not be ignored.
    case unknownFrame(type: UInt8)
    /// A frame for a stream that was never opened.
    case unknownStream(StreamID)
    /// OPEN with an id of the wrong parity, or with one that is not higher than the last.
    case invalidStreamID(StreamID)
    /// OPEN after the peer's own GOAWAY.
    case openAfterGoAway(StreamID)
    /// A second GOAWAY that takes back the first.
    case goAwayRaised
    /// DATA beyond the credit of a stream, or of the connection (stream 0).
    case creditExceeded(StreamID)
    /// A credit above 2^62.
    case creditOverflow(StreamID)
    /// More streams open than this side allows.
    case tooManyStreams
    /// More requests unanswered than this side allows.
    case tooManyUnanswered
    /// The budget for resets and stream errors is used up.
    case tooManyResets
    /// The budget for pings is used up, or a PING came before the last was answered.
    case tooManyPings
    /// The budget for frames without effect is used up.
    case tooManyEmptyFrames
    /// The budget for CREDIT frames is used up.
    case tooManyCredits
    /// The budget for ignorable frames of unknown type is used up.
    case tooManyUnknownFrames
    /// The peer causes frames and does not read them.
    case controlBacklog

    /// The code that the GOAWAY of this error carries.
    package var code: ApplicationErrorCode {
        switch self {
        case .helloTimeout, .pingTimeout:
            .timeout
        case .peerTooOld, .peerTooNew:
            .unsupportedVersion
        case .creditExceeded, .creditOverflow:
            .flowControlError
        case .tooManyStreams, .tooManyUnanswered, .tooManyResets, .tooManyPings, .tooManyEmptyFrames,
            .tooManyCredits, .tooManyUnknownFrames, .controlBacklog, .frameTooLarge:
            .limitExceeded
        case .notBaton, .helloRepeated, .helloMalformed, .helloLimits, .frameMalformed, .frameMisplaced, .unknownFrame,
            .unknownStream, .invalidStreamID, .openAfterGoAway, .goAwayRaised:
            .protocolError
        }
    }
}

/// The reason why a stream could not be opened. The connection is unchanged.
package enum StreamOpenError: Error, Sendable, Hashable {
    /// A GOAWAY was sent or received, or all ids are used: use another connection.
    case goingAway
    /// The connection has failed.
    case dead(ConnectionError)
    /// The peer's HELLO has not come. Before it, an acceptor may open no stream, and a dialer only a few.
    case helloAwaited
    /// The peer allows no more open streams or unanswered requests at present, or too many control frames wait to be
    /// written. Drain the output, and wait for an event.
    case tooMuchUnderWay
    /// The request is longer than `Limits.messageBytes`.
    case messageTooLarge
}

/// The reason why a request could not be answered. The stream is unchanged.
package enum StreamRespondError: Error, Sendable, Hashable {
    /// The stream is gone, was opened by this side, or is already answered.
    case notAwaitingAnswer
    /// The response is longer than `Limits.messageBytes`.
    case messageTooLarge
}
