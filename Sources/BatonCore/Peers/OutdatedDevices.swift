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
        case waiting(Peer, end: Instant)
        case turn(Peer, since: Instant)
        /// Only the turn that it had is remembered.
        case gone

        /// A device that has its turn.
        var turn: Peer? { if case .turn(let peer, _) = self { peer } else { nil } }
        var peer: Peer? {
            switch self {
            case .waiting(let peer, _), .turn(let peer, _): peer
            case .gone: nil
            }
        }
    }

    /// In the order of their turns: new devices as they came, then those that had one, as it began.
    private var line: [(device: DeviceID, state: State, isServed: Bool)] = []

    package init() {}

    /// A device that has its turn.
    package subscript(device: DeviceID) -> Peer? { line.first { $0.device == device }?.state.turn }

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
        let before = place.flatMap { line[$0].state.peer }
        var turns: [DeviceID] = []
        // Somebody else may send again what a device said before.
        if !(before?.record.map { record.advertisement.isOlder(than: $0.advertisement) } ?? false) {
            var peer = before ?? Peer(device: device, name: "", seen: unixTime)
            peer.name = record.content.deviceName
            (peer.record, peer.isOutdated) = (record, true)
            peer.instances = [instance]
            peer.lastInterfaces.insert(interface)
            if let place, case .turn(_, let since) = line[place].state {
                line[place].state = .turn(peer, since: since)
                turns.append(device)
            } else {
                let state = State.waiting(peer, end: now + .seconds(Int(record.content.timeToLive)))
                if let place, before != nil { line[place].state = state } else { lineUp(peer, as: state, at: place) }
            }
        }
        while line.count(where: { $0.state.turn != nil }) < Self.bound, let (place, peer) = waiting.first {
            line.remove(at: place)
            line.append((peer.device, .turn(peer, since: now), isServed: true))
            turns.append(peer.device)
        }
        if line.count(where: \.isServed) > Self.servedBound, let first = firstServed { line[first].isServed = false }
        return turns
    }

    /// It is known by now, or of the account no more.
    package mutating func remove(_ device: DeviceID) {
        for place in line.indices where line[place].device == device { line[place].state = .gone }
    }

    private var firstServed: Int? { line.firstIndex(where: \.isServed) }

    private var waiting: [(place: Int, peer: Peer)] {
        line.enumerated().compactMap { if case .waiting(let peer, _) = $1.state { ($0, peer) } else { nil } }
    }

    /// Ends the turns that are over, and forgets what counts no longer.
    private mutating func expire(at now: Instant) {
        for place in line.indices {
            switch line[place].state {
            case .turn(_, let since) where now - since >= Self.turn: line[place].state = .gone
            case .waiting(_, let end) where end <= now: line[place].state = .gone
            case .waiting, .turn, .gone: break
            }
        }
        line.removeAll { if case .gone = $0.state { !$0.isServed } else { false } }
    }

    /// Takes a device into the line. If there is no room it takes the place of the one whose turn was last, unless its
    /// own turn was later. So nobody keeps the line full of devices of their own.
    ///
    /// - Parameter place: of a device that had a turn.
    private mutating func lineUp(_ peer: Peer, as state: State, at place: Int?) {
        let newPlace = place ?? firstServed ?? line.endIndex
        func addresses(_ peer: Peer) -> Set<NetworkAddress> { Set(peer.record?.content.addresses ?? []) }
        let neighbours = waiting.filter { !addresses($0.peer).isDisjoint(with: addresses(peer)) }
        let isShareFull = neighbours.count >= Self.waitingBoundAtAddress
        if isShareFull || waiting.count >= Self.waitingBound {
            guard let last = (isShareFull ? neighbours : waiting).last?.place, last >= newPlace else { return }
            line[last].state = .gone
        }
        if place == nil { line.insert((peer.device, state, isServed: false), at: newPlace) }
        line[newPlace].state = state
    }
}

extension Advertisement {
    fileprivate func isOlder(than other: Advertisement) -> Bool {
        (epoch, sequence) < (other.epoch, other.sequence)
    }
}
