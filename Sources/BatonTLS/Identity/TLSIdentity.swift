// SPDX-License-Identifier: Apache-2.0

import COpenSSL

/// A device's certificate and private key, and the account's CA certificate.
///
/// They are parsed into OpenSSL's objects straight from the caller's bytes. No copy stays in Swift memory, and OpenSSL
/// wipes the key with the last reference. The caller wipes its own bytes.
package struct TLSIdentity: Sendable {
    /// This device's id, from the key of its certificate.
    package let deviceID: String

    let certificate: Certificate
    let privateKey: PrivateKey
    let accountCA: Certificate

    /// Parses an identity and checks that its parts belong together.
    ///
    /// - Parameters:
    ///   - certificate: the device's certificate, in DER.
    ///   - privateKey: its key, in DER (PKCS #8 or SEC 1), not encrypted.
    ///   - accountCA: the account's CA certificate, in DER. The only one that is trusted.
    /// - Throws: `invalidIdentity` if a part cannot be parsed, the key does not match the certificate, or the account's
    ///   certificate is not Ed25519 or did not sign the device's; `identityMismatch` if the certificate does not name
    ///   its own key.
    package init(
        certificate: UnsafeRawBufferPointer, privateKey: UnsafeRawBufferPointer, accountCA: UnsafeRawBufferPointer
    ) throws(TLSError) {
        self.certificate = try Certificate(certificate)
        self.privateKey = try PrivateKey(privateKey)
        self.accountCA = try Certificate(accountCA)
        ErrorQueue.clear()
        guard X509_check_private_key(self.certificate.pointer, self.privateKey.pointer) == 1 else {
            throw TLSError(
                .invalidIdentity, "The private key is not the certificate's.", reason: ErrorQueue.drain().text)
        }
        guard self.accountCA.hasEd25519Key else {
            throw TLSError(.invalidIdentity, "The account's certificate has no Ed25519 key.")
        }
        guard self.certificate.isSigned(by: self.accountCA) else {
            throw TLSError(.invalidIdentity, "This device's certificate was not issued by the account.")
        }
        deviceID = try self.certificate.deviceID()
    }
}
