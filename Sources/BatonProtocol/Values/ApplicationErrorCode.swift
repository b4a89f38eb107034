// SPDX-License-Identifier: Apache-2.0

/// The reason in a RESET or GOAWAY frame: an open set, so that a code from a newer peer survives.
///
/// Codes below 256 belong to the protocol (`WireProtocol.md`, chapter "Error codes"); from 256 on they are free for
/// applications that speak through a continuation stream.
package struct ApplicationErrorCode: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
    /// The number on the wire.
    package let rawValue: UInt32

    /// Makes a code from its number on the wire; every number is valid.
    package init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    /// 0: nothing failed. In GOAWAY: a polite close.
    package static let noError = Self(rawValue: 0)
    /// 1: the application or its user no longer wants the stream.
    package static let cancelled = Self(rawValue: 1)
    /// 2: the request was understood and is not granted.
    package static let refused = Self(rawValue: 2)
    /// 3: the sender failed in a way that is not the peer's fault.
    package static let internalError = Self(rawValue: 3)
    /// 4: a frame or message broke the rules of the protocol.
    package static let protocolError = Self(rawValue: 4)
    /// 5: more bytes were sent than credit allowed.
    package static let flowControlError = Self(rawValue: 5)
    /// 6: a limit or budget was exceeded.
    package static let limitExceeded = Self(rawValue: 6)
    /// 7: the document changed while it was read.
    package static let sourceChanged = Self(rawValue: 7)
    /// 8: the party behind the peer (application, device) cannot be reached.
    package static let unreachable = Self(rawValue: 8)
    /// 9: an answer did not come in time.
    package static let timeout = Self(rawValue: 9)
    /// 10: the connection is closing; the stream was not processed and may be tried on another connection.
    package static let goingAway = Self(rawValue: 10)
    /// 11: no version of the protocol is spoken by both sides.
    package static let unsupportedVersion = Self(rawValue: 11)
    /// 12: what the request names does not exist, or no longer.
    package static let notFound = Self(rawValue: 12)
    /// 13: the receiver could not store what it was sent (full, read-only, exists).
    package static let destinationFailed = Self(rawValue: 13)
    /// 14: the peer is no longer a device of the account.
    package static let revoked = Self(rawValue: 14)

    /// The name of a known code, the number of any other.
    package var description: String {
        switch self {
        case .noError: "no error"
        case .cancelled: "cancelled"
        case .refused: "refused"
        case .internalError: "internal error"
        case .protocolError: "protocol error"
        case .flowControlError: "flow control error"
        case .limitExceeded: "limit exceeded"
        case .sourceChanged: "source changed"
        case .unreachable: "unreachable"
        case .timeout: "timeout"
        case .goingAway: "going away"
        case .unsupportedVersion: "unsupported version"
        case .notFound: "not found"
        case .destinationFailed: "destination failed"
        case .revoked: "revoked"
        default: "code \(rawValue)"  // an open set: the struct has no last case
        }
    }
}
