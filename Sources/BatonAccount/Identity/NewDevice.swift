// SPDX-License-Identifier: Apache-2.0

import Crypto
import FoundationEssentials

/// A device that is about to join an account, with a key of its own and no certificate yet.
package struct NewDevice: Sendable {
    /// The 32 bytes of its Ed25519 public key.
    package let publicKey: [UInt8]

    private let seed: SecretBytes

    /// A device with a new key.
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
