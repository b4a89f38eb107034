// SPDX-License-Identifier: Apache-2.0

package import BatonProtocol

/// Why a connection or a stream could not go on.
///
/// A struct rather than an enum, so that a code of a newer version is no break of source for applications.
package struct TransportError: Error, Sendable, CustomStringConvertible {
    /// What kind of failure it is.
    package enum Code: Sendable, Hashable {
        /// No connection could be made: nobody listens there, no route, or no answer in time.
        case unreachable
        /// The handshake was refused: the peer is of another account, is revoked, or is not who was dialled.
        case refused
        /// The peer does not keep to the protocol, or is not a Baton.
        case protocolViolation
        /// The connection ended or broke.
        case connectionLost
        /// The peer, or this side, is closing and opens no more streams.
        case goingAway
        /// The peer aborted this stream.
        case reset(ApplicationErrorCode)
        /// A limit of this connection was reached, such as the number of open streams.
        case limitExceeded
        /// The task that waited was cancelled.
        case cancelled
        /// The stream was used after this side ended or aborted it.
        case streamClosed
        /// Another task waits for the same thing of this stream.
        case alreadyWaiting
    }

    package let code: Code
    /// One sentence for people, without a full stop at the end.
    package let message: String

    package init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    package var description: String { message }

    static let cancelled = TransportError(.cancelled, "it was cancelled")
    static let streamClosed = TransportError(.streamClosed, "the stream is closed on this side")
    static let alreadyWaiting = TransportError(
        .alreadyWaiting, "another task waits for the same thing of this stream")
    static let connectionEnded = TransportError(.connectionLost, "the connection ended")

    static func reset(_ code: ApplicationErrorCode) -> TransportError {
        let isCancelled = code == .cancelled
        return TransportError(
            .reset(code), isCancelled ? "the other side cancelled it" : "the other side aborted the stream (\(code))")
    }
}
