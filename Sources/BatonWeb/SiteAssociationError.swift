// SPDX-License-Identifier: Apache-2.0

/// Why it is not known which applications belong to a host: a code to act on and a sentence for the log.
package struct SiteAssociationError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The kind of failure. A struct and not an enum, so that a new code breaks no `switch`.
    package struct Code: Sendable, Hashable, CustomStringConvertible {
        fileprivate enum Kind: String, Sendable {
            case unreachable, addressRefused, timedOut, certificateRefused, insecure
            case redirected, notThere, tooLarge, signatureRefused, malformed
            case busy, cancelled, library
        }
        fileprivate let kind: Kind

        /// The host has no address, or does not answer there.
        package static let unreachable = Code(kind: .unreachable)
        /// Every address of the host is private or special.
        package static let addressRefused = Code(kind: .addressRefused)
        /// The host did not answer in time.
        package static let timedOut = Code(kind: .timedOut)
        /// The host's certificate is not by a trusted authority, is expired, or is for another host.
        package static let certificateRefused = Code(kind: .certificateRefused)
        /// The host speaks no TLS of version 1.2 or later, or broke off.
        package static let insecure = Code(kind: .insecure)
        /// The host sends elsewhere.
        package static let redirected = Code(kind: .redirected)
        /// The host has no such file.
        package static let notThere = Code(kind: .notThere)
        /// The file or the header of the answer is larger than it may be.
        package static let tooLarge = Code(kind: .tooLarge)
        /// The file is signed, and the signature is not believed.
        package static let signatureRefused = Code(kind: .signatureRefused)
        /// The file has not the required form.
        package static let malformed = Code(kind: .malformed)
        /// Too many files are asked for at once.
        package static let busy = Code(kind: .busy)
        /// The caller no longer waits.
        package static let cancelled = Code(kind: .cancelled)
        /// libcurl is not installed, or failed on its own account.
        package static let library = Code(kind: .library)

        /// The name of the code, stable enough for logs.
        package var description: String { kind.rawValue }
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

    /// How long to go by the failure before the host is asked again.
    var validity: Validity {
        switch code.kind {
        case .redirected, .notThere, .tooLarge, .signatureRefused, .malformed, .certificateRefused, .addressRefused:
            .answer
        case .unreachable, .timedOut, .insecure: .outage
        case .busy, .cancelled, .library: .none
        }
    }

    /// How long the failure counts.
    enum Validity {
        /// The host has answered, and will answer the same for a while.
        case answer
        /// The network or the host was away, and may be back in a moment.
        case outage
        /// It has nothing to do with the host.
        case none
    }
}
