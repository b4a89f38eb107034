// SPDX-License-Identifier: Apache-2.0

/// The reason why a signed message was refused: a code for programs, a sentence for people, and OpenSSL's reason for
/// the log.
package struct CMSError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The kind of failure.
    package enum Code: Sendable, Hashable {
        /// The bytes are not exactly one CMS SignedData in DER (RFC 5652).
        case malformed
        /// The message is larger than ``CMSVerifier/maximumBytes``.
        case tooLarge
        /// The message is a detached signature, or its content is not plain data.
        case noContent
        /// The message has no signer, or more than one.
        case signers
        /// The digest of the signature is not SHA-2.
        case weakDigest
        /// The signature does not match the content, or the signer's certificate is missing.
        case signatureWrong
        /// The signer's certificate is not issued by a trusted authority, is expired, or is not that of an SSL server.
        case untrusted
        /// The signer's certificate is good, but names another host.
        case wrongHost
        /// OpenSSL itself failed: out of memory, no trust store.
        case library
    }

    /// The kind of failure.
    package let code: Code
    /// One plain sentence.
    package let message: String
    /// OpenSSL's reason, for the log; empty if it had none.
    package let reason: String

    init(_ code: Code, _ message: String, reason: String = "") {
        self.code = code
        self.message = message
        self.reason = reason
    }

    /// The sentence, with OpenSSL's reason in parentheses if there is one.
    package var description: String {
        reason.isEmpty ? message : "\(message) (\(reason))"
    }
}
