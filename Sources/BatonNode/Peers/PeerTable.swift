// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonCore
package import BatonEventLoop
import BatonProtocol

typealias PeerTable = Peers<HeardAdvertisement>
typealias Peer = KnownPeer<HeardAdvertisement>

/// An advertisement that was opened and verified, and the account's keys that sealed it.
struct HeardAdvertisement: PeerRecord {
    typealias Device = DeviceID
    typealias Activity = AdvertisedActivity
    typealias Address = SocketAddress
    typealias Names = FormerNames

    /// Addresses that are never dialled: those of no single host, and loopback ones of others, which lead to this
    /// device.
    static let undialled: Set<NetworkAddress.Scope> = [.invalid, .loopback]

    let advertisement: Advertisement
    let keys: GenerationKeys
    var undialled = Self.undialled

    private var content: AdvertisementContent { advertisement.content }
    var device: DeviceID { advertisement.device }
    var name: String { content.deviceName }
    var generation: UInt32 { keys.generation }
    var current: AdvertisedActivity? { content.current }
    var age: UInt64 { UInt64(content.current?.age ?? 0) }
    /// Activities beside the current one, or ``AdvertisementContent/uncountedActivities``.
    var others: Int { Int(content.otherActivities) }
    var timeToLive: UInt16 { content.timeToLive }

    func addresses(over interfaces: Set<UInt32>) -> [SocketAddress] {
        PeerTable.addresses(of: content.addresses, port: content.port, interfaces: interfaces, undialled: undialled)
    }
}

extension AdvertisedActivity: Identifiable {}
extension FormerNames: NameHistory {}
extension SocketAddress: PeerAddress {
    package typealias Host = IPAddress

    package var host: IPAddress? { ipAddress }
}

extension Peer {
    /// It changes more often than it may announce: what it offers is known by asking it, whatever it has announced.
    var isUncounted: Bool { others == Int(AdvertisementContent.uncountedActivities) }

    /// Its gate, as its last advertisement shows it.
    var door: PeerDialer.Door? {
        record.map { PeerDialer.Door(device: device, keys: $0.keys, gateNonce: $0.advertisement.gateNonce) }
    }
}

extension PeerTable {
    /// A table of the devices of an earlier run.
    init(_ known: KnownDevices) {
        self.init(
            known: known.entries.compactMap { entry in
                DeviceID(entry.deviceID).map {
                    Peer(
                        device: $0, name: entry.name, seen: entry.seen, revision: entry.revision,
                        isProved: entry.isProved ?? false, formerNames: entry.formerNames ?? FormerNames())
                }
            })
    }

    /// The devices that are worth remembering in the next run.
    var known: KnownDevices {
        KnownDevices(
            peers.values.map {
                KnownDevices.Entry(
                    deviceID: $0.device.description, name: $0.name, seen: $0.seen, revision: $0.revision,
                    isProved: $0.isProved, formerNames: $0.formerNames)
            })
    }

    /// Where to dial, the advertised order kept; a link-local address once for each interface that it was seen on.
    static func addresses(
        of addresses: [NetworkAddress], port: UInt16, interfaces: Set<UInt32>,
        undialled: Set<NetworkAddress.Scope> = HeardAdvertisement.undialled
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

extension PeerTable.Freshness {
    init(_ verdict: ReplayGuard.Verdict) {
        self =
            switch verdict {
            case .accepted: .new(lasting: nil)
            case .standing(let secondsLeft): .new(lasting: secondsLeft)
            case .duplicate: .repeated
            case .expired: .expired
            case .replayed: .old
            }
    }
}
