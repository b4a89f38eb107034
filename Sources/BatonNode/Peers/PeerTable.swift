// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonCore
import BatonEventLoop
import BatonProtocol

extension Peer {
    /// Where to dial, the advertised order kept; a link-local address once for each interface that it was seen on.
    var addresses: [SocketAddress] {
        guard let record else { return [] }
        return SocketAddress.dialled(
            of: record.content.addresses, port: record.content.port, interfaces: lastInterfaces,
            undialled: record.undialled)
    }

    /// Its gate, as its last advertisement shows it; nil if the account has the keys no more.
    func door(in account: Account) -> PeerDialer.Door? {
        guard let record, let keys = account.keys.first(where: { $0.id == record.generation }) else { return nil }
        return PeerDialer.Door(device: device, keys: keys, gateNonce: record.advertisement.gateNonce)
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
}

extension SocketAddress {
    /// Where to dial, the advertised order kept; a link-local address once for each interface that it was seen on.
    static func dialled(
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
