// SPDX-License-Identifier: Apache-2.0

/// What a device of an account holds: its own identity and the account's shared keys, but not the account key.
package struct Account: Sendable {
    /// The most generations whose keys are used: each costs a record that nobody can open about 30 µs, and 12 KiB.
    /// A device that slept through more revocations joins again.
    static let maximumKeys = 64

    /// Which generations' keys are used, of those that there are: the newest, and the first, which is all that a device
    /// has that joined when it met no other.
    ///
    /// - Parameter generations: the newest first.
    static func used<Generation>(_ generations: [Generation]) -> [Generation] {
        guard generations.count > maximumKeys else { return generations }
        return generations.prefix(maximumKeys - 1) + generations.suffix(1)
    }

    /// Which account, on this device only.
    package let id: AccountID

    /// This device's key and certificates.
    package let identity: DeviceIdentity

    /// The name this device shows to the account's other devices.
    package let deviceName: String

    /// The revocation lists that hold.
    package internal(set) var state: AccountState = .initial

    /// The keys of the current generation and of the older ones that are known, newest first; never empty.
    ///
    /// Where lists were signed apart, each has its keys here; those of the lowest digest come first on every device.
    /// The older ones serve one purpose: exchanging the account's state with devices that slept.
    package internal(set) var keys: [GenerationKeys]

    /// The keys that are sealed and minted with.
    package var currentKeys: GenerationKeys { keys[0] }

    /// The generation that is sealed and minted with; grows with each revocation.
    package var generation: UInt32 { currentKeys.generation }
}
