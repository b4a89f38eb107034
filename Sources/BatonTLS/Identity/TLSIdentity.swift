// SPDX-License-Identifier: Apache-2.0

import COpenSSL

/// What a device shows and whom it trusts: its certificate, its private key, and the account's CA certificate.
///
/// The three are read into OpenSSL's own objects straight from the caller's bytes; no copy stays behind on the Swift
/// side, and OpenSSL wipes the key when the last user of the identity is gone. The caller wipes its own bytes.
package struct TLSIdentity: Sendable {
    /// This device's id, from its own certificate's key.
    package let deviceID: String

    let certificate: Certificate
    let privateKey: PrivateKey
    let accountCA: Certificate

    /// Reads an identity and checks that its parts belong together.
    ///
    /// - Parameters:
    ///   - certificate: The device's certificate, DER or PEM.
    ///   - privateKey: Its key, DER (PKCS #8 or SEC 1) or PEM, not encrypted. Bytes, so that a secret needs no
    ///     `String`; prefer DER, since OpenSSL's reader of PEM leaves its own decoded copy to the allocator.
    ///   - accountCA: The account's CA certificate, DER or PEM. The only one that is trusted.
    /// - Throws: `invalidIdentity` when a part cannot be read, the key is not the certificate's, the account's
    ///   certificate is not Ed25519 or did not sign the device's; `identityMismatch` when the certificate does not name
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
                .invalidIdentity, "The private key is not the certificate's.", reason: ErrorQueue.take().text)
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
