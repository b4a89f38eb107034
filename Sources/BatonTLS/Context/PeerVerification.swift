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
    /// - Returns: the peer's device id, or the refusal with the verification error that gives the right alert.
    func verifyPeer(_ store: OpaquePointer, expectedPeer: String?) -> Result<String, PeerRefusal> {
        ErrorQueue.clear()
        let isVerified = X509_verify_cert(store) == 1
        guard let raw = X509_STORE_CTX_get0_cert(store) else {
            return .failure(PeerRefusal(TLSError(.noCertificate, "The peer presented no certificate.")))
        }
        let leaf = Certificate(retaining: raw)
        guard isVerified else {
            return .failure(refusal(of: leaf, error: X509_STORE_CTX_get_error(store)))
        }
        guard leaf.hasUsagesOfProfile else {
            let error = TLSError(.certificateRefused, "The peer's certificate is not one of a device.")
            return .failure(PeerRefusal(error, alertingAs: X509_V_ERR_INVALID_PURPOSE))
        }
        let id: String
        do {
            id = try leaf.deviceID()
        } catch {
            return .failure(PeerRefusal(error, alertingAs: X509_V_ERR_CERT_REJECTED))
        }
        guard id != deviceID else { return .failure(.ownIdentity) }
        if let expectedPeer, id != expectedPeer { return .failure(.wrongPeer) }
        guard !refuses(id) else {
            let error = TLSError(.refused, "The device \(id) was revoked from the account.")
            return .failure(PeerRefusal(error, alertingAs: X509_V_ERR_CERT_REVOKED))
        }
        return .success(id)
    }

    /// Maps OpenSSL's reason to refuse the chain.
    private func refusal(of leaf: Certificate, error: Int32) -> PeerRefusal {
        // OpenSSL compares the host before it checks signatures, and every account has the same names in its
        // certificates. Only the signature tells a stranger from a device of the account that was not dialled. A
        // signature error would be sent as `decrypt_error`, but `unknown_ca` is its meaning.
        guard leaf.isSigned(by: identity.accountCA) else {
            let text = String(cString: X509_verify_cert_error_string(Int(error)))
            let refusal = TLSError(.wrongAccount, "The peer belongs to another account.", reason: text)
            return PeerRefusal(refusal, alertingAs: X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE)
        }
        if error == X509_V_ERR_HOSTNAME_MISMATCH {
            // A certificate that does not name its own key is the more serious error.
            do {
                return try leaf.deviceID() == deviceID ? .ownIdentity : .wrongPeer
            } catch {
                return PeerRefusal(error, alertingAs: X509_V_ERR_CERT_REJECTED)
            }
        }
        let text = String(cString: X509_verify_cert_error_string(Int(error)))
        let refused = TLSError(
            .certificateRefused, "The peer's certificate does not keep to the profile.", reason: text)
        return PeerRefusal(refused, alertingAs: error)
    }
}

/// The refusal of a peer: the error for the owner, and the verification error that makes OpenSSL send the right alert.
struct PeerRefusal: Error {
    let error: TLSError
    /// An X509_V_ERR_ code, from which OpenSSL derives the alert (`ssl_x509err2alert`).
    let verification: Int32

    init(_ error: TLSError, alertingAs verification: Int32 = X509_V_ERR_APPLICATION_VERIFICATION) {
        self.error = error
        self.verification = verification
    }

    static let ownIdentity = PeerRefusal(
        TLSError(.ownIdentity, "The peer presented this device's own identity."),
        alertingAs: X509_V_ERR_CERT_REJECTED)

    static let wrongPeer = PeerRefusal(
        TLSError(.wrongPeer, "Another device of the account answered than the one that was dialled."),
        alertingAs: X509_V_ERR_HOSTNAME_MISMATCH)
}
