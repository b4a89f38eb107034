// SPDX-License-Identifier: Apache-2.0

package import BatonProtocol

/// Unknown devices that seal with keys of an older generation, and the order in which they get a turn: a value, told
/// the time.
///
/// Such a device may have slept through a revocation, or it may be a revoked device under a new identity. Only the
/// certificate of a connection tells which. So what it says counts for nothing but the dial that lets it catch up, and
/// few have their turn at a time. They are not listed, not remembered, and take nobody's place. A device that had no
/// turn goes before one that had: the identities of an attacker do not take turns with each other alone.
package struct OutdatedDevices {
    /// Devices that may be dialled at a time.
    package static var bound: Int { 4 }
    /// How long each has for it before another may.
    package static var turn: Duration { .seconds(20) }
    /// Devices that wait; under 64 KiB.
    package static var waitingBound: Int { 32 }
    /// Devices that wait and name the same address. So an attacker who invents devices at one address keeps no other
    /// device from the line.
    package static var waitingBoundAtAddress: Int { 4 }
    /// Devices that had a turn and are remembered for that, under 100 bytes each; the oldest is forgotten first.
    package static var servedBound: Int { 256 }

    private struct Entry {
        let device: DeviceID
        /// Nil if only the turn that it had is remembered.
        var peer: Peer?
        /// When its turn began; nil if it waits.
        var turn: Instant?
        /// While it waits, its advertisement counts until then.
        var end: Instant
        var isServed = false

        var isWaiting: Bool { peer != nil && turn == nil }

        mutating func clear() { (peer, turn) = (nil, nil) }
    }

    /// In the order of their turns: new devices as they came, then those that had one, as it began.
    private var line: [Entry] = []

    package init() {}

    /// A device that has its turn.
    package subscript(device: DeviceID) -> Peer? { line.first { $0.device == device && $0.turn != nil }?.peer }

    /// Takes an advertisement that was opened with older keys.
    ///
    /// - Returns: the devices that may be dialled by that: this one, while it has its turn, and those whose turn
    ///   begins.
    package mutating func receive(
        _ record: HeardAdvertisement, instance: String, interface: UInt32, now: Instant, unixTime: UInt64
    ) -> [DeviceID] {
        expire(at: now)
        let device = record.device
        let place = line.firstIndex { $0.device == device }
        let before = place.flatMap { line[$0].peer }
        var turns: [DeviceID] = []
        // Somebody else may send again what a device said before.
        if !(before?.record.map { record.advertisement.isOlder(than: $0.advertisement) } ?? false) {
            var peer = before ?? Peer(device: device, name: "", seen: unixTime)
            peer.name = record.content.deviceName
            (peer.record, peer.isOutdated) = (record, true)
            peer.instances = [instance]
            peer.lastInterfaces.insert(interface)
            let end = now + .seconds(Int(record.content.timeToLive))
            if let place, before != nil {
                (line[place].peer, line[place].end) = (peer, end)
                if line[place].turn != nil { turns.append(device) }
            } else {
                lineUp(peer, until: end, at: place)
            }
        }
        while line.count(where: { $0.turn != nil }) < Self.bound, let place = waiting.first {
            var next = line.remove(at: place)
            (next.turn, next.isServed) = (now, true)
            line.append(next)
            turns.append(next.device)
        }
        if line.count(where: \.isServed) > Self.servedBound, let first = firstServed { line[first].isServed = false }
        return turns
    }

    /// It is known by now, or of the account no more.
    package mutating func remove(_ device: DeviceID) {
        for place in line.indices where line[place].device == device { line[place].clear() }
    }

    private var firstServed: Int? { line.firstIndex(where: \.isServed) }

    private var waiting: [Int] { line.indices.filter { line[$0].isWaiting } }

    /// Ends the turns that are over, and forgets what counts no longer.
    private mutating func expire(at now: Instant) {
        for place in line.indices where (line[place].turn.map { $0 + Self.turn } ?? line[place].end) <= now {
            line[place].clear()
        }
        line.removeAll { $0.peer == nil && !$0.isServed }
    }

    /// Takes a device into the line. If there is no room it takes the place of the one whose turn was last, unless its
    /// own turn was later. So nobody keeps the line full of devices of their own.
    ///
    /// - Parameter place: of a device that had a turn.
    private mutating func lineUp(_ peer: Peer, until end: Instant, at place: Int?) {
        let newPlace = place ?? firstServed ?? line.endIndex
        func addresses(_ peer: Peer?) -> Set<NetworkAddress> { Set(peer?.record?.content.addresses ?? []) }
        let neighbours = waiting.filter { !addresses(line[$0].peer).isDisjoint(with: addresses(peer)) }
        let isShareFull = neighbours.count >= Self.waitingBoundAtAddress
        if isShareFull || waiting.count >= Self.waitingBound {
            guard let last = (isShareFull ? neighbours : waiting).last, last >= newPlace else { return }
            line[last].clear()
        }
        if place == nil { line.insert(Entry(device: peer.device, end: end), at: newPlace) }
        (line[newPlace].peer, line[newPlace].end) = (peer, end)
    }
}

extension Advertisement {
    fileprivate func isOlder(than other: Advertisement) -> Bool {
        (epoch, sequence) < (other.epoch, other.sequence)
    }
}
