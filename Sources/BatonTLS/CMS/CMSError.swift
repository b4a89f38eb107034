// SPDX-License-Identifier: Apache-2.0

/// The reason why a signed message was refused: a code for programs, a sentence for people, and OpenSSL's reason for
/// the log.
package struct CMSError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The kind of failure. A struct and not an enum, so that a new code does not break the source of callers.
    package struct Code: Sendable, Hashable, CustomStringConvertible {
        private enum Kind: String, Sendable {
            case malformed, tooLarge, noContent, signers, weakDigest, signatureWrong, untrusted, wrongHost, library
        }
        private let kind: Kind

        /// The bytes are not exactly one CMS SignedData in DER (RFC 5652).
        package static let malformed = Code(kind: .malformed)
        /// The message is larger than ``CMSVerifier/maximumBytes``.
        package static let tooLarge = Code(kind: .tooLarge)
        /// The message is a detached signature, or its content is not plain data.
        package static let noContent = Code(kind: .noContent)
        /// The message has no signer, or more than one.
        package static let signers = Code(kind: .signers)
        /// The digest of the signature is not SHA-2.
        package static let weakDigest = Code(kind: .weakDigest)
        /// The signature does not match the content, or the signer's certificate is missing.
        package static let signatureWrong = Code(kind: .signatureWrong)
        /// The signer's certificate is not issued by a trusted authority, is expired, or is not that of an SSL server.
        package static let untrusted = Code(kind: .untrusted)
        /// The signer's certificate is good, but names another host.
        package static let wrongHost = Code(kind: .wrongHost)
        /// OpenSSL itself failed: out of memory, no trust store.
        package static let library = Code(kind: .library)

        /// The name of the code, stable enough for logs.
        package var description: String { kind.rawValue }
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
