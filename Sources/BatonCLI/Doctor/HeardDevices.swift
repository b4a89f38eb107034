// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonDiscovery
import BatonEventLoop
import BatonProtocol

/// The devices whose advertisements the doctor heard. Reading them changes no state of the account.
struct HeardDevices: Sendable {
    struct Device: Sendable {
        var record: [UInt8]
        var advertisement: Advertisement
        /// Whether its keys are of an older generation than this device's.
        var isOutdated: Bool
        var sources: Set<IPAddress> = []
        /// Whether it came by multicast. Else it answered a unicast question.
        var isMulticast = false
    }

    private(set) var devices: [DeviceID: Device] = [:]
    /// The sources of records that no key of the account opens.
    private(set) var strangers: Set<IPAddress> = []
    private(set) var otherVersions: Set<IPAddress> = []

    /// Opens all that was heard with the keys of the account.
    init(_ report: MulticastEar.Report, account: Account) {
        let opener = AdvertisementOpener(keys: account.keys, ownDevice: account.identity.id)
        for (source, heard) in report.heard {
            for text in heard.texts { add(text, from: source, isMulticast: true, opener, account) }
        }
        for case (let source, .answered(let texts)) in report.unicast {
            for text in texts { add(text, from: source, isMulticast: false, opener, account) }
        }
    }

    private mutating func add(
        _ record: [UInt8], from source: IPAddress, isMulticast: Bool, _ opener: AdvertisementOpener,
        _ account: Account
    ) {
        do {
            let (advertisement, keys) = try opener.open(record)
            guard !account.isRevoked(advertisement.device) else { return }
            let isOutdated = keys.generation < account.generation
            let before = devices[advertisement.device]
            var device = before ?? Device(record: record, advertisement: advertisement, isOutdated: isOutdated)
            let last = device.advertisement
            if (last.epoch, last.sequence) < (advertisement.epoch, advertisement.sequence) {
                (device.record, device.advertisement, device.isOutdated) = (record, advertisement, isOutdated)
            }
            device.sources.insert(source)
            if isMulticast { device.isMulticast = true }
            devices[advertisement.device] = device
        } catch {
            switch error {
            case .unopenable: strangers.insert(source)
            case .unsupportedVersion, .unknownFormat: otherVersions.insert(source)
            case .malformedRecord, .malformed, .badSignature, .own, .cryptography: break
            }
        }
    }
}
