// SPDX-License-Identifier: Apache-2.0

package import BatonAccount

package import BatonProtocol
import Glibc
package import struct SystemPackage.FilePath

/// An account with some devices, each in a home of its own, in a temporary folder.
///
/// The folder goes with the last reference to the account; the values in memory stay usable.
package final class TestAccount: Sendable {
    /// One device of the account.
    package struct Device: Sendable {
        /// The device's own folder, as `BATON_HOME` would name it.
        package let home: FilePath
        /// The account in it, at `home/account`.
        package let store: AccountStore
        /// The content of the store when the device was enrolled.
        package let account: Account

        /// Who the device is.
        package var id: DeviceID { account.identity.id }

        /// The parts of a TLS context of the device.
        package var tlsMaterial: TLSMaterial { account.identity.tlsMaterial }

        /// A sealer of its advertisements, under the next epoch.
        package func makeSealer(unixTime: UInt64 = 1_760_000_000) throws -> AdvertisementSealer {
            AdvertisementSealer(
                identity: account.identity, keys: account.currentKeys,
                epoch: try store.nextEpoch(unixTime: unixTime))
        }

        /// An opener of the other devices' advertisements.
        package func makeOpener() -> AdvertisementOpener {
            AdvertisementOpener(keys: account.keys, ownDevice: id)
        }
    }

    private let folder: ScratchFolder

    /// The folder that everything is in.
    package var root: FilePath { folder.filePath }

    /// The account's key, which a real device would have forgotten.
    package let key: AccountKey

    /// The devices, named `device-1` and so on; the first one made the account.
    package let devices: [Device]

    /// Makes an account and enrols its devices.
    ///
    /// - Parameter count: How many devices, at least one.
    package init(devices count: Int = 2) throws {
        precondition(count > 0, "an account begins with a device")
        folder = try ScratchFolder()
        let root = folder.filePath
        var enrolled: [Device] = []
        var key: AccountKey?
        for number in 1...count {
            let home = root.appending("device-\(number)")
            let store = AccountStore(folder: home.appending("account"))
            if let key {
                let account = try store.join(key, deviceName: "device-\(number)")
                enrolled.append(Device(home: home, store: store, account: account))
            } else {
                let made = try store.make(deviceName: "device-\(number)")
                key = made.key
                enrolled.append(Device(home: home, store: store, account: made.account))
            }
        }
        guard let key else { throw AccountError.noAccount }
        self.key = key
        devices = enrolled
    }
}

extension AccountStore {
    /// Makes an account whose key the test keeps, as no device does.
    package func make(deviceName: String? = nil) throws(AccountError) -> (account: Account, key: AccountKey) {
        var shown: AccountKey?
        let account = try create(deviceName: deviceName) { shown = $0 }
        guard let shown else { throw .noAccount }
        return (account, shown)
    }
}

/// What a device shows and proves in a handshake, or what an attacker has put together.
package struct TLSMaterial: Sendable {
    package let authorityCertificate: [UInt8]
    package let certificate: [UInt8]
    /// PKCS#8 in DER.
    package let privateKey: SecretBytes

    package init(authorityCertificate: [UInt8], certificate: [UInt8], privateKey: SecretBytes) {
        self.authorityCertificate = authorityCertificate
        self.certificate = certificate
        self.privateKey = privateKey
    }
}

extension DeviceIdentity {
    package var tlsMaterial: TLSMaterial {
        TLSMaterial(authorityCertificate: authorityCertificate, certificate: certificate, privateKey: privateKey)
    }
}

extension AccountStore {
    /// Makes this device one of the account's, without a look for revocations.
    @discardableResult
    package func join(_ key: AccountKey, deviceName: String? = nil) throws(AccountError) -> Account {
        try finish(begin(key, deviceName: deviceName).account)
    }
}

extension NetworkAddress {
    /// An address from its usual text, without interface; nil for anything else.
    package init?(_ text: String) {
        var bytes = [UInt8](repeating: 0, count: 16)
        if inet_pton(AF_INET, text, &bytes) == 1 {
            self.init(bytes: bytes[..<4])
        } else if inet_pton(AF_INET6, text, &bytes) == 1 {
            self.init(bytes: bytes)
        } else {
            return nil
        }
    }
}
