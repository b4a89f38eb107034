// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
package import BatonTransport

/// The one typed error that a failed request or handoff ends in, on both sides.
///
/// It crosses every border as a ``WireFailure``, so that the application learns what happened on the other device.
package struct HandoffError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The kind of failure.
    package typealias Code = WireFailure.Code

    package let code: Code
    /// One sentence for people, without a full stop at the end.
    package let message: String
    /// The name of the device that the failure speaks of, such as the holder of an exclusive claim; else empty.
    package let device: String
    /// Whether ``message`` says what to do about it. Else a command may add advice of its own.
    package let advises: Bool

    /// The most bytes that are kept of the other side's sentence and of its device's name. A sentence of this length
    /// fits into another message, with words in front of it.
    static let (messageBound, deviceBound) = (1024, 63)
    /// The most bytes of a sentence when many may wait to be read.
    static let shortBound = 300

    package init(_ code: Code, _ message: String, device: String = "", advises: Bool = false) {
        self.code = code
        self.message = message
        self.device = device
        self.advises = advises
    }

    package var description: String { message }

    /// The failure that a peer or the node answered with. A very long sentence is cut.
    package init(_ failure: WireFailure) {
        let code: Code =
            switch failure.code {
            case .unspecified, .UNRECOGNIZED: .internal
            default: failure.code
            }
        let message = failure.message.beginning(bytes: Self.messageBound)
        self.init(
            code, message.isEmpty ? "the other side failed" : message,
            device: failure.device.beginning(bytes: Self.deviceBound), advises: failure.advises)
    }

    /// The same with only the beginning of a long sentence: 300 bytes.
    package var shortened: HandoffError {
        HandoffError(code, message.beginning(bytes: Self.shortBound), device: device, advises: advises)
    }

    /// The message that carries this error.
    package var failure: WireFailure {
        var failure = WireFailure()
        failure.code = code
        failure.message = message
        failure.device = device
        failure.advises = advises
        return failure
    }

    /// The failure of a request whose connection or stream broke.
    package init(_ error: TransportError) {
        let code: Code =
            switch error.code {
            case .unreachable: .peerUnreachable
            case .refused: .refused
            case .protocolViolation, .alreadyWaiting: .internal
            case .connectionLost, .goingAway, .streamClosed: .connectionLost
            case .reset(let code): Self.code(ofReset: code)
            case .limitExceeded: .limitExceeded
            case .cancelled: .cancelled
            }
        self.init(code, error.message)
    }

    /// The failure of a handoff that an error ended. A ``HandoffError`` stays as it is.
    package init(wrapping error: any Error) {
        switch error {
        case let error as HandoffError: self = error
        case let error as TransportError: self.init(error)
        case is CancellationError: self.init(.cancelled, "it was cancelled")
        default: self.init(.internal, "\(error)")
        }
    }

    /// The reason of a stream that was reset in the middle; only its code crosses.
    private static func code(ofReset code: ApplicationErrorCode) -> Code {
        switch code {
        case .cancelled: .cancelled
        case .refused: .refused
        case .sourceChanged: .documentChanged
        case .limitExceeded: .limitExceeded
        case .timeout: .timedOut
        default: .connectionLost
        }
    }
}
