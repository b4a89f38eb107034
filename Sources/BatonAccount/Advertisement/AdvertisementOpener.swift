/// Opens the advertisements of the account's other devices.
///
/// An immutable value: opening changes nothing, so that a stranger's record leaves no trace. What opened then goes
/// through a ``ReplayGuard``.
public struct AdvertisementOpener: Sendable {
    private let keys: [GenerationKeys]
    private let ownDevice: DeviceID

    /// An opener.
    ///
    /// - Parameters:
    ///   - keys: The generations to try, the likeliest first; each costs a key derivation and a decryption (tens of
    ///     microseconds in all).
    ///   - ownDevice: Whose advertisements are rejected as ``AdvertisementRejection/own``.
    public init(keys: [GenerationKeys], ownDevice: DeviceID) {
        self.keys = keys
        self.ownDevice = ownDevice
    }

    /// Opens a raw TXT record: strings, each behind a byte with its length.
    ///
    /// - Returns: The advertisement, sealed with the account's key and signed by the device it names, and the keys that
    ///   opened it, which are the ones to mint a ``GateToken`` with.
    /// - Throws: Why the record counts for nothing.
    public func open(
        _ record: [UInt8]
    ) throws(AdvertisementRejection) -> (advertisement: Advertisement, keys: GenerationKeys) {
        let blob = try AdvertisementTXT.blob(in: record)
        for generation in keys {
            guard let opened = AdvertisementSeal.open(blob, key: generation.advertisement) else { continue }
            return (try opened.verified(salt: blob.prefix(AdvertisementSeal.saltCount), notOf: ownDevice), generation)
        }
        throw .unopenable
    }
}
