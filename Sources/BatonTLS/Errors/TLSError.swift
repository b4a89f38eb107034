// SPDX-License-Identifier: Apache-2.0

/// The reason why TLS failed: a code for programs, a sentence for people, and OpenSSL's reason for the log.
///
/// Every error of a ``TLSSession`` ends that session, except ``Code-swift.struct/bufferFull`` and
/// ``Code-swift.struct/notReady``, which change nothing. After the end the session may still have output, the alert for
/// the peer, and every further call throws the same error.
package struct TLSError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The kind of failure. A struct and not an enum, so that a new code does not break the source of callers.
    package struct Code: Sendable, Hashable, CustomStringConvertible {
        private enum Kind: String, Sendable {
            case wrongAccount, wrongPeer, identityMismatch, ownIdentity, refused, noCertificate, certificateRefused
            case notAdmitted, applicationProtocol, protocolVersion, noCommonParameters, protocolViolation, truncated,
                peerAlert
            case bufferFull, notReady, invalidIdentity, invalidName, library
        }
        private let kind: Kind

        /// The peer's certificate was issued by another account. With an alert: the peer says so about this device's.
        package static let wrongAccount = Code(kind: .wrongAccount)
        /// Another device of the account answered than the one that was dialled.
        package static let wrongPeer = Code(kind: .wrongPeer)
        /// The certificate does not name its own key, or its key is of another type.
        package static let identityMismatch = Code(kind: .identityMismatch)
        /// The peer presented this device's own identity: a loop, or a copied disk.
        package static let ownIdentity = Code(kind: .ownIdentity)
        /// The device was revoked from the account. With an alert: the peer says so about this device.
        package static let refused = Code(kind: .refused)
        /// A side presented no certificate.
        package static let noCertificate = Code(kind: .noCertificate)
        /// The certificate was refused for another reason. With an alert: the peer refused this device's.
        package static let certificateRefused = Code(kind: .certificateRefused)
        /// The client did not show in its first message that it belongs to the account. It gets no answer.
        package static let notAdmitted = Code(kind: .notAdmitted)
        /// The peer does not speak `baton/1` (ALPN, RFC 7301).
        package static let applicationProtocol = Code(kind: .applicationProtocol)
        /// The peer does not speak TLS 1.3.
        package static let protocolVersion = Code(kind: .protocolVersion)
        /// The two sides have no cipher, group or signature algorithm in common.
        package static let noCommonParameters = Code(kind: .noCommonParameters)
        /// The received bytes are not TLS, or break its rules.
        package static let protocolViolation = Code(kind: .protocolViolation)
        /// The byte stream ended without close_notify.
        package static let truncated = Code(kind: .truncated)
        /// The peer sent an alert without a code of its own here; see ``TLSError/alert``.
        package static let peerAlert = Code(kind: .peerAlert)
        /// A buffer is full and nothing was taken; drain it and try again. The session continues.
        package static let bufferFull = Code(kind: .bufferFull)
        /// Nothing can be written before the handshake is complete or after `shutdown()`. The session continues.
        package static let notReady = Code(kind: .notReady)
        /// The identity's certificate, key or account certificate is unusable.
        package static let invalidIdentity = Code(kind: .invalidIdentity)
        /// A server name or an expected peer is not valid in TLS.
        package static let invalidName = Code(kind: .invalidName)
        /// OpenSSL itself failed: out of memory, an algorithm missing.
        package static let library = Code(kind: .library)

        /// The name of the code, stable enough for logs.
        package var description: String { kind.rawValue }
    }

    /// The kind of failure.
    package let code: Code
    /// One plain sentence.
    package let message: String
    /// OpenSSL's reason, for the log; empty if it had none.
    package let reason: String
    /// The alert of the peer; nil if this side found the error.
    package let alert: TLSAlert?

    init(_ code: Code, _ message: String, reason: String = "", alert: TLSAlert? = nil) {
        self.code = code
        self.message = message
        self.reason = reason
        self.alert = alert
    }

    /// The sentence, with OpenSSL's reason in parentheses if there is one.
    package var description: String {
        reason.isEmpty ? message : "\(message) (\(reason))"
    }
}
