// SPDX-License-Identifier: Apache-2.0

package import BatonProtocol

/// The reason why a connection or a stream failed.
///
/// A struct and not an enum, so that a new code does not break the source of applications.
package struct TransportError: Error, Sendable, CustomStringConvertible {
    /// The kind of failure.
    package enum Code: Sendable, Hashable {
        /// No connection could be made: nobody listens, there is no route, or no answer came in time.
        case unreachable
        /// The handshake was refused: the peer is of another account, is revoked, or is not the dialled device.
        case refused
        /// The peer breaks the protocol, or does not speak it.
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
        /// Another task waits for the same on this stream.
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
    static let streamClosed = TransportError(.streamClosed, "this program has already ended the stream")
    static let alreadyWaiting = TransportError(
        .alreadyWaiting, "another task waits for the same thing of this stream")
    static let connectionEnded = TransportError(.connectionLost, "the connection ended")

    static func reset(_ code: ApplicationErrorCode) -> TransportError {
        let message =
            if code == .cancelled {
                "the other side cancelled it"
            } else if let status = code.programStatus {
                "the program on the other side failed with status \(status): what came may be cut short"
            } else {
                "the other side aborted the stream (\(code))"
            }
        return TransportError(.reset(code), message)
    }
}
