// SPDX-License-Identifier: Apache-2.0

/// Which certificate authorities are believed about a host of the web.
///
/// The account's own authority has nothing to do with these: it is what ``TLSContext`` trusts, alone.
package enum TrustAnchors: Sendable, Hashable {
    /// Those of the system, such as the package `ca-certificates` installs.
    case system
    /// Those in this PEM text and no others: for tests.
    case certificates(pem: String)
}
