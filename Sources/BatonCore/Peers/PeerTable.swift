// SPDX-License-Identifier: Apache-2.0

package import BatonProtocol

/// The other devices of the account: what their advertisements say, which of them are announced, and what the DNS-SD
/// instances that show them are worth. A value that is told the time.
///
/// A device has one entry, however many instances, interfaces and protocols show it.
package struct PeerTable: Sendable {
    /// The most devices, under 128 KiB. The one that was gone longest makes room. A proved one does so only if all are
    /// proved and it is not announced. A member of the account that invents devices pushes out one such device, and
    /// then its own.
    package static var bound: Int { 64 }
    /// Devices that no connection has proved and that name the same address. One more takes the place of the one of
    /// them that has said least: a member that invents devices at its own address pushes out no other.
    package static var boundUnprovedAtAddress: Int { 8 }

    /// An order to discovery about an instance.
    package enum Order: Sendable, Hashable {
        /// It is pinned: never forget it.
        case keep(String)
        /// Hear it, and forget it if there are too many.
        case follow(String)
        /// Do not hear it for a while.
        case reject(String)
    }

    package private(set) var peers: [DeviceID: Peer] = [:]
    /// Devices that a connection has proved and that are not in the table: no advertisement of them has come yet, or
    /// they made room. They are 32 bytes each.
    private var provedBeside: [DeviceID] = []
    private var pinned = PinnedInstances()
    /// Rises with each change of what watchers know.
    package private(set) var version: UInt64 = 0

    /// - Parameter known: devices of an earlier run; none of them is announced.
    package init(known: [Peer] = []) {
        for peer in known.prefix(Self.bound) { peers[peer.device] = peer }
    }

    package subscript(device: DeviceID) -> Peer? { peers[device] }

    /// The devices that are announced, always in the same order.
    package var present: [Peer] {
        peers.values.filter(\.isPresent).sorted { $0.device.description < $1.device.description }
    }

    // MARK: Advertisements

    /// Takes a verified advertisement.
    ///
    /// Only an instance that shows something newer is pinned, so that no clone is. An instance that may be a clone or
    /// the device itself is followed.
    ///
    /// - Parameters:
    ///   - isOutdated: whether its keys are of an older generation.
    ///   - interface: where it was seen; link-local addresses are dialled through it.
    ///   - unixTime: seconds since 1970, for people.
    /// - Returns: what to do with instances, and whether the device says by this that it lacks revocation lists; nil if
    ///   the record does not count.
    package mutating func hear(
        _ record: HeardAdvertisement, as freshness: Freshness, isOutdated: Bool, instance: String, interface: UInt32,
        now: Instant, unixTime: UInt64
    ) -> (orders: [Order], lacksLists: Bool?) {
        var orders: [Order] = []
        var lacksLists: Bool?
        switch freshness {
        case .accepted, .standing:
            lacksLists = isOutdated
            let lasting: UInt16? = if case .standing(let seconds) = freshness { seconds } else { nil }
            let displaced = pinned.add(instance, of: record.device, isProved: isProved)
            orders = (displaced.map { [.follow($0)] } ?? []) + [.keep(instance)]
            receive(
                record, isOutdated: isOutdated, instance: instance, interface: interface, now: now, lasting: lasting,
                unixTime: unixTime)
            // The device says so now, whatever it said before.
            if isOutdated { note(0, of: record.device) }
        case .duplicate:
            lacksLists = false
            // The responder may have been restarted, or an attacker removed the record and the device put it back.
            orders = [follow(instance)]
            receiveAgain(record, isOutdated: isOutdated, instance: instance, interface: interface, now: now)
        case .expired:
            orders = [follow(instance)]
        case .replayed:
            // An old record shows a clone. But some cache may show it under the device's own name, and anyone can put
            // it under the only name that shows a device.
            guard !pinned.contains(instance), !peers.values.contains(where: { $0.instances == [instance] }) else {
                orders = [follow(instance)]
                break
            }
            // While nothing shows the device, the name may be its own, and a cache has an old record of it.
            let isClone = peers[record.device]?.isPresent == true
            orders = [isClone ? .reject(instance) : .follow(instance)]
            remove(instance: instance)
        }
        return (orders, lacksLists)
    }

    /// An instance shows a record that does not count. It goes on being heard if it has shown a device, since anybody
    /// can put a bad record under its name, and take the good one away before.
    package func passOver(_ instance: String) -> Order {
        records(shownBy: instance).isEmpty ? .reject(instance) : follow(instance)
    }

    /// An instance shows a device that may be dialled, and nothing that counts. It stays pinned if it was.
    package func follow(_ instance: String) -> Order {
        pinned.contains(instance) ? .keep(instance) : .follow(instance)
    }

    /// The advertisements that an instance has shown: of one device as a rule. A device that sleeps, or whose record
    /// somebody took away, is known by the pinned instance.
    package func records(shownBy instance: String) -> [HeardAdvertisement] {
        let shown = peers.values.filter { $0.instances.contains(instance) }.compactMap(\.record)
        let gone = pinned.device(of: instance).flatMap { peers[$0]?.record }
        return shown.isEmpty ? gone.map { [$0] } ?? [] : shown
    }

    /// Takes an advertisement that is newer than all before, or still stands. The parameters are those of
    /// ``hear(_:as:isOutdated:instance:interface:now:unixTime:)``.
    package mutating func receive(
        _ record: HeardAdvertisement, isOutdated: Bool = false, instance: String, interface: UInt32, now: Instant,
        lasting seconds: UInt16? = nil, unixTime: UInt64
    ) {
        let (known, content) = (peers[record.device], record.content)
        var peer = known ?? Peer(device: record.device, name: content.deviceName, seen: unixTime)
        peer.isProved = isProved(record.device)
        // The names of a device that no connection has proved are not remembered: a member of the account can make
        // them up.
        if known?.isProved == true, peer.name != content.deviceName { peer.formerNames.add(peer.name) }
        peer.name = content.deviceName
        peer.seen = unixTime
        peer.news += 1
        // The age is in whole seconds: the same activity keeps the time it was first seen with.
        let before = peer.current?.id
        (peer.record, peer.isOutdated) = (record, isOutdated)
        peer.end = now + .seconds(Int(seconds ?? content.timeToLive))
        peer.see(instance, over: interface)
        if before == nil || before != peer.current?.id {
            peer.currentSince = unixTime - min(unixTime, UInt64(peer.current?.age ?? 0))
        }
        guard known != nil || makeRoom(for: peer) else { return }
        peers[record.device] = peer
        provedBeside.removeAll { $0 == record.device }
        version += 1
    }

    /// The advertisement that counts was seen again: elsewhere, or after it had gone, as with this machine's network.
    /// It counts for no longer than before.
    package mutating func receiveAgain(
        _ record: HeardAdvertisement, isOutdated: Bool = false, instance: String, interface: UInt32, now: Instant
    ) {
        guard var peer = peers[record.device], peer.end > now else { return }
        if !peer.isPresent {
            peer.isOutdated = isOutdated
            version += 1
        }
        peer.see(instance, over: interface)
        peers[record.device] = peer
    }

    /// An instance has gone. A device goes with its last one.
    package mutating func remove(instance: String) {
        for var peer in peers.values where peer.instances.contains(instance) {
            peer.instances.remove(instance)
            if !peer.isPresent { version += 1 }
            peers[peer.device] = peer
        }
    }

    // MARK: Time

    /// Forgets what devices said whose time to live is over.
    package mutating func expire(now: Instant) { clear { $0.end <= now } }

    /// When the next advertisement's time to live is over.
    package var nextExpiry: Instant? { peers.values.filter(\.isPresent).map(\.end).min() }

    // MARK: Membership

    /// A device said which revision of the account's state it has.
    package mutating func note(_ revision: UInt64, of device: DeviceID) { peers[device]?.revision = revision }

    /// A connection has proved that a device is of the account, perhaps before its first advertisement.
    package mutating func prove(_ device: DeviceID) {
        if peers[device] == nil { provedBeside = (provedBeside.filter { $0 != device } + [device]).suffix(Self.bound) }
        if peers[device]?.isProved == false { version += 1 }
        peers[device]?.isProved = true
    }

    /// Whether a connection has proved that a device is of the account.
    package func isProved(_ device: DeviceID) -> Bool { peers[device]?.isProved ?? provedBeside.contains(device) }

    /// Forgets a device, which may have been revoked.
    package mutating func remove(device: DeviceID) {
        if peers[device] != nil { version += 1 }
        peers[device] = nil
        provedBeside.removeAll { $0 == device }
    }

    /// Believes nothing more of unproved devices that have shown only keys of an older generation. The name stays: the
    /// user is told which devices no list has reached.
    package mutating func distrustUnproved(before generation: UInt32) {
        clear { !$0.isProved && $0.record.map { $0.generation.number < generation } ?? true }
    }

    private mutating func clear(where isOver: (Peer) -> Bool) {
        for var peer in peers.values where peer.isPresent && isOver(peer) {
            peer.instances = []
            peers[peer.device] = peer
            version += 1
        }
    }

    /// - Returns: whether there is room for a device that is not in the table yet.
    private mutating func makeRoom(for peer: Peer) -> Bool {
        if !peer.isProved {
            let places = peer.record?.dialled ?? []
            let neighbours = peers.values.filter { other in
                !other.isProved && other.record.map { !$0.dialled.isDisjoint(with: places) } ?? false
            }
            if neighbours.count >= Self.boundUnprovedAtAddress,
                let briefest = neighbours.min(by: { ($0.news, $0.seen) < ($1.news, $1.seen) })
            {
                peers[briefest.device] = nil
            }
        }
        guard peers.count >= Self.bound else { return true }
        let longestGone = peers.values.filter { !$0.isProved || !$0.isPresent }.min { left, right in
            (left.isProved ? 1 : 0, left.isPresent ? 1 : 0, left.seen)
                < (right.isProved ? 1 : 0, right.isPresent ? 1 : 0, right.seen)
        }
        guard let longestGone else { return false }
        peers[longestGone.device] = nil
        if longestGone.isProved { prove(longestGone.device) }
        return true
    }
}
