// SPDX-License-Identifier: Apache-2.0

/// The description of a TLS alert on the wire (RFC 8446, section 6).
///
/// An open set: an alert without a name here keeps its number.
package struct TLSAlert: RawRepresentable, Sendable, Hashable {
    /// The number of the alert, RFC 8446, section 6.
    package let rawValue: UInt8

    /// Makes an alert from its number; every number is valid.
    package init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// A record could not be authenticated (20).
    package static let badRecordMAC = TLSAlert(rawValue: 20)
    /// The two sides have no parameters in common (40).
    package static let handshakeFailure = TLSAlert(rawValue: 40)
    /// The certificate is refused: malformed, not for the expected device, or the receiver's own (42).
    package static let badCertificate = TLSAlert(rawValue: 42)
    /// The certificate is of a type or for a purpose that is not accepted (43).
    package static let unsupportedCertificate = TLSAlert(rawValue: 43)
    /// The certificate was revoked (44).
    package static let certificateRevoked = TLSAlert(rawValue: 44)
    /// The certificate was issued by another account (48).
    package static let unknownCA = TLSAlert(rawValue: 48)
    /// A signature does not match (51).
    package static let decryptError = TLSAlert(rawValue: 51)
    /// The TLS version is not 1.3 (70).
    package static let protocolVersion = TLSAlert(rawValue: 70)
    /// The sender itself failed (80).
    package static let internalError = TLSAlert(rawValue: 80)
    /// A client sent no certificate (116).
    package static let certificateRequired = TLSAlert(rawValue: 116)
    /// The two sides have no application protocol in common (120).
    package static let noApplicationProtocol = TLSAlert(rawValue: 120)
}
