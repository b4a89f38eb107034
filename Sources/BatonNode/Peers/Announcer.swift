// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonApplications
import BatonCore
import BatonDiscovery
import BatonDocuments
import BatonEventLoop
import BatonMessages
import BatonProtocol
import FoundationEssentials
import Logging

/// Keeps this device's sealed advertisement up to date.
///
/// It renews at half the time to live, and follows changes of the machine's addresses. In each rotation period it seals
/// afresh, with a new salt, a new instance name and a new port.
@ControlLoop
final class Announcer {
    private let discovery: ServiceDiscovery
    private let offers: Offers
    private let gate: GateKeeper
    private let account: CurrentAccount
    private let listeners: PeerListeners
    private let logger: Logger
    private var sealer: AdvertisementSealer
    /// The activities that others were told of last, or may ask for since.
    private var told: Set<ActivityID> = []
    private var renewal: BatonEventLoop.Timer?
    private var isStopped = false

    nonisolated init(
        account: CurrentAccount, epoch: UInt64, listeners: PeerListeners, gate: GateKeeper, offers: Offers,
        discovery: ServiceDiscovery, logger: Logger
    ) {
        self.discovery = discovery
        self.offers = offers
        self.listeners = listeners
        self.gate = gate
        self.logger = logger
        self.account = account
        let account = account.value
        sealer = AdvertisementSealer(identity: account.identity, keys: account.currentKeys, epoch: epoch)
        gate.beginPeriod(nonce: sealer.gateNonce, keys: sealer.keys)
    }

    /// The nonce of the present advertisement, for the tokens of devices that connect to this one.
    var gateNonce: [UInt8] { sealer.gateNonce }

    /// Publishes what is true now, as a withdrawal where others were told of something that is offered no more, whether
    /// or not something else has taken its place.
    ///
    /// - Parameter isRenewal: whether nothing has changed, so that nobody waits for it.
    func publish(isRenewal: Bool = false) {
        let before = told
        announce { record, rationed in
            let isWithdrawal = !before.isSubset(of: told)
            discovery.publish(
                txt: record, whenRationed: rationed,
                as: isWithdrawal ? .withdrawal : isRenewal ? .renewal : .update)
        }
    }

    /// Begins a new period: a new salt, gate nonce, port and instance name.
    func rotate() {
        announceAnew { $0.beginPeriod() }
    }

    /// Begins a new period under other keys: who does not have them finds nothing that it knew.
    func rotate(to keys: GenerationKeys) {
        announceAnew { $0.beginPeriod(with: keys) }
    }

    private func announceAnew(_ begin: (inout AdvertisementSealer) -> Void) {
        guard !isStopped else { return }
        begin(&sealer)
        gate.beginPeriod(nonce: sealer.gateNonce, keys: sealer.keys)
        listeners.beginPeriod(at: Self.ownNetworkAddresses())
        announce { record, rationed in discovery.rotate(txt: record, whenRationed: rationed) }
    }

    func stop() {
        isStopped = true
        renewal?.cancel()
    }

    /// Seals what is offered, in the period that has begun, and hands the record over. Nothing may be awaited
    /// meanwhile: after a rotation the record would show its salt under the name of another period.
    ///
    /// - Parameter publish: gets the record, and the one for when the next change will have to wait: others are to ask
    ///   then.
    private func announce(_ publish: ([[UInt8]], [[UInt8]]) -> Void) {
        guard !isStopped else { return }
        let visible = offers.visible
        told = Set(visible.map(\.id))
        var content = AdvertisementContent(
            port: listeners.port, addresses: Self.ownAddresses(), deviceName: account.value.deviceName,
            current: visible.last.map { AdvertisedActivity($0) },
            otherActivities: UInt8(clamping: visible.dropLast().count))
        content.timeToLive = content.maximumTimeToLive
        do {
            let record = try sealer.seal(content)
            content.otherActivities = AdvertisementContent.uncountedActivities
            publish(record, try sealer.seal(content))
        } catch {
            return logger.error("this device cannot be announced: \(error)")
        }
        if renewal == nil {
            renewal = BatonEventLoop.Timer { [weak self] in self?.publish(isRenewal: true) }
        }
        renewal?.schedule(after: .seconds(Int(content.timeToLive / 2)))
    }

    /// Where this machine can be reached, but for addresses of a link, which are the same in every network.
    nonisolated static func ownNetworkAddresses() -> Set<NetworkAddress> {
        Set(ownAddresses().filter { $0.scope != .linkLocal })
    }

    /// Where this machine can be reached, the likeliest first.
    nonisolated static func ownAddresses() -> [NetworkAddress] {
        let all = (try? InterfaceAddress.current()) ?? []
        let addresses = all.compactMap { NetworkAddress(bytes: $0.address.bytes) }
        func rank(_ address: NetworkAddress) -> Int {
            switch address.scope {
            case .site: 0
            case .global: 1
            case .linkLocal: 2
            case .loopback: 3
            case .invalid: 4
            }
        }
        return addresses.filter { $0.scope != .loopback && $0.scope != .invalid }
            .sorted { (rank($0), $0.bytes.count) < (rank($1), $1.bytes.count) }
    }
}

extension AdvertisedActivity {
    /// The part of an activity that others may know before a user accepts it.
    init(_ activity: OfferedActivity) {
        var flags = Flags()
        if activity.hasWebPage_p { flags.insert(.webPage) }
        if activity.supportsContinuationStreams { flags.insert(.streams) }
        if activity.document != nil { flags.insert(.document) }
        if activity.isExclusive { flags.insert(.exclusive) }
        let now = UInt64(Date().timeIntervalSince1970)
        self.init(
            id: activity.id.bytes, type: activity.type,
            teamTag: [UInt8](activity.teamTag), version: activity.version, flags: flags,
            documentSize: activity.document?.size ?? 0,
            age: UInt32(clamping: now - min(now, activity.since)), title: activity.title)
    }
}
