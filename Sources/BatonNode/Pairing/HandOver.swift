// SPDX-License-Identifier: Apache-2.0

package import BatonAccount
package import BatonMessages
import FoundationEssentials
import SwiftProtobuf

/// The content of a hand-over, checked and not stored yet.
package struct HandedOver: Sendable {
    package let account: Account
    /// The name of the device that invited it, as that one says.
    package let inviterName: String
}

extension WireHandOver {
    /// The most bytes of a certificate, in DER.
    private static let maximumCertificate = 1024

    /// The message for a new device. It has a certificate for that device's own key, and the keys and lists that all
    /// devices of the account hold. It has neither the account key nor the authority's.
    ///
    /// - Parameter deviceKey: the Ed25519 public key of the new device, 32 bytes.
    package init(
        _ account: Account, _ secrets: AccountSecrets, to deviceKey: [UInt8], wrappedBy key: SecretBytes
    ) throws {
        self.init()
        let certificates = try secrets.certificates(for: deviceKey)
        accountID = account.id.rawValue
        certificate = Data(certificates.device)
        authorityCertificate = Data(certificates.authority)
        wrappedFirstKeys = Data(try secrets.keys(generation: 0).concatenated.wrapped(with: key))
        lists = try account.travellingLists(wrappedBy: key)
        inviterName = account.deviceName
    }

    /// Checks what was handed over to a new device.
    ///
    /// - Parameter name: the name of the new device.
    /// - Throws: ``PairingError`` with `malformed`, also if a list revokes the new device.
    package func read(
        for device: NewDevice, name: String, wrappedBy key: SecretBytes
    ) throws(PairingError) -> HandedOver {
        guard
            certificate.count <= Self.maximumCertificate, authorityCertificate.count <= Self.maximumCertificate,
            lists.count <= AccountState.maximumLists,
            let inviterName = try? DeviceName.validated(inviterName),
            let firstKeys = SecretBytes(unwrapping: Array(wrappedFirstKeys), with: key),
            var account = device.account(
                id: AccountID(rawValue: accountID), certificate: Array(certificate),
                authority: Array(authorityCertificate), firstKeys: firstKeys, name: name),
            let given = try? lists.read(wrappedBy: key, by: account.identity.authorityKey),
            (try? account.take(given)) != nil, !account.isRevoked(account.identity.id)
        else { throw .malformed }
        return HandedOver(account: account, inviterName: inviterName)
    }
}
