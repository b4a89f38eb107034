// SPDX-License-Identifier: Apache-2.0

/// The certificate authorities that are trusted for web hosts.
///
/// They have nothing to do with the account's own authority, which is the only one that ``TLSContext`` trusts.
package enum TrustAnchors: Sendable, Hashable {
    /// The authorities of the system, such as those of the package `ca-certificates`.
    case system
    /// The certificates in this PEM text only, for tests.
    case certificates(pem: String)
}
