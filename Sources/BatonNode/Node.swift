// SPDX-License-Identifier: Apache-2.0

package import BatonAccount
import BatonCore
import BatonDiscovery
import BatonDocuments
import BatonEventLoop
import BatonMessages
import BatonProtocol
import BatonTLS
package import BatonTransport
import BatonWeb
import FoundationEssentials
package import Logging

package import struct SystemPackage.FilePath

/// The process that runs on each device: announces, finds, serves and accepts. One per user.
///
/// ``start()`` brings every part up or throws; ``stop()`` takes them down in order: withdraw, unregister, finish
/// what is being written.
///
/// Every part lives on the ``ControlLoop``. No `await` stands between reading state and changing what follows from it.
/// Work that blocks or computes for long leaves the loop.
@ControlLoop
package final class Node {
    /// How long a stopping node lets documents that are being written be finished.
    private static let stopGrace = Duration.seconds(10)
    /// How long a stopping node stays announced with no offers, if it had some. Avahi sends a change after up to
    /// 370 ms, and never once the service is unregistered.
    private static let withdrawalLinger = Duration.milliseconds(500)
    /// How long a stopping node waits for a responder that does not answer, which can take 50 s. The responder
    /// unregisters a process that has ended by itself.
    private static let discoveryStopDeadline = Duration.seconds(3)
    /// Connections are spread over this many loops.
    private static let connectionLoops = 2

    /// The parts of a running node.
    private struct Parts {
        let service: ControlService
        let control: ControlServer
        let discovery: ServiceDiscovery
        let announcer: Announcer
        let discovering: Task<Void, Never>
        let automatic: AutomaticAcceptance
        let admissionControl: AdmissionControl
    }

    nonisolated let home: Home
    let configuration: NodeConfiguration
    let tuning: NodeTuning
    var limits: NodeLimits { tuning.limits }
    let logger: Logger
    private var parts: Parts?
    /// From before the account is read until the last of it is written.
    private var hold: AccountHold?

    /// - Parameters:
    ///   - home: where it keeps its state and its socket.
    ///   - logger: for what an operator may want to know; never secrets.
    package nonisolated init(
        home: Home, configuration: NodeConfiguration = NodeConfiguration(), tuning: NodeTuning = NodeTuning(),
        logger: Logger
    ) {
        self.home = home
        self.configuration = configuration
        self.tuning = tuning
        self.logger = logger
    }

    /// The port that other devices dial in this period of its announcements; `nil` when the node does not run.
    package var port: UInt16? { parts?.service.listeners.port }

    /// The nonce of that period, for the tokens of devices that connect; `nil` when the node does not run.
    package var gateNonce: [UInt8]? { parts?.announcer.gateNonce }

    /// Returns when every event loop of the running node has turned. If one hangs, this does not return.
    package func turnLoops() async {
        guard let parts else { return }
        for loop in [ControlLoop.loop] + parts.service.connections.loops.loops { await loop.turn() }
    }

    /// Starts every part.
    package func start() async throws(NodeError) {
        guard parts == nil else { return }
        if configuration.port != 0, configuration.port < Advertisement.minimumPort {
            throw .unusable(
                "port \(configuration.port) is below 1024, where no device dials: choose a higher one, or leave"
                    + " --port out")
        }
        // Every known device costs descriptors, and Dispatch ends the process that has none left.
        DescriptorLimit.raise()
        FreedMemory.returnToSystem()
        SmallBlocks.serveLibrary()

        try await prepareFolders()
        // The socket comes first: where another node has it, that is what to say.
        let local: Listener
        do {
            local = try Listener(at: .unix(FilePath(home.socketPath)), on: ControlLoop.loop)
        } catch {
            guard error.code == .addressInUse else { throw .unusable("\(error)") }
            throw .alreadyRunning(
                "a node is running here already (\(home.socketPath)): see `baton status`, or set BATON_HOME for a"
                    + " second one")
        }
        do throws(NodeError) {
            let store = AccountStore(folder: AccountStore.folder(in: home))
            hold = try await takeHold(of: store)
            parts = try assemble(store, local, try await load(store))
        } catch {
            hold = nil
            local.close()
            throw error
        }
    }

    /// Stops every part; returns when all is said and written.
    package func stop() async {
        guard let parts else { return }
        self.parts = nil
        let service = parts.service
        service.listeners.close()
        parts.admissionControl.close()
        parts.automatic.stop()
        let wasOffering = !service.offers.visible.isEmpty
        service.offers.decide { $0.stop() }
        // The caches of others keep an idle device.
        parts.announcer.publish()
        parts.announcer.stop()
        service.connections.network?.cancel()
        if wasOffering { try? await Alarm.sleep(for: Self.withdrawalLinger) }
        async let unannounced: Void = Self.stop(parts.discovery)
        async let received: Void = service.handoffs.stop(grace: Self.stopGrace)
        await service.documents.limit.drained(within: Self.stopGrace)
        await received
        await parts.control.stop()
        await service.connections.stop()
        await unannounced
        parts.discovering.cancel()
        _ = try? await withDeadline(Self.stopGrace, "what was seen of other devices was not saved") {
            await service.directory.stop()
        }
        let abandoned = AbandonedOperations.shared.count
        if abandoned > 0 {
            logger.warning("the node stops without waiting for \(abandoned) calls that hang: look at the disks")
        }
        hold = nil
    }

    /// Unregisters this device, and waits at most ``discoveryStopDeadline``.
    private static func stop(_ discovery: ServiceDiscovery) async {
        _ = try? await withDeadline(discoveryStopDeadline, "the DNS-SD responder did not let go") {
            await discovery.stop()
        }
    }

    private func assemble(
        _ store: AccountStore, _ local: Listener, _ kept: KeptState
    ) throws(NodeError) -> Parts {
        let account = CurrentAccount(kept.account)
        let loops = EventLoopGroup(name: "connections", count: Self.connectionLoops)
        let gate = GateKeeper(of: kept.account.identity.id) { [weak self] in
            ControlLoop.execute { self?.parts?.announcer.rotate() }
        }
        let context = try context(account, gate)
        let listeners = try listen()

        let discovery = ServiceDiscovery(
            configuration: tuning.discovery, loop: ControlLoop.loop, executor: try Self.executor("baton-discovery"))
        let files = SharedFiles(
            path: SharedRootsFile.path(in: home), on: try Self.executor("baton-files"), logger: logger)
        let budget = NodeBudget(limits)
        let offers = Offers(files: files, bound: limits.offers, descriptions: budget.descriptions) { [weak self] in
            self?.parts?.announcer.publish()
        }
        let documents = DocumentService(
            offers: offers, pool: budget.documents, ledger: kept.ledger,
            limit: TransferLimit(perDevice: limits.transfersPerDevice),
            stallDeadline: limits.stallDeadline, leastProgress: limits.leastProgress,
            descriptions: budget.descriptions, olderCopies: budget.olderCopies, previews: budget.previews,
            reads: budget.reads)
        let directory = PeerDirectory(
            account: account, epoch: kept.epoch, store: store, replayGuard: kept.replayGuard, known: kept.known,
            discovery: discovery, logger: logger)
        let exchange = StateExchange(
            account: account, store: store, directory: directory, limits: limits, logger: logger)
        let connections = PeerConnections(
            context: context, account: account, exchange: exchange, directory: directory,
            service: PeerService(
                offers: offers, documents: documents, exchange: exchange, streams: budget.streams,
                examinations: Examinations(
                    dialer: PeerDialer(
                        context: context, account: account, limits: limits, loops: loops, budget: budget.devices),
                    serviceType: tuning.discovery.serviceType)),
            offers: offers, loops: loops, limits: limits, budget: budget.devices, logger: logger)
        let announcer = Announcer(
            account: account, epoch: kept.epoch, listeners: listeners, gate: gate, offers: offers, discovery: discovery,
            logger: logger)
        let handoffs = HandoffTable()
        let control = ControlServer(
            listener: local, limits: limits, budget: budget.applications, logger: logger)
        let policy = PolicyKeeper(path: AcceptPolicyFile.path(in: home), logger: logger)
        let handoffSwitch = kept.handoffSwitch
        let switched = handoffSwitch.current
        offers.decide { $0.setSwitch(switched) }
        let applications = Applications(
            home: home, environment: configuration.environment, recent: kept.recentApplications,
            handoffSwitch: handoffSwitch,
            associations: SiteAssociations(configuration.siteAssociations, logger: logger), logger: logger)
        let automatic = AutomaticAcceptance(
            policy: policy, takenPath: FilePath(home.stateFolder).appending("taken-activities"), directory: directory,
            exchange: exchange, handoffs: handoffs, handoffSwitch: handoffSwitch, deadlines: tuning.handoffs,
            bound: limits.acceptedWaiting, logger: logger,
            openDestination: { try await documents.openDestination($0) },
            makeHandoff: { [deadlines = tuning.handoffs] plan in
                Handoff(
                    plan, connections: connections, documents: documents, applications: applications, files: files,
                    deadlines: deadlines)
            })

        let service = ControlService(
            account: account, listeners: listeners, offers: offers, directory: directory, connections: connections,
            exchange: exchange,
            activities: PeerActivities(
                directory: directory, connections: connections, policy: policy, handoffSwitch: handoffSwitch,
                applications: applications),
            documents: documents, handoffs: handoffs, policy: policy, applications: applications,
            handoffSwitch: handoffSwitch, files: files, deadlines: tuning.handoffs,
            examiner: RoadExaminer(
                account: account, directory: directory, connections: connections, announcer: announcer,
                listeners: listeners),
            streams: budget.streams)
        control.start(service)
        exchange.start(connections: connections, announcer: announcer)
        let admissionControl = accept(from: listeners, by: context, gate, for: account, into: connections)
        let discovering = Task { [logger] in
            await withDiscardingTaskGroup { group in
                // On the loop of what it calls: a renewal of another device wakes no thread of the pool.
                group.addTask(executorPreference: ControlLoop.loop.taskExecutor) { @ControlLoop @Sendable in
                    for await event in discovery.events {
                        directory.handle(event)
                        if event == .rotationDue { announcer.rotate() }
                    }
                }
                group.addTask { await automatic.run() }
                group.addTask { @ControlLoop @Sendable in
                    announcer.publish()
                    await discovery.start()
                    logger.debug("discovery has started")
                }
            }
        }
        connections.network = monitor(announcer)
        return Parts(
            service: service, control: control, discovery: discovery, announcer: announcer, discovering: discovering,
            automatic: automatic, admissionControl: admissionControl)
    }

    /// A new network is a new period: what was announced on the old one must not be found on this one.
    private func monitor(_ announcer: Announcer) -> NetworkMonitor? {
        do {
            return try NetworkMonitor(on: ControlLoop.loop) { _ in ControlLoop.assumeIsolated { announcer.rotate() } }
        } catch {
            logger.warning("changes of the network will not be noticed: \(error)")
            return nil
        }
    }

    private func accept(
        from listeners: PeerListeners, by context: TLSContext, _ gate: GateKeeper, for account: CurrentAccount,
        into connections: PeerConnections
    ) -> AdmissionControl {
        let admissionControl = AdmissionControl(
            account, context: context, gate: gate, limits: limits, budget: connections.budget,
            over: connections.loops
        ) { connection in ControlLoop.task { await connections.accept(connection) } }
        listeners.start { socket in ControlLoop.assumeIsolated { admissionControl.receive(socket) } }
        return admissionControl
    }
}

extension AccountStore {
    /// Where the account of a home is.
    package static func folder(in home: Home) -> FilePath {
        FilePath(home.stateFolder).appending("account")
    }
}
