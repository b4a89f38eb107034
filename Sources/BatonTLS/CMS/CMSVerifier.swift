// SPDX-License-Identifier: Apache-2.0

import COpenSSL

/// Verifies messages of the operator of a web host: CMS SignedData (RFC 5652) that carries its content.
///
/// A message must have exactly one signer. The signer's certificate must be issued by a trusted authority, be valid
/// now, have the purpose of an SSL server, and name the host. So only a program that could answer for the host over
/// HTTPS can sign for it. Revocation is not checked, as it is not for HTTPS here.
///
/// A call blocks for some milliseconds to read the system's trust store. Nothing is kept between two calls: messages
/// are rare, and the store takes much memory. Callable from any thread.
package struct CMSVerifier: Sendable {
    /// The largest message, in bytes: 128 KiB, which is Apple's limit for a file about a site.
    package static let maximumBytes = 128 << 10

    /// The most certificates between the signer's and a trusted one.
    private static let depth: Int32 = 6

    private let anchors: TrustAnchors

    /// Makes a verifier.
    ///
    /// - Parameter anchors: the trusted authorities, by default those of the system.
    package init(trusting anchors: TrustAnchors = .system) {
        self.anchors = anchors
    }

    /// Whether bytes may be such a message: DER begins with a SEQUENCE, and no JSON object or array does.
    package static func mayBeSigned(_ bytes: [UInt8]) -> Bool {
        bytes.first == 0x30
    }

    /// The content of a message that the operator of `host` has signed.
    ///
    /// - Parameters:
    ///   - message: in DER, at most ``maximumBytes``.
    ///   - host: a DNS name. The certificate must have it, or a matching wildcard, among its subject alternative names;
    ///     its common name does not count (RFC 9525, section 6.3).
    /// - Throws: ``TLSError``: the reason why the message was refused.
    package func content(of message: [UInt8], signedFor host: String) throws(TLSError) -> [UInt8] {
        guard message.count <= Self.maximumBytes else {
            throw TLSError(.badSignedMessage, "The signed message is larger than \(Self.maximumBytes >> 10) KiB.")
        }
        let signed = try SignedMessage(message)
        // The signer and the certificates are parts of the message.
        defer { withExtendedLifetime(signed) {} }
        let signer = try signed.onlySigner
        let content = try signed.content

        let store = try makeStore()
        defer { X509_STORE_free(store) }
        ErrorQueue.clear()
        // The certificate is verified before the signature, so nothing is computed with a stranger's key.
        guard CMS_verify(signed.pointer, nil, store, nil, nil, 0) == 1 else {
            throw TLSError(
                .badSignedMessage, "The message is not signed by an SSL server that a trusted authority knows.",
                reason: ErrorQueue.drain().text)
        }
        try requireName(host, of: signer)
        ErrorQueue.clear()
        return content
    }

    /// The trust anchors and the rules for a chain to them.
    private func makeStore() throws(TLSError) -> OpaquePointer {
        ErrorQueue.clear()
        guard let store = X509_STORE_new() else { throw ErrorQueue.libraryFailure("making a trust store") }
        guard fill(store), let parameters = X509_STORE_get0_param(store),
            // Trust as well as purpose: CMS_verify would otherwise use those of mail.
            X509_VERIFY_PARAM_set_purpose(parameters, X509_PURPOSE_SSL_SERVER) == 1,
            X509_VERIFY_PARAM_set_trust(parameters, X509_TRUST_SSL_SERVER) == 1
        else {
            X509_STORE_free(store)
            throw ErrorQueue.libraryFailure("reading the trusted certificates")
        }
        X509_VERIFY_PARAM_set_depth(parameters, Self.depth)
        // 112 bits, as Debian demands for TLS. OpenSSL's default for messages accepts RSA of 1024 bits and SHA-1.
        X509_VERIFY_PARAM_set_auth_level(parameters, 2)
        return store
    }

    private func fill(_ store: OpaquePointer) -> Bool {
        switch anchors {
        case .system:
            return X509_STORE_set_default_paths(store) == 1
        case .certificates(let pem):
            let text = Array(pem.utf8)
            return text.withUnsafeBytes { bytes in
                guard let reader = BIO_new_mem_buf(bytes.baseAddress, Int32(bytes.count)) else { return false }
                defer { BIO_free(reader) }
                var count = 0
                while let certificate = PEM_read_bio_X509(reader, nil, { _, _, _, _ in -1 }, nil) {
                    defer { X509_free(certificate) }
                    guard X509_STORE_add_cert(store, certificate) == 1 else { return false }
                    count += 1
                }
                return count > 0
            }
        }
    }

    private func requireName(_ host: String, of signer: OpaquePointer) throws(TLSError) {
        var certificate: OpaquePointer?
        CMS_SignerInfo_get0_algs(signer, nil, &certificate, nil, nil)
        let flags = UInt32(X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS)
        // With a length, X509_check_host does not stop at a zero byte.
        guard let certificate, !host.isEmpty, X509_check_host(certificate, host, host.utf8.count, flags, nil) == 1
        else {
            throw TLSError(.badSignedMessage, "The signer's certificate is not for \(host).")
        }
    }
}
