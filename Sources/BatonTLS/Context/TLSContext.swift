// SPDX-License-Identifier: Apache-2.0

import COpenSSL

/// The application protocol of Baton, mandatory on both sides (ALPN, RFC 7301).
let applicationProtocol = "baton/1"

/// One SSL_CTX: the settings that all sessions of a device share, as a client and as a server.
///
/// TLS 1.3 only; `baton/1` only; both sides show a certificate, and only the account's CA is trusted, directly above
/// the leaf; times of certificates are not checked (laptops have wrong clocks); no tickets, no resumption, no early
/// data, no renegotiation, no compression. The same context serves both roles, since every rule is the same for both
/// and OpenSSL takes the purpose to check (client or server) from the session.
///
/// Unchanging after `init`, and safe to share between threads, as OpenSSL promises of an SSL_CTX that is not modified.
package final class TLSContext: Sendable {
    /// The id of the device that this context speaks for.
    package var deviceID: String { identity.deviceID }

    let identity: TLSIdentity
    let gate: Gate?
    let refuses: @Sendable (String) -> Bool
    let limits: TLSLimits
    let checks: PeerChecks
    nonisolated(unsafe) let pointer: OpaquePointer  // reason: an SSL_CTX may be shared once it is not modified any more

    /// Decides by the server name of a ClientHello whether the client gets an answer at all.
    ///
    /// Given the one ASCII host name of the server name extension (nil where there is none), it returns what the owner
    /// wants to know an admitted session by (``TLSSession/admission``), or nil to refuse: then the session fails with
    /// `notAdmitted`, and a server session has no byte to send before it has admitted its client, not even an alert.
    /// Called on the thread that drives the session, in the middle of `handshake()`, once for each session.
    package typealias Gate = @Sendable (_ serverName: String?) -> UInt32?

    /// Makes the settings for a device.
    ///
    /// - Parameters:
    ///   - identity: What the device shows and whom it trusts.
    ///   - limits: The bounds of each session.
    ///   - gate: Judges the clients of server sessions by their first message; nil lets everybody try.
    ///   - refuses: A further judgement of a peer whose certificate is good: given its device id, true refuses it in
    ///     the handshake, with the alert `certificate_revoked`. Called on the thread that drives the session, in the
    ///     middle of `handshake()`: it must be quick and must not call the session.
    /// - Throws: `library` when OpenSSL lacks something that it needs.
    package convenience init(
        identity: TLSIdentity, limits: TLSLimits = TLSLimits(), gate: Gate? = nil,
        refuses: @escaping @Sendable (String) -> Bool = { _ in false }
    ) throws(TLSError) {
        try self.init(identity: identity, limits: limits, gate: gate, refuses: refuses, checks: .all)
    }

    /// The same, for tests that leave out a check of the peer.
    init(
        identity: TLSIdentity, limits: TLSLimits = TLSLimits(), gate: Gate? = nil,
        refuses: @escaping @Sendable (String) -> Bool = { _ in false }, checks: PeerChecks
    ) throws(TLSError) {
        ErrorQueue.clear()
        guard let context = SSL_CTX_new(TLS_method()) else { throw ErrorQueue.libraryFailure("making a TLS context") }
        self.identity = identity
        self.limits = limits
        self.gate = gate
        self.refuses = refuses
        self.checks = checks
        pointer = context
        try restrictProtocol()
        try present(identity)
        try trustOnly(identity.accountCA)
        installCallbacks()
    }

    deinit {
        SSL_CTX_free(pointer)
    }

    /// Version, algorithms, and nothing that outlives a session.
    private func restrictProtocol() throws(TLSError) {
        try require(shim_SSL_CTX_set_tls13_only(pointer), "restricting TLS to 1.3")
        // The machine's openssl.cnf may have set another level; 128 bits is what all of ours have.
        SSL_CTX_set_security_level(pointer, 2)
        try require(SSL_CTX_set_ciphersuites(pointer, Self.ciphers), "choosing ciphers")
        // An older library than 3.5 does not know the first one, nor what the signs mean, and refuses the whole list.
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
        // A chain of the profile is one leaf of about 400 bytes; OpenSSL would take 100 KiB from a stranger.
        shim_SSL_CTX_set_max_cert_list(pointer, 8 << 10)
        try require(
            Self.protocolList.withUnsafeBufferPointer {
                // "SSL_CTX_set_alpn_protos() returns 0 on success": unlike most of OpenSSL.
                SSL_CTX_set_alpn_protos(pointer, $0.baseAddress, UInt32($0.count)) == 0 ? 1 : 0
            }, "setting the application protocol")
    }

    /// The leaf alone, with its key.
    private func present(_ identity: TLSIdentity) throws(TLSError) {
        shim_SSL_CTX_send_leaf_only(pointer)
        try require(SSL_CTX_use_certificate(pointer, identity.certificate.pointer), "using the certificate")
        try require(SSL_CTX_use_PrivateKey(pointer, identity.privateKey.pointer), "using the private key")
    }

    /// The account's CA is the only trust anchor, directly above the leaf.
    private func trustOnly(_ authority: Certificate) throws(TLSError) {
        guard let store = X509_STORE_new() else { throw ErrorQueue.libraryFailure("making a trust store") }
        SSL_CTX_set_cert_store(pointer, store)  // takes ownership
        try require(X509_STORE_add_cert(store, authority.pointer), "trusting the account")
        guard let parameters = SSL_CTX_get0_param(pointer) else { throw ErrorQueue.libraryFailure("setting trust") }
        // Not X509_V_FLAG_X509_STRICT: it demands key identifiers, and the profile has none.
        let flags = UInt(X509_V_FLAG_NO_CHECK_TIME)
        try require(X509_VERIFY_PARAM_set_flags(parameters, flags), "leaving times unchecked")
        // Depth counts the certificates between the leaf and the anchor: none.
        SSL_CTX_set_verify_depth(pointer, 0)
    }

    private func require(_ result: Int32, _ doing: String) throws(TLSError) {
        guard result == 1 else { throw ErrorQueue.libraryFailure(doing) }
    }

    /// The list form of RFC 7301: a length byte before each name.
    static let protocolList: [UInt8] = [UInt8(applicationProtocol.utf8.count)] + Array(applicationProtocol.utf8)

    /// With a key exchange in front that no quantum computer breaks (draft-ietf-tls-ecdhe-mlkem), from OpenSSL 3.5 on.
    ///
    /// "Group tuples are used by OpenSSL TLS servers to decide whether to request a stronger keyshare than those
    /// predicted" (SSL_CTX_set1_groups_list(3)): without the `/` a server would be content with X25519 where the client
    /// has only predicted that. `*`: what a client predicts. Both, so that an older server answers at once as well.
    private static let groups = "*X25519MLKEM768/*X25519:P-256"

    /// AES first where it is an instruction. A server's own order counts, except that it gives way to a client which
    /// puts ChaCha20 first (`SSL_OP_PRIORITIZE_CHACHA`): so AES is used only where both ends have it in hardware.
    private static let ciphers =
        shim_machine_has_aes() != 0
        ? "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_256_GCM_SHA384"
        : "TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384"
}
