// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonEventLoop
import BatonProtocol
import BatonTLS

/// The account as it is now, for every part of the node and every thread. Only ``StateExchange`` changes it.
final class CurrentAccount: Sendable {
    private let account: Lock<Account>

    init(_ account: Account) {
        self.account = Lock(account)
    }

    /// The account as it is now.
    var value: Account { account.withLock { $0 } }

    /// Opens the advertisements that can be opened now.
    var opener: AdvertisementOpener {
        let account = value
        return AdvertisementOpener(keys: account.keys, ownDevice: account.identity.id)
    }

    /// Whether the device of this id was revoked.
    func isRevoked(_ device: String) -> Bool {
        guard let device = DeviceID(device) else { return true }
        return account.withLock { $0.isRevoked(device) }
    }

    /// Gives this device another name.
    ///
    /// - Parameter name: as ``DeviceName`` allows it.
    func rename(to name: String) {
        account.withLock { $0.deviceName = name }
    }

    /// Takes lists over.
    ///
    /// - Returns: the account with them, or nil if they said nothing new.
    func take(_ lists: [GivenList]) throws(RevocationError) -> Account? {
        try account.withLock { account throws(RevocationError) in try account.take(lists) ? account : nil }
    }
}

extension TLSIdentity {
    /// The identity of this device.
    init(_ identity: DeviceIdentity) throws(TLSError) {
        let result: Result<TLSIdentity, TLSError> = identity.certificate.withUnsafeBytes { certificate in
            identity.authorityCertificate.withUnsafeBytes { authority in
                identity.privateKey.withUnsafeBytes { key in
                    Result { () throws(TLSError) in
                        try TLSIdentity(certificate: certificate, privateKey: key, accountCA: authority)
                    }
                }
            }
        }
        self = try result.get()
    }
}
