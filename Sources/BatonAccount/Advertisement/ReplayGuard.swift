// SPDX-License-Identifier: Apache-2.0

package import BatonProtocol

/// Remembers the newest advertisement of each device, so that an older one is ignored.
///
/// Pass only advertisements that ``AdvertisementOpener`` opened. ``AccountStore/save(_:)`` persists the guard, so that
/// a replay after a restart fails as well.
///
/// Epochs are not compared with the clock. A device with a wrong clock would vanish from the others, and a receiver
/// with a wrong clock would see no device. An epoch far ahead harms only the device that signed it, which goes on
/// counting from there.
package struct ReplayGuard: Sendable, Equatable {
    /// The most devices that are remembered. A further device evicts the one that was silent longest. Devices that a
    /// connection has proved are evicted last, because a holder of the account's keys can make up any number of others.
    /// 256 devices cost about 32 KiB in memory and 11 KiB on disk.
    package static let capacity = 256

    /// How urgently the guard wants to be saved.
    package enum SaveNeed: Sendable {
        case none
        /// Save within half a minute and when the node stops. Only sequence numbers rose, so that a crash before the
        /// save lets in nothing newer than half a minute.
        case soon
        /// Now: a device is new or began a new epoch, which happens once per start of its node.
        case now
    }

    private struct Entry: Equatable {
        var epoch: UInt64
        var sequence: UInt64
        /// When its time to live is over, in seconds since 1970 by this device's clock.
        var validUntil: UInt64
        /// When it last rose, in units of changes; the order of eviction.
        var order: UInt64
        /// Whether this run has seen the device.
        var isSeen: Bool
        /// Whether a connection has shown it. Not on disk: the device's own place there says so (``KnownDevices``).
        var isProved = false
    }

    private var entries: [DeviceID: Entry] = [:]
    private var changes: UInt64 = 0

    /// How urgently the guard wants to be saved; set back by ``markSaved()``.
    package private(set) var saveNeed: SaveNeed = .none

    package init() {}

    package var count: Int { entries.count }

    /// Judges an opened advertisement, and remembers it if it is newer.
    ///
    /// - Parameter unixTime: Seconds since 1970 by this device's clock. If the clock was set since the advertisement
    ///   came, an advertisement of an earlier run may count as ``Freshness/expired`` too soon. Its device sends the
    ///   next one within five minutes.
    package mutating func judge(_ advertisement: Advertisement, unixTime: UInt64) -> Freshness {
        judge(
            advertisement.device, epoch: advertisement.epoch, sequence: advertisement.sequence,
            timeToLive: advertisement.content.timeToLive, unixTime: unixTime)
    }

    /// Judges an advertisement that is sealed with keys of an earlier generation.
    ///
    /// A revoked device has these keys and can make up any number of names, so a device that is not remembered stays
    /// unknown.
    ///
    /// - Returns: whether this is the newest known advertisement of its device.
    package mutating func admits(outdated advertisement: Advertisement, unixTime: UInt64) -> Bool {
        guard let known = entries[advertisement.device] else { return true }
        switch judge(advertisement, unixTime: unixTime) {
        case .accepted, .standing: return true
        case .duplicate: return unixTime < known.validUntil
        case .expired, .replayed: return false
        }
    }

    mutating func judge(
        _ device: DeviceID, epoch: UInt64, sequence: UInt64, timeToLive: UInt16, unixTime: UInt64
    ) -> Freshness {
        if let known = entries[device] {
            if (epoch, sequence) == (known.epoch, known.sequence) {
                if known.isSeen { return .duplicate }
                // Before it came is no time at which it can have counted.
                let (left, isOver) = known.validUntil.subtractingReportingOverflow(unixTime)
                guard !isOver, (1...UInt64(timeToLive)).contains(left) else { return .expired }
                entries[device]?.isSeen = true
                return .standing(secondsLeft: UInt16(left))
            }
            guard (epoch, sequence) > (known.epoch, known.sequence) else { return .replayed }
            if epoch > known.epoch { saveNeed = .now } else if saveNeed != .now { saveNeed = .soon }
        } else {
            if entries.count >= Self.capacity { evict() }
            saveNeed = .now
        }
        changes += 1
        entries[device] = Entry(
            epoch: epoch, sequence: sequence, validUntil: min(unixTime, AccountStore.latestTime) + UInt64(timeToLive),
            order: changes, isSeen: true, isProved: entries[device]?.isProved ?? false)
        return .accepted
    }

    /// Notes that a connection has shown a device, if it is remembered: it makes no room for one that none has shown.
    package mutating func prove(_ device: DeviceID) {
        entries[device]?.isProved = true
    }

    package mutating func markSaved() {
        saveNeed = .none
    }

    private mutating func evict() {
        let oldest = entries.min { left, right in
            (left.value.isProved ? 1 : 0, left.value.order) < (right.value.isProved ? 1 : 0, right.value.order)
        }
        if let oldest { entries[oldest.key] = nil }
    }
}

extension ReplayGuard {
    private static let header: [UInt8] = Array("baton replay/2".utf8)
    private static let entryCount = DeviceID.count + 24

    /// The form on disk: a header, then id, epoch, sequence and end of each device's newest, the longest silent first.
    func encoded() -> [UInt8] {
        var bytes = Self.header
        for (device, entry) in entries.sorted(by: { $0.value.order < $1.value.order }) {
            bytes += device.bytes
            bytes.append(bigEndian: entry.epoch)
            bytes.append(bigEndian: entry.sequence)
            bytes.append(bigEndian: entry.validUntil)
        }
        return bytes
    }

    /// Reads the form on disk; nil for anything else.
    init?(decoding bytes: [UInt8]) {
        guard bytes.starts(with: Self.header) else { return nil }
        let body = bytes.dropFirst(Self.header.count)
        guard body.count % Self.entryCount == 0, body.count / Self.entryCount <= Self.capacity else { return nil }
        for start in stride(from: body.startIndex, to: body.endIndex, by: Self.entryCount) {
            let entry = body[start..<(start + Self.entryCount)]
            guard let device = DeviceID(bytes: entry.prefix(DeviceID.count)), entries[device] == nil else { return nil }
            let numbers = [0, 8, 16].map { offset in
                entry.dropFirst(DeviceID.count + offset).prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
            }
            guard numbers[0] < Advertisement.maximumEpoch else { return nil }
            changes += 1
            entries[device] = Entry(
                epoch: numbers[0], sequence: numbers[1], validUntil: numbers[2], order: changes, isSeen: false)
        }
    }
}
