// SPDX-License-Identifier: Apache-2.0

package import BatonProtocol
import Crypto
import FoundationEssentials

/// This device's own key and its certificates.
package struct DeviceIdentity: Sendable {
    package let id: DeviceID

    /// The 32 bytes of its Ed25519 public key.
    package let publicKey: [UInt8]

    /// Its certificate, in DER. It is the whole chain in TLS; the authority's certificate is not sent.
    package let certificate: [UInt8]

    /// The certificate of the account's authority, in DER; the only one this device trusts.
    package let authorityCertificate: [UInt8]

    private let seed: SecretBytes

    /// A new device key with a certificate issued under the account's key.
    init(issuedBy secrets: AccountSecrets, seed: SecretBytes = .random(count: 32)) throws(AccountError) {
        publicKey = try NewDevice(seed: seed).publicKey
        id = DeviceID(ed25519PublicKey: publicKey)
        (certificate, authorityCertificate) = try secrets.certificates(for: publicKey)
        self.seed = seed
    }

    /// An identity as it was stored; nil when key and certificates do not belong together.
    init?(privateKey: SecretBytes, certificate: [UInt8], authorityCertificate: [UInt8]) {
        guard
            let seed = Ed25519DER.seed(privateKey: privateKey),
            let publicKey = try? Array(CertificateProfile.signingKey(seed).publicKey.rawRepresentation),
            CertificateProfile.agrees(device: certificate, publicKey: publicKey, authority: authorityCertificate)
        else { return nil }
        self.id = DeviceID(ed25519PublicKey: publicKey)
        self.publicKey = publicKey
        self.certificate = certificate
        self.authorityCertificate = authorityCertificate
        self.seed = seed
    }

    /// The private key as PKCS#8 in DER (RFC 8410), 48 bytes.
    package var privateKey: SecretBytes { Ed25519DER.privateKey(seed: seed) }

    /// A key of 32 bytes that only this device's own programs know. It wraps secrets that one program of the device
    /// sends to another. Each derives it from the account's folder.
    package var localWrappingKey: SecretBytes {
        SecretDerivation.expand(SecretDerivation.extract(seed, salt: Array("baton/device".utf8)), "local-wrapping-key")
    }

    package var authorityKey: AuthorityKey {
        AuthorityKey(publicKey: CertificateProfile.publicKey(ofAuthority: authorityCertificate))
    }

    /// Signs with the device's key (Ed25519, RFC 8032); 64 bytes.
    func sign(_ message: [UInt8]) throws(AccountError) -> [UInt8] {
        do {
            return try Array(CertificateProfile.signingKey(seed).signature(for: message))
        } catch {
            throw .cryptography("\(error)")
        }
    }
}

/// A device that is about to join an account, with a key of its own and no certificate yet.
package struct NewDevice: Sendable {
    /// The 32 bytes of its Ed25519 public key.
    package let publicKey: [UInt8]

    private let seed: SecretBytes

    package init() throws(AccountError) {
        try self.init(seed: .random(count: 32))
    }

    init(seed: SecretBytes) throws(AccountError) {
        self.seed = seed
        do {
            publicKey = try Array(CertificateProfile.signingKey(seed).publicKey.rawRepresentation)
        } catch {
            throw .cryptography("\(error)")
        }
    }

    /// Its part of an account, from what a device of the account hands over.
    ///
    /// - Parameters:
    ///   - certificate: this device's, DER.
    ///   - authority: that of the account, DER.
    ///   - firstKeys: the keys of generation 0, concatenated.
    ///   - name: a valid device name.
    /// - Returns: nil if these do not belong together.
    package func account(
        id: AccountID, certificate: [UInt8], authority: [UInt8], firstKeys: SecretBytes, name: String
    ) -> Account? {
        guard
            let identity = DeviceIdentity(
                privateKey: Ed25519DER.privateKey(seed: seed), certificate: certificate,
                authorityCertificate: authority),
            let keys = GenerationKeys(id: GenerationID(number: 0, list: nil), concatenated: firstKeys)
        else { return nil }
        return Account(id: id, identity: identity, deviceName: name, keys: [keys])
    }
}

extension AccountSecrets {
    /// The certificates of a device with this Ed25519 public key, DER: its own, and the authority's.
    package func certificates(
        for publicKey: [UInt8]
    ) throws(AccountError) -> (device: [UInt8], authority: [UInt8]) {
        do {
            let authoritySeed = certificateAuthoritySeed
            return try withWipedStack { () throws in
                (
                    try CertificateProfile.device(publicKey: publicKey, authoritySeed: authoritySeed),
                    try CertificateProfile.authority(seed: authoritySeed)
                )
            }
        } catch {
            throw .cryptography("\(error)")
        }
    }
}
