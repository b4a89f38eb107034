// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonCore
import BatonEventLoop
import BatonProtocol

/// A device of the account as its verified advertisements show it.
struct Peer: Sendable {
    let device: DeviceID
    var name: String
    var addresses: [SocketAddress]
    var gateNonce: [UInt8]
    /// The account's keys that its advertisement was sealed with.
    var keys: GenerationKeys
    var current: AdvertisedActivity?
    /// Activities beside the current one, or ``AdvertisementContent/uncountedActivities``.
    var others: Int
    /// Rises with each advertisement of it that counts: what it said before may be true no more.
    var news: UInt64 = 0
    /// Seconds since 1970, by this device's clock: when its last advertisement came.
    var seen: UInt64
    /// When its current activity became current, by this device's clock.
    var currentSince: UInt64
    /// The ``AccountState/revision`` that it is known to have.
    var revision: UInt64 = 0
    /// A connection has shown that it is a device of the account. An advertisement shows only that whoever made it has
    /// the account's keys.
    var isProved = false
    /// What it was called before, since it is proved.
    var formerNames = FormerNames()

    /// Instances that show its advertisement now; none when it has gone.
    fileprivate(set) var instances: Set<String> = []
    fileprivate(set) var interfaces: Set<UInt32> = []
    fileprivate var expiresAt: Instant

    /// It changes more often than it may announce: what it offers is known by asking it, whatever it has announced.
    var isUncounted: Bool { isPresent && others == Int(AdvertisementContent.uncountedActivities) }

    /// Whether it is announced now.
    var isPresent: Bool { !instances.isEmpty }
    var peerName: PeerName { PeerName(id: device.description, name: name) }
}

/// The devices that were seen: a pure value, told the time.
///
/// One entry a device, however many instances, interfaces and protocols show it.
struct PeerTable {
    /// Devices that are remembered; the one that was gone longest makes room. One that is proved does only where all
    /// are, and it is not announced: so whoever makes himself names pushes out one such device and then his own. 64
    /// entries are under 128 KiB.
    static var bound: Int { 64 }
    /// Devices that no connection has shown and that name the same address; one more takes the place of the one of them
    /// that has said least: whoever makes up ever new ones at his own address pushes out no other.
    static var boundUnprovedAtAddress: Int { 8 }
    static var undialled: Set<NetworkAddress.Scope> { [.invalid, .loopback] }

    private(set) var peers: [DeviceID: Peer] = [:]
    /// Devices that a connection has shown and that are not in the table: no advertisement of them has come yet, or
    /// they made room. The one that was shown last comes last; at most ``bound``, 32 bytes each.
    private var provedBeside: [DeviceID] = []
    private let undialled: Set<NetworkAddress.Scope>

    /// A table of devices that were known in an earlier run; none of them is present.
    ///
    /// - Parameter undialled: whose addresses are not dialled: those of no single host, and loopback ones of others,
    ///   which lead to this device.
    init(
        known: KnownDevices = KnownDevices(), keys: GenerationKeys,
        undialled: Set<NetworkAddress.Scope> = Self.undialled
    ) {
        self.undialled = undialled
        for entry in known.entries.prefix(Self.bound) {
            guard let device = DeviceID(entry.deviceID) else { continue }
            peers[device] = Peer(
                device: device, name: entry.name, addresses: [], gateNonce: [], keys: keys, others: 0,
                seen: entry.seen, currentSince: entry.seen, revision: entry.revision,
                isProved: entry.isProved ?? false, formerNames: entry.formerNames ?? FormerNames(),
                expiresAt: .init(nanoseconds: 0))
        }
    }

    /// What is worth remembering in the next run.
    var known: KnownDevices {
        KnownDevices(
            peers.values.map {
                KnownDevices.Entry(
                    deviceID: $0.device.description, name: $0.name, seen: $0.seen, revision: $0.revision,
                    isProved: $0.isProved, formerNames: $0.formerNames)
            })
    }

    var present: [Peer] {
        peers.values.filter(\.isPresent).sorted { $0.device.description < $1.device.description }
    }

    /// The keys that sealed what an instance has shown: of one device as a rule, and of all whose records were put
    /// there.
    func keys(shownBy instance: String) -> [GenerationKeys] {
        peers.values.filter { $0.instances.contains(instance) }.map(\.keys)
    }

    /// Whether a device would be gone without an instance.
    func isAllThatShowsADevice(_ instance: String) -> Bool { peers.values.contains { $0.instances == [instance] } }

    /// Takes an advertisement that was opened and is newer than all before, or is the one that still stands.
    ///
    /// - Parameters:
    ///   - interface: where it was seen; link-local addresses are dialled through it.
    ///   - isOutdated: its keys are of an older generation: it is taken for an idle device, whatever it offers.
    ///   - secondsLeft: how long it counts from now on; nil: for its whole time to live.
    ///   - unixTime: this device's clock, for people.
    mutating func receive(
        _ advertisement: Advertisement, keys: GenerationKeys, isOutdated: Bool = false, instance: String,
        interface: UInt32, now: Instant, lasting secondsLeft: UInt16? = nil, unixTime: UInt64
    ) {
        var content = advertisement.content
        if isOutdated { (content.current, content.otherActivities) = (nil, 0) }
        let known = peers[advertisement.device]
        var peer = Peer(
            device: advertisement.device, name: content.deviceName, addresses: [],
            gateNonce: advertisement.gateNonce, keys: keys, current: content.current,
            others: Int(content.otherActivities), seen: unixTime,
            currentSince: unixTime - min(unixTime, UInt64(content.current?.age ?? 0)),
            revision: known?.revision ?? 0, isProved: isProved(advertisement.device),
            expiresAt: now + .seconds(Int(secondsLeft ?? content.timeToLive)))
        peer.news = (known?.news ?? 0) + 1
        peer.formerNames = known?.formerNames ?? FormerNames()
        // Of what no connection has shown none is remembered: whoever has the account's keys can make it up.
        if let known, known.isProved, known.name != peer.name { peer.formerNames.add(known.name) }
        // The age is in whole seconds: the same activity keeps the time it was first seen with.
        if let known, let before = known.current, before.id == content.current?.id {
            peer.currentSince = known.currentSince
        }
        peer.instances = (known?.instances ?? []).union([instance])
        peer.interfaces = (known?.interfaces ?? []).union([interface])
        peer.addresses = Self.addresses(
            of: content.addresses, port: content.port, interfaces: peer.interfaces, undialled: undialled)
        guard known != nil || makeRoom(for: peer) else { return }
        peers[advertisement.device] = peer
        provedBeside.removeAll { $0 == advertisement.device }
    }

    /// The advertisement that counts was seen again: on another interface, under a second instance, or after it had
    /// gone, as it does with this machine's own network: then it says again what it said. When its time to live is
    /// over, it counts no more.
    ///
    /// - Parameter isOutdated: as in ``receive(_:keys:isOutdated:instance:interface:now:lasting:unixTime:)``.
    /// - Returns: whether the device had gone.
    mutating func receiveAgain(
        _ advertisement: Advertisement, isOutdated: Bool = false, instance: String, interface: UInt32, now: Instant
    ) -> Bool {
        guard var peer = peers[advertisement.device], peer.expiresAt > now else { return false }
        let hadGone = !peer.isPresent
        if hadGone, !isOutdated {
            peer.current = advertisement.content.current
            peer.others = Int(advertisement.content.otherActivities)
        }
        peer.instances.insert(instance)
        peer.interfaces.insert(interface)
        peer.addresses = Self.addresses(
            of: advertisement.content.addresses, port: advertisement.content.port, interfaces: peer.interfaces,
            undialled: undialled)
        peers[advertisement.device] = peer
        return hadGone
    }

    /// A device said which revocation lists it has.
    mutating func note(_ revision: UInt64, of device: DeviceID) {
        peers[device]?.revision = revision
    }

    /// A connection has shown that a device is of the account, be it before its first advertisement.
    mutating func prove(_ device: DeviceID) {
        guard peers[device] == nil else {
            peers[device]?.isProved = true
            return
        }
        provedBeside.removeAll { $0 == device }
        provedBeside.append(device)
        if provedBeside.count > Self.bound { provedBeside.removeFirst() }
    }

    /// Whether a connection has shown that a device is of the account.
    func isProved(_ device: DeviceID) -> Bool { peers[device]?.isProved ?? provedBeside.contains(device) }

    /// A device is of the account no more.
    mutating func remove(device: DeviceID) {
        peers[device] = nil
        provedBeside.removeAll { $0 == device }
    }

    /// Believes nothing more of who has shown keys of an older generation and nothing else. The name stays: the user is
    /// told whom no list has reached.
    mutating func distrustUnproved(before generation: UInt32) {
        for (device, peer) in peers where !peer.isProved && peer.keys.generation < generation { clear(device) }
    }

    /// An instance has gone.
    ///
    /// - Returns: whether a device has gone with it. One that another instance shows is there as before.
    @discardableResult
    mutating func remove(instance: String) -> Bool {
        var isNews = false
        for (device, peer) in peers where peer.instances.contains(instance) {
            peers[device]?.instances.remove(instance)
            guard peer.instances.count == 1 else { continue }
            clear(device)
            isNews = true
        }
        return isNews
    }

    /// Forgets what devices said whose time to live is over.
    mutating func expire(now: Instant) {
        for (device, peer) in peers where peer.isPresent && peer.expiresAt <= now { clear(device) }
    }

    /// When the next advertisement's time to live is over.
    var nextExpiry: Instant? {
        peers.values.filter(\.isPresent).map(\.expiresAt).min()
    }

    private mutating func clear(_ device: DeviceID) {
        peers[device]?.instances = []
        peers[device]?.interfaces = []
        peers[device]?.current = nil
        peers[device]?.others = 0
    }

    /// - Returns: whether there is room for a device that is not in the table yet.
    private mutating func makeRoom(for peer: Peer) -> Bool {
        if !peer.isProved {
            let hosts = Set(peer.addresses.compactMap(\.ipAddress))
            let neighbours = peers.values.filter { other in
                !other.isProved && other.addresses.contains { $0.ipAddress.map(hosts.contains) ?? false }
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

    /// Where to dial, the advertised order kept; a link-local address once for each interface that it was seen on.
    static func addresses(
        of addresses: [NetworkAddress], port: UInt16, interfaces: Set<UInt32>,
        undialled: Set<NetworkAddress.Scope> = Self.undialled
    ) -> [SocketAddress] {
        guard port >= Advertisement.minimumPort else { return [] }
        return addresses.flatMap { address -> [IPAddress] in
            guard !undialled.contains(address.scope), let ip = IPAddress(bytes: address.bytes) else { return [] }
            switch address.scope {
            case .linkLocal: return ip.isIPv4 ? [ip] : interfaces.sorted().map { ip.scoped(to: $0) }
            case .invalid, .loopback, .site, .global: return [ip]
            }
        }.map { .ip($0, port: port) }
    }
}
