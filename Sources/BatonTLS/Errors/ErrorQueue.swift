// SPDX-License-Identifier: Apache-2.0

import COpenSSL

/// OpenSSL's error queue of this thread.
///
/// `SSL_get_error` looks at the whole queue, so an error of other code would be taken for one of this session
/// (SSL_get_error(3)). So the queue is cleared before *every* SSL call.
enum ErrorQueue {
    /// Drops every error of this thread.
    static func clear() {
        ERR_clear_error()
    }

    /// Clears the queue. Returns the oldest error, which caused the others, with its text and its note.
    static func drain() -> (reason: Int32, isFromSSL: Bool, text: String) {
        defer { ERR_clear_error() }
        var note: UnsafePointer<CChar>?
        var flags: Int32 = 0
        let error = ERR_get_error_all(nil, nil, nil, &note, &flags)
        guard error != 0 else { return (0, false, "") }
        var text = ERR_reason_error_string(error).map { String(cString: $0) } ?? "error \(error)"
        if flags & ERR_TXT_STRING != 0, let note, note.pointee != 0 { text += ": " + String(cString: note) }
        return (shim_ERR_reason(error), shim_ERR_is_from_ssl(error) != 0, text)
    }

    /// An error of OpenSSL itself, with its reason.
    static func libraryFailure(_ doing: String) -> TLSError {
        TLSError(.library, "OpenSSL failed while \(doing).", reason: drain().text)
    }

    /// The failure that ended a session, by the errors in the queue.
    static func sessionFailure() -> TLSError {
        let (reason, isFromSSL, text) = drain()
        let violation = TLSError(.protocolViolation, "The peer does not speak TLS as Baton does.", reason: text)
        guard isFromSSL else { return violation }
        // "SSL_AD_REASON_OFFSET": a received alert is in the queue as 1000 + its number.
        if reason > SSL_AD_REASON_OFFSET, let alert = UInt8(exactly: reason - SSL_AD_REASON_OFFSET) {
            return peerSent(alert, text)
        }
        switch reason {
        case SSL_R_UNEXPECTED_EOF_WHILE_READING:
            return TLSError(.truncated, "The connection ended without close_notify.", reason: text)
        case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
            return TLSError(.noCertificate, "The peer presented no certificate.", reason: text)
        default:
            return violation
        }
    }

    /// A certificate or key that OpenSSL cannot read.
    static func unreadable(_ what: String) -> TLSError {
        TLSError(.invalidIdentity, "The \(what) is not DER that OpenSSL can read.", reason: drain().text)
    }

    /// Maps an alert of the peer.
    static func peerSent(_ alert: UInt8, _ text: String) -> TLSError {
        let (code, message): (TLSError.Code, String) =
            switch Int32(alert) {
            case SSL_AD_UNKNOWN_CA:
                (.wrongAccount, "The peer belongs to another account and refused this device.")
            case SSL_AD_CERTIFICATE_REVOKED:
                (.refused, "The peer says that this device was revoked from the account.")
            case SSL_AD_BAD_CERTIFICATE, SSL_AD_UNSUPPORTED_CERTIFICATE:
                (.certificateRefused, "The peer refused this device's certificate.")
            case SSL_AD_CERTIFICATE_REQUIRED:
                (.noCertificate, "The peer demands a certificate of this device.")
            case SSL_AD_NO_APPLICATION_PROTOCOL, SSL_AD_PROTOCOL_VERSION, SSL_AD_HANDSHAKE_FAILURE:
                (.protocolViolation, "The peer does not speak TLS as Baton does.")
            default:
                (.peerAlert, "The peer ended the connection with TLS alert \(alert).")
            }
        return TLSError(code, message, reason: text, alert: alert)
    }
}
