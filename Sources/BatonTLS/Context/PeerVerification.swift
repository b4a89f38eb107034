// SPDX-License-Identifier: Apache-2.0

import COpenSSL

extension TLSContext {
    /// Installs the callbacks of a handshake. Each finds its session through the SSL's data.
    func installCallbacks() {
        SSL_CTX_set_client_hello_cb(pointer, { ssl, alert, _ in TLSSession.checkClientHello(ssl, alert) }, nil)
        SSL_CTX_set_alpn_select_cb(
            pointer,
            { _, selected, length, offered, count, _ in TLSContext.selectProtocol(selected, length, offered, count) },
            nil)
        SSL_CTX_set_verify(pointer, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nil)
        // SSL_CTX_set_msg_callback(3): called for messages, and for record headers as well.
        SSL_CTX_set_msg_callback(pointer) { isSent, _, type, _, _, ssl, _ in
            if isSent == 0, type == SSL3_RT_HANDSHAKE { TLSSession.countHandshakeMessage(ssl) }
        }
        SSL_CTX_set_cert_verify_callback(pointer, { store, _ in TLSSession.verifyCertificate(store) }, nil)
    }

    /// Selects `baton/1` for a server, or sends a fatal alert (RFC 7301, section 3.2: `no_application_protocol`).
    private static func selectProtocol(
        _ selected: UnsafeMutablePointer<UnsafePointer<UInt8>?>?, _ length: UnsafeMutablePointer<UInt8>?,
        _ offered: UnsafePointer<UInt8>?, _ count: UInt32
    ) -> Int32 {
        guard let selected, let length, let offered else { return SSL_TLSEXT_ERR_ALERT_FATAL }
        var names = UnsafeBufferPointer(start: offered, count: Int(count))[...]
        while let size = names.popFirst(), Int(size) <= names.count {
            let name = names.prefix(Int(size))
            if name.elementsEqual(applicationProtocol.utf8) {
                selected.pointee = UnsafeBufferPointer(rebasing: name).baseAddress  // points into the client's own list
                length.pointee = size
                return SSL_TLSEXT_ERR_OK
            }
            names = names.dropFirst(Int(size))
        }
        return SSL_TLSEXT_ERR_ALERT_FATAL
    }

    /// Verifies the peer's certificate, with the chain that OpenSSL builds in `store`.
    ///
    /// - Returns: the peer's device id.
    func verifyPeer(_ store: OpaquePointer, expectedPeer: String?) throws(TLSError) -> String {
        ErrorQueue.clear()
        let isVerified = X509_verify_cert(store) == 1
        let error = X509_STORE_CTX_get_error(store)
        guard let raw = X509_STORE_CTX_get0_cert(store) else {
            throw TLSError(.noCertificate, "The peer presented no certificate.")
        }
        let leaf = Certificate(retaining: raw)
        let reason = isVerified ? "" : String(cString: X509_verify_cert_error_string(Int(error)))
        // OpenSSL compares the host before it checks signatures, and every account has the same names in its
        // certificates. Only the signature tells a stranger from a device of the account that was not dialled.
        guard isVerified || leaf.isSigned(by: identity.accountCA) else {
            throw TLSError(.wrongAccount, "The peer belongs to another account.", reason: reason)
        }
        let isOtherHost = !isVerified && error == X509_V_ERR_HOSTNAME_MISMATCH
        guard isOtherHost || isVerified && leaf.hasUsagesOfProfile else {
            throw TLSError(.certificateRefused, "The peer's certificate is not one of a device.", reason: reason)
        }
        let id = try leaf.deviceID()
        guard id != deviceID else { throw TLSError(.ownIdentity, "The peer presented this device's own identity.") }
        guard !isOtherHost, id == expectedPeer ?? id else {
            throw TLSError(.wrongPeer, "Another device of the account answered than the one that was dialled.")
        }
        guard !refuses(id) else { throw TLSError(.refused, "The device \(id) was revoked from the account.") }
        return id
    }
}

extension TLSError {
    /// The X509_V_ERR_ code from which OpenSSL derives the alert for the peer (`ssl_x509err2alert`).
    var verification: Int32 {
        switch code {
        // A signature error would be sent as `decrypt_error`, but `unknown_ca` is its meaning.
        case .wrongAccount: X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE
        case .certificateRefused: X509_V_ERR_INVALID_PURPOSE
        case .identityMismatch, .ownIdentity, .wrongPeer: X509_V_ERR_CERT_REJECTED
        case .refused: X509_V_ERR_CERT_REVOKED
        default: X509_V_ERR_APPLICATION_VERIFICATION
        }
    }
}
