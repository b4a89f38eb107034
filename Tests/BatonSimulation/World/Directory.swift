// SPDX-License-Identifier: Apache-2.0

import BatonCore
import BatonProtocol

/// A device as it announces itself.
struct Announcement {
    let device: Int
    let identity: String
    /// Rises with each change of what it offers.
    let version: UInt64
    let isGoodbye: Bool

    init(_ device: Device, isGoodbye: Bool) {
        (self.device, identity, version) = (device.index, device.peer.id, device.directory.version)
        self.isGoodbye = isGoodbye
    }
}

/// The other devices, as a device knows them from announcements and from the lists that it asked for.
///
/// It stands for the node's own directory, which is not a value of the core.
struct Directory {
    /// How long a record is believed that is not announced again.
    static let lifetime = Duration.seconds(120)

    struct Record {
        var identity: String
        var version: UInt64
        var end: Instant
        var items: [Item] = []
        /// The version that the items are of; nil before there were any.
        var listed: UInt64?
        var isAsking = false
        var pause = Duration.milliseconds(250)

        mutating func take(_ items: [Item], _ version: UInt64) {
            self.items = items
            listed = version
            self.version = max(version, self.version)
            pause = .milliseconds(250)
            isAsking = false
        }
    }

    /// The version of the own list.
    var version: UInt64 = 0
    var records: [Int: Record] = [:]
}

extension Device {
    /// The activities of another device that this device's user sees.
    func listed(of other: Device) -> [Item] { directory.records[other.index]?.items ?? [] }

    /// All that the user sees, in an order that does not change.
    var listing: [(device: Int, item: Item)] {
        directory.records.keys.sorted().flatMap { key in
            (directory.records[key]?.items ?? []).map { (key, $0) }
        }
    }

    func hear(_ announcement: Announcement) {
        guard !membership.isRevoked(announcement.identity) else { return }
        let other = announcement.device
        if announcement.isGoodbye {
            if let record = directory.records[other], record.version <= announcement.version { drop(other) }
            return
        }
        let end = world.time + Directory.lifetime
        var record =
            directory.records[other] ?? .init(identity: announcement.identity, version: announcement.version, end: end)
        record.end = end
        if record.version <= announcement.version {
            (record.version, record.identity) = (announcement.version, announcement.identity)
        }
        directory.records[other] = record
        after(Directory.lifetime) { [unowned self] in
            if let record = directory.records[other], record.end <= world.time { drop(other) }
        }
        for id in parties.keys.sorted(by: { $0.number < $1.number }) { hearOrigin(other, of: id) }
        list(other)
    }

    private func drop(_ other: Int) {
        directory.records[other] = nil
        note("no longer lists \(letters(other))")
    }

    /// Asks a device for its list, if there is a newer one.
    private func list(_ other: Int) {
        guard let record = directory.records[other], !record.isAsking, record.listed != record.version else { return }
        directory.records[other]?.isAsking = true
        connect(to: other) { [unowned self] result in
            guard case .success(let wire) = result else { return listAgain(other) }
            ask(.list, on: wire, within: Self.answerDeadline) { [unowned self] answer in
                guard case .success(.list(let items, let version)) = answer else { return listAgain(other) }
                noteListings(items, of: other)
                directory.records[other]?.take(items, version)
                list(other)
            }
        }
    }

    private func listAgain(_ other: Int) {
        guard let pause = directory.records[other]?.pause else { return }
        directory.records[other]?.pause = min(pause * 2, .seconds(10))
        after(pause) { [unowned self] in
            directory.records[other]?.isAsking = false
            list(other)
        }
    }

    private func noteListings(_ items: [Item], of other: Int) {
        let known = Set(directory.records[other]?.items.map(\.id) ?? [])
        for item in items where !known.contains(item.id) {
            if let time = world.ledger.offered[item.id] {
                world.statistics.listings.append((world.time - time) / .milliseconds(1))
            }
        }
    }
}
