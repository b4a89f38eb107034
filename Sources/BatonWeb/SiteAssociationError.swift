// SPDX-License-Identifier: Apache-2.0

/// Why it is not known which applications belong to a host: a code to act on and a sentence for the log.
package struct SiteAssociationError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The kind of failure.
    package enum Code: Sendable, Hashable {
        /// The host has no address, or does not answer there.
        case unreachable
        /// Every address of the host is private or special.
        case addressRefused
        /// The host did not answer in time.
        case timedOut
        /// The host's certificate is not by a trusted authority, is expired, or is for another host.
        case certificateRefused
        /// The host speaks no TLS of version 1.2 or later, or broke off.
        case insecure
        /// The host sends elsewhere.
        case redirected
        /// The host has no such file.
        case notThere
        /// The file or the header of the answer is larger than it may be.
        case tooLarge
        /// The file is signed, and the signature is not believed.
        case signatureRefused
        /// The file has not the required form.
        case malformed
        /// Too many files are asked for at once.
        case busy
        /// The caller no longer waits.
        case cancelled
        /// libcurl is not installed, or failed on its own account.
        case library
    }

    /// The code to act on.
    package let code: Code
    /// One clause that completes "… because", such as `example.org does not answer`.
    package let message: String

    init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    /// The clause.
    package var description: String { message }
}
