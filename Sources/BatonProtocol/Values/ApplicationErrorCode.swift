// SPDX-License-Identifier: Apache-2.0

/// The reason in a RESET or GOAWAY frame. An open set, so that a code of a newer peer survives.
///
/// Codes below 512 belong to the protocol (<doc:Connections>). Codes from 512 on are free for
/// applications on a continuation stream.
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
    /// 2: the request was understood and refused.
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
    /// 8: the application or device behind the peer cannot be reached.
    package static let unreachable = Self(rawValue: 8)
    /// 9: an answer did not come in time.
    package static let timeout = Self(rawValue: 9)
    /// 10: the connection is closing; the stream was not processed and may be tried on another connection.
    package static let goingAway = Self(rawValue: 10)
    /// 11: no version of the protocol is spoken by both sides.
    package static let unsupportedVersion = Self(rawValue: 11)
    /// 12: the subject of the request does not exist, or no longer.
    package static let notFound = Self(rawValue: 12)
    /// 13: the receiver could not store the document (full, read-only, exists).
    package static let destinationFailed = Self(rawValue: 13)
    /// 14: the peer is no longer a device of the account.
    package static let revoked = Self(rawValue: 14)

    /// 257 to 511: the program behind a continuation stream failed.
    ///
    /// - Parameter status: 1 to 255, as a shell reports it: 128 plus the signal for a program that a signal ended.
    package static func programFailed(status: UInt8) -> Self {
        Self(rawValue: 256 + UInt32(status))
    }

    /// The status of a program that failed; nil for any other code.
    package var programStatus: UInt8? {
        (257...511).contains(rawValue) ? UInt8(rawValue - 256) : nil
    }

    /// Whether a RESET with this code leaves what came before it to be read. With any other code it is discarded.
    package var keepsInput: Bool { self == .noError || programStatus != nil }

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
        default: programStatus.map { "program status \($0)" } ?? "code \(rawValue)"  // an open set has no last case
        }
    }
}
