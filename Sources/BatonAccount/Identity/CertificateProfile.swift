// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import Crypto
import FoundationEssentials
import SwiftASN1
import X509

/// The two kinds of certificate an account has, byte for byte as the wire specification describes them.
///
/// Neither has key identifiers, so that a handshake has nothing in common with another account's. Times run from 2000
/// to 9999, and no device checks them, because laptops have wrong clocks.
enum CertificateProfile {
    private static let notBefore = Date(timeIntervalSince1970: 946_684_800)

    /// 9999-12-31T23:59:59Z: RFC 5280, section 4.1.2.5, for a certificate without a well-defined end.
    private static let notAfter = Date(timeIntervalSince1970: 253_402_300_799)

    /// The name of every account's certificate authority; it must differ from the devices' name.
    private static func authorityName() throws -> DistinguishedName {
        try DistinguishedName { CommonName("Baton Account") }
    }

    /// The self-signed certificate of the account's authority, in DER.
    ///
    /// Every device makes it from the account key alone and gets the same bytes. The serial number is 1, and an Ed25519
    /// signature (RFC 8032) depends only on key and message.
    static func authority(seed: SecretBytes) throws -> [UInt8] {
        let key = try signingKey(seed)
        let name = try authorityName()
        let certificate = try Certificate(
            version: .v3, serialNumber: Certificate.SerialNumber(bytes: [1]),
            publicKey: Certificate.PublicKey(key.publicKey), notValidBefore: notBefore, notValidAfter: notAfter,
            issuer: name, subject: name, signatureAlgorithm: .ed25519,
            extensions: try Certificate.Extensions {
                Critical(BasicConstraints.isCertificateAuthority(maxPathLength: 0))
                Critical(KeyUsage(keyCertSign: true))
            },
            issuerPrivateKey: Certificate.PrivateKey(key))
        return try der(certificate)
    }

    /// A device's certificate, in DER, with a random serial number.
    static func device(publicKey: [UInt8], authoritySeed: SecretBytes) throws -> [UInt8] {
        let certificate = try Certificate(
            version: .v3, serialNumber: randomSerialNumber(),
            publicKey: Certificate.PublicKey(Curve25519.Signing.PublicKey(rawRepresentation: publicKey)),
            notValidBefore: notBefore, notValidAfter: notAfter,
            issuer: try authorityName(), subject: try DistinguishedName { CommonName("device") },
            signatureAlgorithm: .ed25519,
            extensions: try Certificate.Extensions {
                Critical(KeyUsage(digitalSignature: true))
                try ExtendedKeyUsage([.serverAuth, .clientAuth])
                SubjectAlternativeNames([.dnsName(DeviceID(ed25519PublicKey: publicKey).certificateName)])
            },
            issuerPrivateKey: Certificate.PrivateKey(signingKey(authoritySeed)))
        return try der(certificate)
    }

    /// Whether a device's certificate belongs to its key and was issued by the authority.
    static func agrees(device: [UInt8], publicKey: [UInt8], authority: [UInt8]) -> Bool {
        guard
            let leaf = try? Certificate(derEncoded: device), let issuer = try? Certificate(derEncoded: authority),
            let names = try? leaf.extensions.subjectAlternativeNames,
            let key = try? Curve25519.Signing.PublicKey(rawRepresentation: publicKey)
        else { return false }
        let id = DeviceID(ed25519PublicKey: publicKey)
        return leaf.publicKey == Certificate.PublicKey(key)
            && Array(names) == [.dnsName(id.certificateName)] && leaf.issuer == issuer.subject
            && issuer.publicKey.isValidSignature(leaf.signature, for: leaf)
    }

    /// The 32 bytes of the Ed25519 key in an authority's certificate; none for any other certificate.
    static func publicKey(ofAuthority certificate: [UInt8]) -> [UInt8] {
        guard let authority = try? Certificate(derEncoded: certificate),
            let key = Curve25519.Signing.PublicKey(authority.publicKey)
        else { return [] }
        return Array(key.rawRepresentation)
    }

    static func signingKey(_ seed: SecretBytes) throws -> Curve25519.Signing.PrivateKey {
        try seed.withUnsafeBytes { try Curve25519.Signing.PrivateKey(rawRepresentation: $0) }
    }

    /// Sixteen random bytes, positive and without a leading zero, so that every certificate has the same length.
    private static func randomSerialNumber() -> Certificate.SerialNumber {
        var bytes = randomBytes(16)
        bytes[0] = bytes[0] & 0x3f | 0x40
        return Certificate.SerialNumber(bytes: bytes)
    }

    private static func der(_ certificate: Certificate) throws -> [UInt8] {
        var serializer = DER.Serializer()
        try serializer.serialize(certificate)
        return serializer.serializedBytes
    }
}
