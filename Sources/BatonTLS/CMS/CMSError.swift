// SPDX-License-Identifier: Apache-2.0

/// Why a signed message was not believed: a code to act on, a sentence to show, and OpenSSL's own words for the log.
package struct CMSError: Error, Sendable, Hashable, CustomStringConvertible {
    /// What went wrong. A struct and not an enum, so that a code can be added without breaking who switches over it.
    package struct Code: Sendable, Hashable, CustomStringConvertible {
        private enum Kind: String, Sendable {
            case malformed, tooLarge, noContent, signers, weakDigest, signatureWrong, untrusted, wrongHost, library
        }
        private let kind: Kind

        /// The bytes are not one CMS SignedData in DER (RFC 5652), and nothing else.
        package static let malformed = Code(kind: .malformed)
        /// The message is larger than ``CMSVerifier/maximumBytes``.
        package static let tooLarge = Code(kind: .tooLarge)
        /// The message is a detached signature, or what it carries is not plain data.
        package static let noContent = Code(kind: .noContent)
        /// The message has no signer, or more than one.
        package static let signers = Code(kind: .signers)
        /// The signature is over a digest that is not SHA-2.
        package static let weakDigest = Code(kind: .weakDigest)
        /// The signature does not fit the content, or the signer's certificate is not there.
        package static let signatureWrong = Code(kind: .signatureWrong)
        /// The signer's certificate is not by a trusted authority, is expired, or is not one of an SSL server.
        package static let untrusted = Code(kind: .untrusted)
        /// The signer's certificate is good, but for another host.
        package static let wrongHost = Code(kind: .wrongHost)
        /// OpenSSL failed on its own account: out of memory, no trust store.
        package static let library = Code(kind: .library)

        /// The name of the code, stable enough for logs.
        package var description: String { kind.rawValue }
    }

    /// What to act on.
    package let code: Code
    /// One plain sentence.
    package let message: String
    /// OpenSSL's own reason text, for the log; empty where OpenSSL had none.
    package let reason: String

    init(_ code: Code, _ message: String, reason: String = "") {
        self.code = code
        self.message = message
        self.reason = reason
    }

    /// The sentence, with OpenSSL's reason in parentheses where there is one.
    package var description: String {
        reason.isEmpty ? message : "\(message) (\(reason))"
    }
}
