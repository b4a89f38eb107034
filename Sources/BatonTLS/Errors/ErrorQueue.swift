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

    /// Clears the queue. Returns the oldest error, which caused the others, with its text.
    static func drain() -> (reason: Int32, isFromSSL: Bool, text: String) {
        let error = ERR_get_error()
        ERR_clear_error()
        guard error != 0 else { return (0, false, "") }
        let text = ERR_reason_error_string(error).map { String(cString: $0) } ?? "error \(error)"
        return (shim_ERR_reason(error), shim_ERR_is_from_ssl(error) != 0, text)
    }

    /// Clears the queue. Returns the first error of one of OpenSSL's libraries, with its text and its note.
    static func drain(ofLibrary library: Int32) -> (reason: Int32, text: String, note: String)? {
        defer { ERR_clear_error() }
        var note: UnsafePointer<CChar>?
        var flags: Int32 = 0
        while true {
            let error = ERR_get_error_all(nil, nil, nil, &note, &flags)
            guard error != 0 else { return nil }
            guard shim_ERR_library(error) == library else { continue }
            let text = ERR_reason_error_string(error).map { String(cString: $0) } ?? "error \(error)"
            return (
                shim_ERR_reason(error), text, flags & ERR_TXT_STRING != 0 ? note.map { String(cString: $0) } ?? "" : ""
            )
        }
    }

    /// An error of OpenSSL itself, with its reason.
    static func libraryFailure(_ doing: String) -> TLSError {
        TLSError(.library, "OpenSSL failed while \(doing).", reason: drain().text)
    }

    /// The failure that ended a session, by the errors in the queue.
    static func sessionFailure() -> TLSError {
        let (reason, isFromSSL, text) = drain()
        guard isFromSSL else {
            return TLSError(.protocolViolation, "The peer broke the rules of TLS.", reason: text)
        }
        // "SSL_AD_REASON_OFFSET": a received alert is in the queue as 1000 + its number.
        if reason > SSL_AD_REASON_OFFSET, let alert = UInt8(exactly: reason - SSL_AD_REASON_OFFSET) {
            return peerSent(alert, text)
        }
        switch reason {
        case SSL_R_UNEXPECTED_EOF_WHILE_READING:
            return TLSError(.truncated, "The connection ended without close_notify.", reason: text)
        case SSL_R_NO_APPLICATION_PROTOCOL:
            return TLSError(.applicationProtocol, "The peer does not speak \(applicationProtocol).", reason: text)
        case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
            return TLSError(.noCertificate, "The peer presented no certificate.", reason: text)
        case SSL_R_UNSUPPORTED_PROTOCOL, SSL_R_WRONG_SSL_VERSION:
            return TLSError(.protocolVersion, "The peer does not speak TLS 1.3.", reason: text)
        case SSL_R_NO_SHARED_CIPHER, SSL_R_NO_SHARED_GROUPS, SSL_R_NO_SHARED_SIGNATURE_ALGORITHMS,
            SSL_R_NO_SUITABLE_GROUPS, SSL_R_NO_SUITABLE_KEY_SHARE, SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM:
            return TLSError(.noCommonParameters, "The peer and this device share no TLS parameters.", reason: text)
        default:
            return TLSError(.protocolViolation, "The peer broke the rules of TLS.", reason: text)
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
            case SSL_AD_NO_APPLICATION_PROTOCOL:
                (.applicationProtocol, "The peer does not speak \(applicationProtocol).")
            case SSL_AD_PROTOCOL_VERSION:
                (.protocolVersion, "The peer does not speak TLS 1.3.")
            case SSL_AD_HANDSHAKE_FAILURE:
                (.noCommonParameters, "The peer found no TLS parameters in common.")
            default:
                (.peerAlert, "The peer ended the connection with TLS alert \(alert).")
            }
        return TLSError(code, message, reason: text, alert: alert)
    }
}
