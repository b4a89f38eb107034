// SPDX-License-Identifier: Apache-2.0

import COpenSSL

/// The application protocol of Baton, mandatory on both sides (ALPN, RFC 7301).
let applicationProtocol = "baton/1"

/// One SSL_CTX: the settings that all sessions of a device share, as a client and as a server.
///
/// - TLS 1.3 and `baton/1` only.
/// - Both sides show a certificate. Only the account's CA is trusted, directly above the leaf.
/// - Times of certificates are not checked, because laptops have wrong clocks.
/// - No tickets, resumption, early data, renegotiation or compression.
///
/// One context serves both roles: every rule is the same for both, and OpenSSL takes the purpose to check from the
/// session. It never changes after `init`, and may be shared between threads, as OpenSSL promises for an unmodified
/// SSL_CTX.
package final class TLSContext: Sendable {
    /// The id of this device.
    package var deviceID: String { identity.deviceID }

    let identity: TLSIdentity
    let gate: Gate?
    let refuses: @Sendable (String) -> Bool
    let limits: TLSLimits
    nonisolated(unsafe) let pointer: OpaquePointer  // reason: an SSL_CTX may be shared once it is not modified any more

    /// Decides by the server name of a ClientHello whether the client gets an answer.
    ///
    /// The argument is the only ASCII host name of the server name extension, nil if there is none. The result
    /// identifies an admitted session for the owner (``TLSSession/admission``). Nil refuses the client: the session
    /// fails with `notAdmitted`, and has sent no byte, not even an alert.
    ///
    /// Called on the thread that drives the session, during `handshake()`, once for each session.
    package typealias Gate = @Sendable (_ serverName: String?) -> UInt32?

    /// Makes the settings of a device.
    ///
    /// - Parameters:
    ///   - identity: the device's certificate and key, and the CA that it trusts.
    ///   - limits: the bounds of each session.
    ///   - gate: decides about clients of server sessions by their first message; nil admits all.
    ///   - refuses: a further check of a peer whose certificate is good. If it returns true for the device id, the peer
    ///     is refused with the alert `certificate_revoked`. Called on the thread that drives the session, during
    ///     `handshake()`; it must be quick and must not call the session.
    /// - Throws: `library` if OpenSSL lacks something that it needs.
    package init(
        identity: TLSIdentity, limits: TLSLimits = TLSLimits(), gate: Gate? = nil,
        refuses: @escaping @Sendable (String) -> Bool = { _ in false }
    ) throws(TLSError) {
        ErrorQueue.clear()
        guard let context = SSL_CTX_new(TLS_method()) else { throw ErrorQueue.libraryFailure("making a TLS context") }
        self.identity = identity
        self.limits = limits
        self.gate = gate
        self.refuses = refuses
        pointer = context
        try restrictProtocol()
        try present(identity)
        try trustOnly(identity.accountCA)
        installCallbacks()
    }

    deinit {
        SSL_CTX_free(pointer)
    }

    /// Sets version and algorithms, and turns off everything that outlives a session.
    private func restrictProtocol() throws(TLSError) {
        try require(shim_SSL_CTX_set_tls13_only(pointer), "restricting TLS to 1.3")
        // The machine's openssl.cnf may set another level. All of Baton's algorithms have 128 bits.
        SSL_CTX_set_security_level(pointer, 2)
        try require(SSL_CTX_set_ciphersuites(pointer, Self.ciphers), "choosing ciphers")
        // A library older than 3.5 refuses the whole list, because it knows neither the first group nor the signs.
        if shim_SSL_CTX_set1_groups_list(pointer, Self.groups) != 1 {
            ErrorQueue.clear()
            try require(shim_SSL_CTX_set1_groups_list(pointer, "X25519:P-256"), "choosing groups")
        }
        try require(shim_SSL_CTX_set1_sigalgs_list(pointer, "ed25519:ECDSA+SHA256"), "choosing signature algorithms")
        SSL_CTX_set_options(pointer, shim_SSL_OP_for_baton())
        try require(SSL_CTX_set_num_tickets(pointer, 0), "turning tickets off")
        try require(SSL_CTX_set_max_early_data(pointer, 0), "turning early data off")
        try require(SSL_CTX_set_recv_max_early_data(pointer, 0), "turning early data off")
        shim_SSL_CTX_disable_session_cache(pointer)
        // A chain is one leaf of about 400 bytes. OpenSSL would accept 100 KiB from a stranger.
        shim_SSL_CTX_set_max_cert_list(pointer, 8 << 10)
        try require(
            Self.protocolList.withUnsafeBufferPointer {
                // "SSL_CTX_set_alpn_protos() returns 0 on success", unlike most of OpenSSL.
                SSL_CTX_set_alpn_protos(pointer, $0.baseAddress, UInt32($0.count)) == 0 ? 1 : 0
            }, "setting the application protocol")
    }

    /// Sets the certificate that is sent, which is the leaf alone, and its key.
    private func present(_ identity: TLSIdentity) throws(TLSError) {
        shim_SSL_CTX_send_leaf_only(pointer)
        try require(SSL_CTX_use_certificate(pointer, identity.certificate.pointer), "using the certificate")
        try require(SSL_CTX_use_PrivateKey(pointer, identity.privateKey.pointer), "using the private key")
    }

    /// Makes the account's CA the only trust anchor, directly above the leaf.
    private func trustOnly(_ authority: Certificate) throws(TLSError) {
        guard let store = X509_STORE_new() else { throw ErrorQueue.libraryFailure("making a trust store") }
        SSL_CTX_set_cert_store(pointer, store)  // takes ownership
        try require(X509_STORE_add_cert(store, authority.pointer), "trusting the account")
        guard let parameters = SSL_CTX_get0_param(pointer) else { throw ErrorQueue.libraryFailure("setting trust") }
        // Not X509_V_FLAG_X509_STRICT, which demands key identifiers. The certificates have none.
        let flags = UInt(X509_V_FLAG_NO_CHECK_TIME)
        try require(X509_VERIFY_PARAM_set_flags(parameters, flags), "leaving times unchecked")
        // The depth counts certificates between the leaf and the anchor.
        SSL_CTX_set_verify_depth(pointer, 0)
    }

    private func require(_ result: Int32, _ doing: String) throws(TLSError) {
        guard result == 1 else { throw ErrorQueue.libraryFailure(doing) }
    }

    /// The form of RFC 7301: a length byte before each name.
    static let protocolList: [UInt8] = [UInt8(applicationProtocol.utf8.count)] + Array(applicationProtocol.utf8)

    /// The key exchanges. The first one resists quantum computers (draft-ietf-tls-ecdhe-mlkem), and needs OpenSSL 3.5.
    ///
    /// "Group tuples are used by OpenSSL TLS servers to decide whether to request a stronger keyshare than those
    /// predicted" (SSL_CTX_set1_groups_list(3)). Without the `/`, a server would accept X25519 from a client that has
    /// sent only that share. A `*` marks a group whose share a client sends. Both are marked, so that an older server
    /// answers at once as well.
    private static let groups = "*X25519MLKEM768/*X25519:P-256"

    /// The ciphers, with AES first if the processor has instructions for it. A server's order counts, unless the client
    /// puts ChaCha20 first (`SSL_OP_PRIORITIZE_CHACHA`). So AES is used only if both ends have it in hardware.
    private static let ciphers =
        shim_machine_has_aes() != 0
        ? "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_256_GCM_SHA384"
        : "TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384"
}
