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

    private enum State {
        /// Its advertisement counts until the end.
        case waiting(Advertisement, end: Instant)
        case turn(Advertisement, since: Instant)
        /// Only the turn that it had is remembered.
        case gone

        var isTurn: Bool { if case .turn = self { true } else { false } }
    }

    /// The devices of the line, as they can be dialled.
    private var table = PeerTable()
    /// In the order of their turns: new devices as they came, then those that had one, as it began.
    private var line: [(device: DeviceID, state: State, isServed: Bool)] = []

    package init() {}

    /// A device that has its turn.
    package subscript(device: DeviceID) -> Peer? {
        line.contains { $0.device == device && $0.state.isTurn } ? table.peers[device] : nil
    }

    /// Takes an advertisement that was opened with older keys.
    ///
    /// - Returns: the devices that may be dialled by that: this one, while it has its turn, and those whose turn
    ///   begins.
    package mutating func receive(
        _ record: HeardAdvertisement, instance: String, interface: UInt32, now: Instant, unixTime: UInt64
    ) -> [DeviceID] {
        expire(at: now)
        let advertisement = record.advertisement
        let device = advertisement.device
        let end = now + .seconds(Int(advertisement.content.timeToLive))
        let place = line.firstIndex { $0.device == device }
        var turns: [DeviceID] = []
        var counts = true
        switch place.map({ ($0, line[$0].state) }) {
        // Somebody else may send again what a device said before.
        case (_, .turn(let last, _))? where advertisement.isOlder(than: last),
            (_, .waiting(let last, _))? where advertisement.isOlder(than: last):
            counts = false
        case (let place, .turn(_, let since))?:
            line[place].state = .turn(advertisement, since: since)
            turns.append(device)
        case (let place, .waiting)?: line[place].state = .waiting(advertisement, end: end)
        case (_, .gone)?, nil: counts = lineUp(advertisement, until: end, at: place)
        }
        if counts {
            table.receive(
                record, isOutdated: true, instance: instance, interface: interface, now: now, unixTime: unixTime)
        }
        while line.count(where: \.state.isTurn) < Self.bound, let next = waiting.first {
            let device = line.remove(at: next.place).device
            line.append((device, .turn(next.advertisement, since: now), isServed: true))
            turns.append(device)
        }
        if line.count(where: \.isServed) > Self.servedBound, let first = firstServed { line[first].isServed = false }
        return turns
    }

    /// It is known by now, or of the account no more.
    package mutating func remove(_ device: DeviceID) {
        for place in line.indices where line[place].device == device { leave(place) }
    }

    private mutating func leave(_ place: Int) {
        line[place].state = .gone
        table.remove(device: line[place].device)
    }

    private var firstServed: Int? { line.firstIndex(where: \.isServed) }

    private var waiting: [(place: Int, advertisement: Advertisement)] {
        line.enumerated().compactMap { if case .waiting(let said, _) = $1.state { ($0, said) } else { nil } }
    }

    /// Ends the turns that are over, and forgets what counts no longer.
    private mutating func expire(at now: Instant) {
        for place in line.indices {
            switch line[place].state {
            case .turn(_, let since) where now - since >= Self.turn: leave(place)
            case .waiting(_, let end) where end <= now: leave(place)
            case .waiting, .turn, .gone: break
            }
        }
        line.removeAll { if case .gone = $0.state { !$0.isServed } else { false } }
    }

    /// Takes a device into the line. If there is no room it takes the place of the one whose turn was last, unless its
    /// own turn was later. So nobody keeps the line full of devices of their own.
    ///
    /// - Parameter place: of a device that had a turn.
    /// - Returns: whether it is in the line.
    private mutating func lineUp(_ advertisement: Advertisement, until end: Instant, at place: Int?) -> Bool {
        let newPlace = place ?? firstServed ?? line.endIndex
        let addresses = advertisement.content.addresses
        let neighbours = waiting.filter { $0.advertisement.content.addresses.contains(where: addresses.contains) }
        let isShareFull = neighbours.count >= Self.waitingBoundAtAddress
        if isShareFull || waiting.count >= Self.waitingBound {
            guard let last = (isShareFull ? neighbours : waiting).last?.place, last >= newPlace else { return false }
            leave(last)
        }
        if place == nil { line.insert((advertisement.device, .gone, isServed: false), at: newPlace) }
        line[newPlace].state = .waiting(advertisement, end: end)
        return true
    }
}

extension Advertisement {
    fileprivate func isOlder(than other: Advertisement) -> Bool {
        (epoch, sequence) < (other.epoch, other.sequence)
    }
}
