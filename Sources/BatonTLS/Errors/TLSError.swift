// SPDX-License-Identifier: Apache-2.0

/// Why TLS failed: a code to act on, a sentence to show, and OpenSSL's own words for the log.
///
/// Every error that a ``TLSSession`` throws ends that session, except ``Code-swift.struct/bufferFull`` and
/// ``Code-swift.struct/notReady``, which change nothing. After one that ends it the session still has output to send
/// (the alert that tells the peer), and every further call throws the same error.
package struct TLSError: Error, Sendable, Hashable, CustomStringConvertible {
    /// What went wrong. A struct and not an enum, so that a code can be added without breaking who switches over it.
    package struct Code: Sendable, Hashable, CustomStringConvertible {
        private enum Kind: String, Sendable {
            case wrongAccount, wrongPeer, identityMismatch, ownIdentity, refused, noCertificate, certificateRefused
            case notAdmitted, applicationProtocol, protocolVersion, noCommonParameters, protocolViolation, truncated,
                peerAlert
            case bufferFull, notReady, invalidIdentity, invalidName, library
        }
        private let kind: Kind

        /// The certificate is not by the account: the peer's by ours, or (with an alert) ours by the peer's.
        package static let wrongAccount = Code(kind: .wrongAccount)
        /// A device of the account answered, but not the one that was dialled.
        package static let wrongPeer = Code(kind: .wrongPeer)
        /// The certificate does not name its own key as the profile demands, or its key is of another type.
        package static let identityMismatch = Code(kind: .identityMismatch)
        /// The peer presented this device's own identity: a loop, or a copied disk.
        package static let ownIdentity = Code(kind: .ownIdentity)
        /// The device is of the account but not wanted: revoked. With an alert: this device is, by the peer's word.
        package static let refused = Code(kind: .refused)
        /// A side presented no certificate.
        package static let noCertificate = Code(kind: .noCertificate)
        /// The certificate was refused for another reason; with an alert, ours by the peer.
        package static let certificateRefused = Code(kind: .certificateRefused)
        /// The client did not show in its first message that it belongs to the account. It gets no answer.
        package static let notAdmitted = Code(kind: .notAdmitted)
        /// The peer does not speak `baton/1` (ALPN, RFC 7301).
        package static let applicationProtocol = Code(kind: .applicationProtocol)
        /// The peer does not speak TLS 1.3.
        package static let protocolVersion = Code(kind: .protocolVersion)
        /// No cipher, group or signature algorithm in common.
        package static let noCommonParameters = Code(kind: .noCommonParameters)
        /// The bytes received are not TLS, or break its rules.
        package static let protocolViolation = Code(kind: .protocolViolation)
        /// The byte stream ended without close_notify.
        package static let truncated = Code(kind: .truncated)
        /// The peer sent an alert that has no code of its own here; see ``TLSError/alert``.
        package static let peerAlert = Code(kind: .peerAlert)
        /// A buffer is at its limit and nothing was taken; drain it and try again. The session goes on.
        package static let bufferFull = Code(kind: .bufferFull)
        /// Nothing can be written before the handshake is complete or after `shutdown()`. The session goes on.
        package static let notReady = Code(kind: .notReady)
        /// The identity's certificate, key or account certificate is unusable.
        package static let invalidIdentity = Code(kind: .invalidIdentity)
        /// A server name or an expected peer cannot stand in TLS.
        package static let invalidName = Code(kind: .invalidName)
        /// OpenSSL failed on its own account: out of memory, an algorithm missing.
        package static let library = Code(kind: .library)

        /// The name of the code, stable enough for logs.
        package var description: String { kind.rawValue }
    }

    /// What to act on.
    package let code: Code
    /// One plain sentence.
    package let message: String
    /// OpenSSL's own reason text, for the log; empty where OpenSSL had none.
    package let reason: String
    /// The alert that the *peer* sent, when the judgement is the peer's; nil when it is ours.
    package let alert: TLSAlert?

    init(_ code: Code, _ message: String, reason: String = "", alert: TLSAlert? = nil) {
        self.code = code
        self.message = message
        self.reason = reason
        self.alert = alert
    }

    /// The sentence, with OpenSSL's reason in parentheses where there is one.
    package var description: String {
        reason.isEmpty ? message : "\(message) (\(reason))"
    }
}
