// SPDX-License-Identifier: Apache-2.0

/// The reason why TLS failed: a code for programs, a sentence for people, and OpenSSL's reason for the log.
///
/// Every error of a ``TLSSession`` ends that session, except ``Code-swift.enum/bufferFull`` and
/// ``Code-swift.enum/notReady``, which change nothing. After the end the session may still have output, the alert for
/// the peer, and every further call throws the same error.
package struct TLSError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The kind of failure.
    package enum Code: Sendable, Hashable {
        /// The peer's certificate was issued by another account. With an alert: the peer says so about this device's.
        case wrongAccount
        /// Another device of the account answered than the one that was dialled.
        case wrongPeer
        /// The certificate does not name its own key, or its key is of another type.
        case identityMismatch
        /// The peer presented this device's own identity: a loop, or a copied disk.
        case ownIdentity
        /// The device was revoked from the account. With an alert: the peer says so about this device.
        case refused
        /// A side presented no certificate.
        case noCertificate
        /// The certificate was refused for another reason. With an alert: the peer refused this device's.
        case certificateRefused
        /// The client did not show in its first message that it belongs to the account. It gets no answer.
        case notAdmitted
        /// The peer does not speak TLS 1.3 with `baton/1` (ALPN, RFC 7301) and one of Baton's ciphers and groups, or
        /// breaks its rules.
        case protocolViolation
        /// The byte stream ended without close_notify.
        case truncated
        /// The peer sent an alert without a code of its own here; see ``TLSError/alert``.
        case peerAlert
        /// A buffer is full and nothing was taken; drain it and try again. The session continues.
        case bufferFull
        /// Nothing can be written before the handshake is complete or after `shutdown()`. The session continues.
        case notReady
        /// The identity's certificate, key or account certificate is unusable.
        case invalidIdentity
        /// A server name or an expected peer is not valid in TLS.
        case invalidName
        /// The bytes are not a message that the operator of the host has signed (``CMSVerifier``).
        case badSignedMessage
        /// OpenSSL itself failed: out of memory, an algorithm missing, no trust store.
        case library
    }

    /// The kind of failure.
    package let code: Code
    /// One plain sentence.
    package let message: String
    /// OpenSSL's reason, for the log; empty if it had none.
    package let reason: String
    /// The number of the peer's alert (RFC 8446, section 6); nil if this side found the error.
    package let alert: UInt8?

    init(_ code: Code, _ message: String, reason: String = "", alert: UInt8? = nil) {
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
