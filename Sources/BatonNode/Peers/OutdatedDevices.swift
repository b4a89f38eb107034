// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonProtocol

/// Unknown devices that seal with keys of an older generation, and the order in which they get a turn: a value, told
/// the time.
///
/// Such a device may have slept through a revocation, or it may be a revoked device under a new identity. Only the
/// certificate of a connection tells which. So what it says counts for nothing but the dial that lets it catch up, and
/// few have their turn at a time. They are not listed, not remembered, and take nobody's place. A device that had no
/// turn goes before one that had: the identities of an attacker do not take turns with each other alone.
struct OutdatedDevices {
    /// Devices that may be dialled at a time.
    static var bound: Int { 4 }
    /// How long each has for it before another may.
    static var turn: Duration { .seconds(20) }
    /// Devices that wait; under 64 KiB.
    static var waitingBound: Int { 32 }
    /// Devices that wait and name the same address. So an attacker who invents devices at one address keeps no other
    /// device from the line.
    static var waitingBoundAtAddress: Int { 4 }
    /// Devices that had a turn and are remembered for that, under 100 bytes each; the oldest is forgotten first.
    static var servedBound: Int { 256 }

    /// The last advertisement that was heard of a device.
    private struct Heard {
        let advertisement: Advertisement
        let keys: GenerationKeys
        let instance: String
        let interface: UInt32
        let at: Instant
        let unixTime: UInt64

        func sharesAddress(with other: Heard) -> Bool {
            advertisement.content.addresses.contains(where: other.advertisement.content.addresses.contains)
        }

        /// Whether it is older than another: somebody else has sent it again.
        func isOlder(than other: Heard) -> Bool {
            let (own, others) = (advertisement, other.advertisement)
            return (own.epoch, own.sequence) < (others.epoch, others.sequence)
        }

        /// When it counts no longer.
        var end: Instant { at + .seconds(Int(advertisement.content.timeToLive)) }
    }

    private enum State {
        case waiting(Heard)
        case turn(Heard, since: Instant)
        /// Only the turn that it had is remembered.
        case gone
    }

    private var table: PeerTable
    /// In the order of their turns: new devices as they came, then those that had one, as it began.
    private var line: [(device: DeviceID, state: State, isServed: Bool)] = []

    init(keys: GenerationKeys) {
        table = PeerTable(keys: keys)
    }

    subscript(device: DeviceID) -> Peer? { table.peers[device] }

    /// Takes an advertisement that was opened with older keys.
    ///
    /// - Returns: the devices that may be dialled by that: this one, while it has its turn, and those whose turn
    ///   begins.
    mutating func receive(
        _ advertisement: Advertisement, keys: GenerationKeys, instance: String, interface: UInt32, now: Instant,
        unixTime: UInt64
    ) -> [DeviceID] {
        expire(at: now)
        let heard = Heard(
            advertisement: advertisement, keys: keys, instance: instance, interface: interface, at: now,
            unixTime: unixTime)
        var shown: [Heard] = []
        let place = line.firstIndex { $0.device == advertisement.device }
        switch place.map({ ($0, line[$0].state) }) {
        case (let place, .turn(let last, let since))?:
            guard !heard.isOlder(than: last) else { break }
            line[place].state = .turn(heard, since: since)
            shown.append(heard)
        case (let place, .waiting(let last))?:
            if !heard.isOlder(than: last) { line[place].state = .waiting(heard) }
        case (_, .gone)?, nil:
            lineUp(heard, at: place)
        }
        while line.count(where: { if case .turn = $0.state { true } else { false } }) < Self.bound,
            let next = waiting.first
        {
            line.remove(at: next.place)
            line.append((next.heard.advertisement.device, .turn(next.heard, since: now), isServed: true))
            shown.append(next.heard)
        }
        if line.count(where: \.isServed) > Self.servedBound, let first = firstServed { line[first].isServed = false }
        for heard in shown {
            table.receive(
                heard.advertisement, keys: heard.keys, isOutdated: true, instance: heard.instance,
                interface: heard.interface, now: heard.at, unixTime: heard.unixTime)
        }
        return shown.map(\.advertisement.device)
    }

    /// It is known by now, or of the account no more.
    mutating func remove(_ device: DeviceID) {
        for place in line.indices where line[place].device == device { line[place].state = .gone }
        table.remove(device: device)
    }

    private var firstServed: Int? { line.firstIndex(where: \.isServed) }

    private var waiting: [(place: Int, heard: Heard)] {
        line.enumerated().compactMap { if case .waiting(let heard) = $1.state { ($0, heard) } else { nil } }
    }

    /// Ends the turns that are over, and forgets what counts no longer.
    private mutating func expire(at now: Instant) {
        for place in line.indices {
            switch line[place].state {
            case .turn(_, let since) where now - since >= Self.turn: remove(line[place].device)
            case .waiting(let heard) where heard.end <= now: line[place].state = .gone
            case .waiting, .turn, .gone: break
            }
        }
        line.removeAll { if case .gone = $0.state { !$0.isServed } else { false } }
    }

    /// Takes a device into the line. If there is no room it takes the place of the one whose turn was last, unless its
    /// own turn was later. So nobody keeps the line full of devices of their own.
    ///
    /// - Parameter place: of a device that had a turn.
    private mutating func lineUp(_ heard: Heard, at place: Int?) {
        let newPlace = place ?? firstServed ?? line.endIndex
        let neighbours = waiting.filter { $0.heard.sharesAddress(with: heard) }
        let isShareFull = neighbours.count >= Self.waitingBoundAtAddress
        if isShareFull || waiting.count >= Self.waitingBound {
            guard let last = (isShareFull ? neighbours : waiting).last, last.place >= newPlace else { return }
            line[last.place].state = .gone
        }
        if let place {
            line[place].state = .waiting(heard)
        } else {
            line.insert((heard.advertisement.device, .waiting(heard), isServed: false), at: newPlace)
        }
    }
}
