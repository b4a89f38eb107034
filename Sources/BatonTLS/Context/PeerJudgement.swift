// SPDX-License-Identifier: Apache-2.0

import COpenSSL

/// What a peer is checked for. Every program checks all of it: only the tests of attacks, inside this package, leave
/// one out, to see that nothing else stands in the way.
struct PeerChecks: OptionSet, Sendable {
    let rawValue: UInt8

    /// It has a certificate, and the account's CA has signed it.
    static let account = PeerChecks(rawValue: 1)
    /// It is the device that was dialled.
    static let expectedPeer = PeerChecks(rawValue: 2)
    /// It is another device than this one.
    static let otherDevice = PeerChecks(rawValue: 4)

    static let all: PeerChecks = [.account, .expectedPeer, .otherDevice]
}

extension TLSContext {
    /// Installs what OpenSSL asks us during a handshake. Each callback finds its session through the SSL's data.
    func installCallbacks() {
        SSL_CTX_set_client_hello_cb(pointer, { ssl, alert, _ in TLSSession.judgeClientHello(ssl, alert) }, nil)
        SSL_CTX_set_alpn_select_cb(
            pointer,
            { _, selected, length, offered, count, _ in TLSContext.selectProtocol(selected, length, offered, count) },
            nil)
        let demand = checks.contains(.account) ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0
        SSL_CTX_set_verify(pointer, SSL_VERIFY_PEER | demand, nil)
        // SSL_CTX_set_msg_callback(3): every message, and more than messages.
        SSL_CTX_set_msg_callback(pointer) { isSent, _, type, _, _, ssl, _ in
            if isSent == 0, type == SSL3_RT_HANDSHAKE { TLSSession.noteHandshakeMessage(ssl) }
        }
        SSL_CTX_set_cert_verify_callback(pointer, { store, _ in TLSSession.judgeCertificate(store) }, nil)
    }

    /// The server's choice of protocol: ours, or a fatal alert (RFC 7301, section 3.2: `no_application_protocol`).
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

    /// Judges the peer's certificate after OpenSSL has built and verified the chain in `store`.
    ///
    /// - Returns: The peer's device id; or the refusal and the verification error that gives the right alert.
    func judge(_ store: OpaquePointer, expectedPeer: String?) -> Result<String, PeerRefusal> {
        ErrorQueue.clear()
        let isVerified = X509_verify_cert(store) == 1
        guard let raw = X509_STORE_CTX_get0_cert(store) else {
            return .failure(PeerRefusal(TLSError(.noCertificate, "The peer presented no certificate.")))
        }
        let leaf = Certificate(retaining: raw)
        guard isVerified || !checks.contains(.account) else {
            return .failure(refusal(of: leaf, error: X509_STORE_CTX_get_error(store)))
        }
        let id: String
        do {
            id = try leaf.deviceID()
        } catch {
            return .failure(PeerRefusal(error, alertingAs: X509_V_ERR_CERT_REJECTED))
        }
        guard id != deviceID || !checks.contains(.otherDevice) else { return .failure(.ownIdentity) }
        if checks.contains(.expectedPeer), let expectedPeer, id != expectedPeer {
            return .failure(.wrongPeer)
        }
        guard !refuses(id) else {
            let error = TLSError(.refused, "The device \(id) was revoked from the account.")
            return .failure(PeerRefusal(error, alertingAs: X509_V_ERR_CERT_REVOKED))
        }
        return .success(id)
    }

    /// Why OpenSSL refused the chain, in our words.
    private func refusal(of leaf: Certificate, error: Int32) -> PeerRefusal {
        // OpenSSL compares the host before it checks signatures, and every account has the same names in its
        // certificates: only the signature tells a stranger from a device of the account that was not dialled. A
        // signature error would be told as `decrypt_error`; `unknown_ca` is what it means.
        guard leaf.isSigned(by: identity.accountCA) else {
            let text = String(cString: X509_verify_cert_error_string(Int(error)))
            let refusal = TLSError(.wrongAccount, "The peer belongs to another account.", reason: text)
            return PeerRefusal(refusal, alertingAs: X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE)
        }
        if error == X509_V_ERR_HOSTNAME_MISMATCH {
            // A certificate that does not even name its own key is the worse news.
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

/// A refused peer: what the owner is told, and what OpenSSL is told so that the peer gets the right alert.
struct PeerRefusal: Error {
    let error: TLSError
    /// An X509_V_ERR_ code; OpenSSL derives the alert from it (`ssl_x509err2alert`).
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
