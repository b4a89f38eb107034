// SPDX-License-Identifier: Apache-2.0

/// The identity of a device and the shared keys of its account. The account key is not part of it.
package struct Account: Sendable {
    /// The most generations whose keys are used. Each costs 12 KiB, and 30 µs for a record that no key opens. A device
    /// that slept through more revocations joins again.
    static let maximumKeys = 64

    /// The generations whose keys are used: the newest ones and the first. A device that met no other when it joined
    /// has only the first.
    ///
    /// - Parameter generations: the newest first.
    static func used<Generation>(_ generations: [Generation]) -> [Generation] {
        guard generations.count > maximumKeys else { return generations }
        return generations.prefix(maximumKeys - 1) + generations.suffix(1)
    }

    package let id: AccountID
    package let identity: DeviceIdentity
    package var deviceName: String
    package internal(set) var state: AccountState = .initial

    /// The keys of the current generation and of the known older ones, newest first; never empty.
    ///
    /// If several lists have the highest number, each has its keys here, in the order of the digests, which is the same
    /// on every device. The older keys serve only to exchange the account's state with devices that slept.
    package internal(set) var keys: [GenerationKeys]

    /// The keys that are sealed and minted with.
    package var currentKeys: GenerationKeys { keys[0] }

    /// The generation whose keys seal advertisements and mint tokens; grows with each revocation.
    package var generation: UInt32 { currentKeys.generation }
}

extension Account {
    /// An account as its key alone gives it, with a new device key.
    ///
    /// - Parameter deviceName: a valid name.
    init(issuedBy secrets: AccountSecrets, deviceName: String) throws(AccountError) {
        self.init(
            id: secrets.accountID, identity: try DeviceIdentity(issuedBy: secrets), deviceName: deviceName,
            keys: [secrets.keys(generation: 0)])
    }
}
