// SPDX-License-Identifier: Apache-2.0

/// Opens the advertisements of the account's other devices.
///
/// An immutable value: opening changes nothing, so that a stranger's record leaves no trace. Pass each opened
/// advertisement through a ``ReplayGuard``.
package struct AdvertisementOpener: Sendable {
    private let keys: [GenerationKeys]
    private let ownDevice: DeviceID

    /// An opener.
    ///
    /// - Parameters:
    ///   - keys: The generations to try, the likeliest first; each costs a key derivation and a decryption (tens of
    ///     microseconds in all).
    ///   - ownDevice: Whose advertisements are rejected as ``AdvertisementRejection/own``.
    package init(keys: [GenerationKeys], ownDevice: DeviceID) {
        self.keys = keys
        self.ownDevice = ownDevice
    }

    /// A copy that tries other keys.
    package func trying(_ keys: [GenerationKeys]) -> AdvertisementOpener {
        AdvertisementOpener(keys: keys, ownDevice: ownDevice)
    }

    /// Opens a raw TXT record: strings, each behind a byte with its length.
    ///
    /// - Returns: The verified advertisement, and the keys that opened it. Mint a ``GateToken`` with these keys.
    /// - Throws: ``AdvertisementRejection``.
    package func open(
        _ record: [UInt8]
    ) throws(AdvertisementRejection) -> (advertisement: Advertisement, keys: GenerationKeys) {
        let blob = try AdvertisementTXT.blob(in: record)
        for generation in keys {
            guard let opened = AdvertisementSeal.open(blob, key: generation.advertisement) else { continue }
            let advertisement = try opened.verified(
                salt: blob.prefix(AdvertisementSeal.saltCount), notOf: ownDevice)
            return (advertisement, generation)
        }
        throw .unopenable
    }
}
