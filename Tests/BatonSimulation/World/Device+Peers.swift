// SPDX-License-Identifier: Apache-2.0

import BatonCore
import BatonProtocol

/// A packet of DNS-SD about an instance.
struct Announcement {
    let instance: String
    /// nil if the instance is withdrawn.
    let record: HeardAdvertisement?
}

/// The other devices, as a node has them in memory.
struct Peers {
    /// An activity of another device in the listing.
    struct Line: ListedLine, Hashable {
        struct Key: Hashable {
            let device: DeviceID
            let activity: ActivityID
        }

        let device: DeviceID
        let item: Item

        var key: Key { Key(device: device, activity: item.id) }

        func isTold(by other: Line) -> Bool { item == other.item }
    }

    struct Answer {
        /// The number of its last news then; nil if it is to be asked again.
        var news: UInt64?
        let items: [Item]
        /// Since when it could not be asked, in the time of the world.
        var silentSince: Instant?
    }

    var table = PeerTable()
    var outdated = OutdatedDevices()
    var sightings = Sightings()
    /// Instances that discovery does not tell of.
    var rejected: Set<String> = []
    /// The activities of other devices, as this device's user sees them.
    var answers: [DeviceID: Answer] = [:]
    /// Devices that are being asked.
    var asked: Set<DeviceID> = []
    /// Whether devices are asked again in a while.
    var isReminded = false
    /// The listing as the node has told it to a command that watches, and as the command knows it from that.
    var told = ToldListing<Line>()
    var known: [Line.Key: Line] = [:]
    /// Activities whose way to this device was measured.
    var measured: Set<ActivityID> = []
}

/// The newest advertisement of each device. It stands for `ReplayGuard`, which is not in the core.
struct Sightings {
    private struct Entry {
        let epoch, sequence, end: UInt64
        var isSeen = true
    }

    private var entries: [DeviceID: Entry] = [:]

    /// As a node finds them that starts.
    var stored: Sightings {
        var stored = self
        for device in entries.keys { stored.entries[device]?.isSeen = false }
        return stored
    }

    mutating func judge(_ said: Advertisement, unixTime: UInt64) -> Freshness {
        let life = UInt64(said.content.timeToLive)
        if let known = entries[said.device] {
            if (said.epoch, said.sequence) < (known.epoch, known.sequence) { return .replayed }
            if (said.epoch, said.sequence) == (known.epoch, known.sequence) {
                if known.isSeen { return .duplicate }
                guard unixTime < known.end, known.end - unixTime <= life else { return .expired }
                entries[said.device]?.isSeen = true
                return .standing(secondsLeft: UInt16(known.end - unixTime))
            }
        }
        entries[said.device] = Entry(epoch: said.epoch, sequence: said.sequence, end: unixTime + life)
        return .accepted
    }

    /// Whether an advertisement under older keys is the newest one of its device.
    mutating func admits(outdated said: Advertisement, unixTime: UInt64) -> Bool {
        let end = entries[said.device]?.end
        switch judge(said, unixTime: unixTime) {
        case .accepted, .standing: return true
        case .duplicate: return end.map { unixTime < $0 } ?? true
        case .expired, .replayed: return false
        }
    }
}

/// The driver of `PeerTable`, as the node's `PeerDirectory`, and a user who watches the activities.
extension Device {
    private static let rejection = Duration.seconds(600)
    private static let listDeadline = Duration.seconds(3)

    /// The device of this identity, if it was seen.
    func known(_ device: DeviceID) -> Peer? { peers.outdated[device] ?? peers.table[device] }

    @discardableResult
    func decidePeers<Value>(_ body: (inout PeerTable) -> Value) -> Value {
        let version = peers.table.version
        peers.table.expire(now: now.instant)
        let value = body(&peers.table)
        if peers.table.version != version { watch() }
        schedule(peers.table.nextExpiry, \.peerTimer) { [unowned self] in decidePeers { _ in } }
        return value
    }

    // MARK: Announcing

    /// Seals what is offered, and publishes it until it is renewed.
    func announce() {
        guard phase == .running, own.stopped == nil else { return }
        let visible = own.visible.map(\.activity)
        sequence += 1
        var content = AdvertisementContent(
            port: 4000, addresses: NetworkAddress(bytes: [10, 0, 0, UInt8(index)]).map { [$0] } ?? [],
            deviceName: name, current: visible.last.map { AdvertisedActivity($0) },
            otherActivities: UInt8(clamping: visible.count - 1))
        content.timeToLive = content.maximumTimeToLive
        let advertisement = Advertisement(
            device: id, publicKey: [], epoch: epoch, sequence: sequence, gateNonce: [], content: content)
        shown = Announcement(
            instance: "\(name)-\(period)", record: HeardAdvertisement(advertisement, under: lists.generation))
        world.announce(self)
        after(.seconds(Int(content.timeToLive / 2))) { [unowned self, sequence] in
            if self.sequence == sequence { announce() }
        }
    }

    /// Announces itself under another name, with the keys that it has now.
    func rotate() {
        withdraw()
        period += 1
        announce()
    }

    /// Withdraws the instance.
    func withdraw() {
        guard let old = shown else { return }
        shown = nil
        world.announce(Announcement(instance: old.instance, record: nil), from: index)
    }

    // MARK: Hearing

    /// Takes what comes from the network. A machine remembers it also while no node runs.
    func hear(_ announcement: Announcement) {
        let instance = announcement.instance
        let before = cache[instance]?.advertisement
        cache[instance] = announcement.record
        guard phase == .running else { return }
        guard let record = announcement.record else { return decidePeers { $0.remove(instance: instance) } }
        let isNews = before?.sequence != record.advertisement.sequence || before?.epoch != record.advertisement.epoch
        if isNews, !peers.rejected.contains(instance) { receive(record, of: instance) }
    }

    /// Reads again what was shown before: a node that starts reads all, and one with other keys what it had rejected.
    func hearAgain(_ instances: some Sequence<String>) {
        lastReading = world.time
        for instance in instances.sorted() {
            if let record = cache[instance] { receive(record, of: instance) }
        }
    }

    private func receive(_ record: HeardAdvertisement, of instance: String) {
        let (device, unixTime) = (record.device, UInt64(now.unixTime))
        guard device != id, lists.keys.contains(record.generation), !lists.isRevoked(device) else {
            return carryOut(peers.table.passOver(instance))
        }
        let isOutdated = record.generation.number < lists.number
        if isOutdated, !peers.table.isProved(device) {
            carryOut(peers.table.follow(instance))
            guard peers.sightings.admits(outdated: record.advertisement, unixTime: unixTime) else { return }
            let turns = peers.outdated.receive(
                record, instance: instance, interface: 1, now: now.instant, unixTime: unixTime)
            for device in turns { decideMembership { $0.hear(device.description, lacksLists: true) } }
            return
        }
        peers.outdated.remove(device)
        let freshness = peers.sightings.judge(record.advertisement, unixTime: unixTime)
        let (orders, lacksLists) = decidePeers {
            $0.hear(
                record, as: freshness, isOutdated: isOutdated, instance: instance, interface: 1, now: now.instant,
                unixTime: unixTime)
        }
        for order in orders { carryOut(order) }
        guard let lacksLists else { return }
        if record.generation != lists.generation || lists.isApart {
            decideMembership { $0.hear(device.description, lacksLists: lacksLists) }
        }
    }

    private func carryOut(_ order: PeerTable.Order) {
        switch order {
        case .keep(let instance), .follow(let instance): peers.rejected.remove(instance)
        case .reject(let instance):
            guard peers.rejected.insert(instance).inserted else { return }
            after(Self.rejection) { [unowned self] in
                if peers.rejected.remove(instance) != nil { hearAgain([instance]) }
            }
        }
    }

    /// A connection has shown that a device is of the account.
    func prove(_ device: DeviceID) {
        decidePeers { $0.prove(device) }
        disk.peers = peers.table.peers.values.map {
            Peer(device: $0.device, name: $0.name, seen: $0.seen, revision: $0.revision, isProved: $0.isProved)
        }
    }

    // MARK: The listing

    /// All that the user sees, in an order that does not change.
    var listing: [(device: DeviceID, item: Item)] {
        peers.answers.sorted { $0.key.number < $1.key.number }.flatMap { device, answer in
            answer.items.map { (device, $0) }
        }
    }

    var lines: [Peers.Line] { listing.map { Peers.Line(device: $0.device, item: $0.item) } }

    /// Tells a command that watches what has changed.
    private func tell() {
        for change in peers.told.change(to: lines) {
            switch change {
            case .removed(let line): peers.known[line.key] = nil
            case .added(let line), .updated(let line): peers.known[line.key] = line
            }
        }
    }

    /// Looks at what devices say, and asks those that offer more than they say.
    private func watch() {
        let present = peers.table.peers.values.filter(\.isPresent).sorted { $0.device.number < $1.device.number }
        peers.answers = peers.answers.filter { entry in present.contains { $0.device == entry.key } }
        tell()
        for peer in present where peers.answers[peer.device]?.news != peer.news {
            if peer.others > 0 { list(peer) } else { take(peer.advertised, of: peer) }
        }
    }

    private func list(_ peer: Peer) {
        let device = peer.device
        guard peers.asked.insert(device).inserted else { return }
        func end(_ answer: Answer?) {
            peers.asked.remove(device)
            guard let now = peers.table[device], now.isPresent else { return }
            if case .list(let items)? = answer {
                take(items, of: peer)
            } else {
                // It is asked again when any device says something new, or after a while.
                note("does not learn what \(peer.name) offers")
                let since = peers.answers[device]?.silentSince ?? world.time
                take(peer.advertised, of: peer)
                peers.answers[device]?.news = nil
                peers.answers[device]?.silentSince = since
                remind()
            }
            if now.news != peer.news { watch() }
        }
        connect(to: device, isWanted: false) { [unowned self] result in
            guard case .success(let wire) = result else { return end(nil) }
            ask(.list, on: wire, within: Self.listDeadline) { end(try? $0.get()) }
        }
    }

    private func remind() {
        guard !peers.isReminded else { return }
        peers.isReminded = true
        after(.seconds(30)) { [unowned self] in
            peers.isReminded = false
            watch()
        }
    }

    private func take(_ items: [Item], of peer: Peer) {
        peers.answers[peer.device] = .init(news: peer.news, items: items)
        tell()
        for item in items where peers.measured.insert(item.id).inserted {
            guard let time = world.ledger.offered[item.id] else { continue }
            world.statistics.listings.append((world.time - time) / .milliseconds(1))
        }
    }
}

extension Peer {
    fileprivate var advertised: [Item] { current.flatMap { Item($0) }.map { [$0] } ?? [] }
}

extension AdvertisedActivity {
    init(_ item: Item) {
        self.init(
            id: item.id.bytes, type: "", teamTag: [], version: UInt32(item.version),
            flags: item.isExclusive ? .exclusive : [], documentSize: UInt64(item.manner.pieces), title: item.name)
    }
}

extension Item {
    /// The part of an activity that an advertisement tells.
    init?(_ activity: AdvertisedActivity) {
        guard let number = ActivityID(activity.id)?.number else { return nil }
        let manner = Manner(
            isExclusive: activity.flags.contains(.exclusive), pieces: Int(activity.documentSize))
        self.init(
            device: Int(number >> 40), window: Int(number >> 32 & 0xff), generation: Int(number & 0xffff_ffff),
            manner: manner, expires: nil)
        version = Int(activity.version)
    }
}

extension DeviceID {
    /// The identity that a machine has when it joins the account, again with each time.
    init(machine: Int, joining: Int) {
        let bytes = [machine, joining, joining >> 8].map { UInt8(truncatingIfNeeded: $0) }
        self.init(digest: bytes + Array(repeating: 0, count: Self.count - bytes.count))
    }

    var machine: Int { Int(bytes[0]) }
    /// For an order.
    var number: Int { machine << 16 | Int(bytes[2]) << 8 | Int(bytes[1]) }
}
