import BatonAccount
import BatonApplications
import BatonDiscovery
import BatonDocuments
import BatonEventLoop
import BatonProtocol
import FoundationEssentials
import Logging

/// Keeps this device's sealed advertisement up to date.
///
/// Lives on the node's control loop. It renews at half the time to live, follows changes of the machine's addresses,
/// and seals afresh, under a new salt and a new instance name, in each rotation period.
actor Announcer {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    private let discovery: ServiceDiscovery
    private let offers: Offers
    private let gate: GateKeeper
    private let deviceName: String
    private let port: UInt16
    private let logger: Logger
    private var sealer: AdvertisementSealer
    private var renewal: BatonEventLoop.Timer?
    private var isStopped = false

    init(
        account: Account, epoch: UInt64, port: UInt16, gate: GateKeeper, offers: Offers,
        discovery: ServiceDiscovery, guards: AdvertisementGuards, on loop: EventLoop, logger: Logger
    ) {
        self.loop = loop
        self.discovery = discovery
        self.offers = offers
        self.port = port
        self.gate = gate
        self.logger = logger
        deviceName = account.deviceName
        sealer = AdvertisementSealer(
            identity: account.identity, keys: account.currentKeys, epoch: epoch, guards: guards)
        gate.beginPeriod(nonce: sealer.gateNonce, keys: sealer.keys)
    }

    /// Publishes what is true now.
    func publish(isWithdrawal: Bool = false) async {
        guard let txt = await seal() else { return }
        report { () throws(DiscoveryError) in try discovery.publish(txt: txt, isWithdrawal: isWithdrawal) }
        armRenewal()
    }

    /// Begins a new period: a new salt, gate nonce and instance name.
    func rotate() async {
        sealer.beginPeriod()
        gate.beginPeriod(nonce: sealer.gateNonce, keys: sealer.keys)
        guard let txt = await seal() else { return }
        report { () throws(DiscoveryError) in try discovery.rotate(txt: txt) }
        armRenewal()
    }

    /// Begins a new period under other keys: who does not have them finds nothing that it knew.
    func rotate(to keys: GenerationKeys) async {
        sealer.beginPeriod(with: keys)
        gate.beginPeriod(nonce: sealer.gateNonce, keys: sealer.keys)
        guard let txt = await seal() else { return }
        report { () throws(DiscoveryError) in try discovery.rotate(txt: txt) }
        armRenewal()
    }

    func stop() {
        isStopped = true
        renewal?.cancel()
    }

    private func seal() async -> [[UInt8]]? {
        guard !isStopped else { return nil }
        let current = await offers.current
        let content = AdvertisementContent(
            port: port, addresses: Self.ownAddresses(), deviceName: deviceName,
            current: current.map { AdvertisedActivity($0.activity) },
            otherActivities: UInt8(clamping: current?.others ?? 0))
        do {
            return try sealer.seal(content)
        } catch {
            logger.error("this device cannot be announced: \(error)")
            return nil
        }
    }

    private func report(_ publish: () throws(DiscoveryError) -> Void) {
        do {
            try publish()
        } catch {
            logger.error("this device cannot be announced: \(error)")
        }
    }

    private func armRenewal() {
        if renewal == nil {
            renewal = BatonEventLoop.Timer(on: loop) { [weak self] in
                guard let self else { return }
                Task { await self.publish() }
            }
        }
        renewal?.schedule(after: .seconds(Int(Advertisement.maximumTimeToLive) / 2))
    }

    /// Where this machine can be reached, the likeliest first.
    private static func ownAddresses() -> [NetworkAddress] {
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
    /// What others may know of an activity before a user accepts it.
    init(_ activity: OfferedActivity) {
        var flags = Flags()
        if !activity.webPageURL.isEmpty { flags.insert(.webPage) }
        if activity.supportsContinuationStreams { flags.insert(.streams) }
        if activity.document != nil { flags.insert(.document) }
        if activity.isExclusive { flags.insert(.exclusive) }
        let now = UInt64(Date().timeIntervalSince1970)
        self.init(
            id: activity.id.bytes, type: activity.type,
            teamTag: activity.teamTag.bytes, version: activity.version, flags: flags,
            documentSize: activity.document?.size ?? 0,
            age: UInt32(clamping: now - min(now, activity.since)), title: activity.title)
    }
}
