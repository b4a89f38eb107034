// SPDX-License-Identifier: Apache-2.0

/// The identity of a device: the first 20 bytes of the SHA-256 of its public key (the DER of its SubjectPublicKeyInfo).
///
/// The text form is 32 characters of base32 (RFC 4648, lower case, no padding). The device's certificate names it as
/// `<device id>.device.baton.invalid`.
package struct DeviceID: Sendable, Hashable, CustomStringConvertible {
    /// How many bytes an id has.
    package static let count = 20

    /// The suffix of the name in a device's certificate, behind the id.
    package static let certificateNameSuffix = ".device.baton.invalid"

    /// The 20 bytes.
    package let bytes: [UInt8]

    /// The id in the first 20 bytes of a digest.
    package init(digest: some Collection<UInt8>) { bytes = Array(digest.prefix(Self.count)) }

    /// An id from its 20 bytes; nil for any other count.
    package init?(bytes: some Collection<UInt8>) {
        guard bytes.count == Self.count else { return nil }
        self.bytes = Array(bytes)
    }

    /// An id from its text form, upper or lower case; nil for anything else.
    package init?(_ text: String) {
        guard text.utf8.count == 32, let bytes = Base32.decode(text) else { return nil }
        self.init(bytes: bytes)
    }

    /// The 32 characters of base32.
    package var description: String { Base32.encode(bytes) }

    /// The first eight characters, enough for a person to tell devices apart.
    package var short: String { String(description.prefix(8)) }

    /// The name in the device's certificate, which a dialling TLS client expects of its peer.
    package var certificateName: String { description + Self.certificateNameSuffix }
}
