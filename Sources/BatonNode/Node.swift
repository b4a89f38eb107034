public import BatonAccount
import BatonDiscovery
public import BatonDocuments
public import BatonEventLoop
import BatonProtocol
public import BatonTLS
public import BatonTransport
public import BatonWeb
import FoundationEssentials
import Glibc
public import Logging

public import struct SystemPackage.Errno
public import struct SystemPackage.FilePath

/// What a user may set of a node.
public struct NodeConfiguration: Sendable {
    /// The TCP port that other devices dial; 0, the default, takes any free one. Below 1024 none is advertised.
    public var port: UInt16 = 0

    /// Where applications are found (`XDG_DATA_DIRS`, `PATH`), and what those that it launches inherit. Empty by default:
    /// then only registered applications are known, and nothing is found by its name alone.
    public var environment: [String: String] = [:]

    /// Which web hosts may be asked for the applications that belong to them; by default those of the public network.
    public var siteAssociations = SiteAssociationFetcher.Configuration()

    /// The defaults.
    public init() {}
}

/// Why a node cannot start. Each description is a sentence that ends with what to do.
public enum NodeError: Error, Sendable, CustomStringConvertible {
    /// Another node serves this home.
    case alreadyRunning(socket: String)
    /// The account is missing or unusable.
    case account(AccountError)
    /// The port is taken, or below 1024.
    case portInUse(UInt16)
    case portReserved(UInt16)
    /// A socket cannot be made.
    case socket(SocketError)
    /// A folder cannot be made or used.
    case folder(path: String, reason: String)
    /// The identity is not usable.
    case identity(TLSError)
    /// Unfinished files of an earlier run cannot be looked after.
    case document(DocumentError)
    /// The machine has no thread to give.
    case threads(Errno)

    public var description: String {
        switch self {
        case .alreadyRunning(let socket):
            "a node is running here already (\(socket)): see `baton status`, or set BATON_HOME for a second one"
        case .account(let error):
            "\(error)"
        case .portInUse(let port):
            "port \(port) is in use by another program: choose another with --port, or leave it out to take a free one"
        case .portReserved(let port):
            "port \(port) is below 1024, where no device dials: choose a higher one, or leave --port out"
        case .socket(let error):
            "\(error)"
        case .folder(let path, let reason):
            "the folder \(path) cannot be used (\(reason)): check BATON_HOME and the XDG folders"
        case .identity(let error):
            "this device's certificate cannot be used: \(error); run `baton account leave` and join again"
        case .document(let error):
            "\(error)"
        case .threads(let error):
            "the system has no thread to give (\(error)): end other programs and try again"
        }
    }
}

/// The process that runs on each device: announces, finds, serves and accepts. One per user.
///
/// ``start()`` brings every part up or throws; ``stop()`` takes them down in order: withdraw, say goodbye, finish what
/// is being written.
public actor Node {
    /// How long a stopping node lets documents that are being written be finished.
    private static let stopGrace = Duration.seconds(10)
    /// Connections are spread over this many loops.
    private static let connectionLoops = 2

    /// The parts of a running node.
    private struct Parts {
        let listener: Listener
        let control: ControlServer
        let discovery: ServiceDiscovery
        let directory: PeerDirectory
        let announcer: Announcer
        let offers: Offers
        let connections: PeerConnections
        let handoffs: HandoffTable
        let sending: TransferLimit
        let monitor: NetworkMonitor?
        let discovering: Task<Void, Never>
        let automatic: Task<Void, Never>
        let accepting: Accepting
    }

    /// The way of other devices' connections into the node.
    private struct Accepting {
        let doorkeeper: Doorkeeper
        let admitted: AsyncStream<Connection>.Continuation
    }

    private let home: Home
    private let configuration: NodeConfiguration
    private let seams: NodeSeams
    private var limits: NodeLimits { seams.limits }
    private let logger: Logger
    private var parts: Parts?

    /// - Parameters:
    ///   - home: where it keeps its state and its socket.
    ///   - logger: for what an operator may want to know; never secrets.
    public init(home: Home, configuration: NodeConfiguration = NodeConfiguration(), logger: Logger) {
        self.init(home: home, configuration: configuration, seams: NodeSeams(), logger: logger)
    }

    /// The same, with something else than what every program has.
    package init(
        home: Home, configuration: NodeConfiguration = NodeConfiguration(), seams: NodeSeams, logger: Logger
    ) {
        self.home = home
        self.configuration = configuration
        self.seams = seams
        self.logger = logger
    }

    /// The port that other devices dial; `nil` when the node does not run.
    public var port: UInt16? { parts?.listener.localAddress.port }

    /// Starts every part.
    public func start() async throws(NodeError) {
        guard parts == nil else { return }
        if configuration.port != 0, configuration.port < Advertisement.minimumPort {
            throw .portReserved(configuration.port)
        }
        // Every known device costs descriptors, and Dispatch ends the process that has none left.
        DescriptorLimit.raise()
        let controlLoop = EventLoop(name: "control")
        let loops = EventLoopGroup(name: "connections", count: Self.connectionLoops)
        let storage = try Self.executor("baton-storage")

        try prepareFolders()
        if case .unavailable(let error) = Landlock.support {
            logger.warning(
                "this kernel has no Landlock (\(error)): documents of other devices are refused until it has")
        }
        // The socket comes first: it tells whether another node writes to this home.
        let local: Listener
        do {
            local = try Listener(at: .unix(FilePath(home.socketPath)), on: controlLoop)
        } catch {
            throw error.code == .addressInUse ? .alreadyRunning(socket: home.socketPath) : .socket(error)
        }
        do throws(NodeError) {
            parts = try await assemble(local, controlLoop, loops, storage)
        } catch {
            local.close()
            throw error
        }
    }

    /// Stops every part; returns when all is said and written.
    public func stop() async {
        guard let parts else { return }
        self.parts = nil
        parts.listener.close()
        parts.accepting.doorkeeper.close()
        parts.accepting.admitted.finish()
        parts.automatic.cancel()
        await parts.offers.withdrawAll()
        // What stays in the caches of others is an idle device.
        await parts.announcer.publish()
        await parts.announcer.stop()
        parts.monitor?.cancel()
        await parts.discovery.stop()
        async let received: Void = parts.handoffs.stop(grace: Self.stopGrace)
        await parts.sending.drained(within: Self.stopGrace)
        await received
        await parts.control.stop()
        await parts.connections.stop()
        parts.discovering.cancel()
        await parts.directory.stop()
    }

    private func assemble(
        _ local: Listener, _ loop: EventLoop, _ loops: EventLoopGroup, _ storage: BlockingExecutor
    ) async throws(NodeError) -> Parts {
        let store = AccountStore(folder: AccountStore.folder(in: home))
        let (stored, epoch, replayGuard, known) = try load(store)
        let account = CurrentAccount(stored)
        let ledger: PartFileLedger
        do {
            ledger = try PartFileLedger(stateFolder: FilePath(home.stateFolder).appending("parts"))
            try ledger.removeLeftovers()
        } catch {
            throw .document(error)
        }
        let (rotations, rotationWanted) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
        let gate = GateKeeper(of: stored.identity.id, clockDelay: seams.clockDelay) { rotationWanted.yield() }
        let context = try context(account, gate)
        let listener = try listen(on: loop)
        let port = listener.localAddress.port ?? 0

        let discovery = ServiceDiscovery(
            configuration: seams.discovery, loop: loop, executor: try Self.executor("baton-discovery"))
        let (changes, changed) = AsyncStream<Offers.Change>.makeStream(bufferingPolicy: .bufferingNewest(64))
        let files = SharedFiles(
            path: SharedRootsFile.path(in: home), userHome: ConfigurationFile.userHome,
            on: try Self.executor("baton-files"), logger: logger)
        let budget = NodeBudget(limits)
        let offers = Offers(on: loop, files: files, bound: limits.offers, descriptions: budget.descriptions) {
            changed.yield($0)
        }
        let sending = TransferLimit(perDevice: limits.transfersPerDevice)
        let documents = DocumentService(
            offers: offers, pool: budget.documents, ledger: ledger, limit: sending,
            stallDeadline: limits.stallDeadline, leastProgress: limits.leastProgress,
            descriptions: budget.descriptions, olderCopies: budget.olderCopies)
        let directory = PeerDirectory(
            account: account, store: store, replayGuard: replayGuard, known: known, discovery: discovery,
            storage: storage, on: loop, logger: logger)
        let exchange = StateExchange(
            account: account, store: store, storage: storage, directory: directory,
            limits: limits, on: loop, logger: logger)
        let connections = PeerConnections(
            context: context, account: account, exchange: exchange, directory: directory,
            service: PeerService(offers: offers, documents: documents, exchange: exchange, streams: budget.streams),
            offers: offers, loops: loops, limits: limits, budget: budget.devices, on: loop, logger: logger)
        let announcer = Announcer(
            account: stored, epoch: epoch, port: port, gate: gate, offers: offers, discovery: discovery,
            guards: seams.guards, on: loop, logger: logger)
        let handoffs = HandoffTable()
        let control = ControlServer(
            listener: local, limits: limits, budget: budget.applications, logger: logger)
        let policy = PolicyKeeper(
            path: AcceptPolicyFile.path(in: home), userHome: ConfigurationFile.userHome, on: storage, logger: logger)
        let handoffSwitch = HandoffSwitchKeeper(
            path: home.configurationFolder + "/handoff", on: storage, logger: logger)
        await offers.setSwitch(handoffSwitch.current)
        let applications = Applications(
            keeper: ApplicationKeeper(
                home: home, environment: configuration.environment, on: storage, logger: logger),
            handoffSwitch: handoffSwitch,
            associations: SiteAssociations(configuration.siteAssociations, logger: logger), on: loop, logger: logger)
        let automatic = AutomaticAcceptance(
            policy: policy,
            taken: TakenActivities(path: home.stateFolder + "/taken-activities", on: storage), directory: directory,
            connections: connections, documents: documents, handoffs: handoffs, applications: applications,
            handoffSwitch: handoffSwitch, files: files, deadlines: seams.handoffs, bound: limits.acceptedWaiting,
            on: loop, logger: logger)

        await control.start(
            ControlService(
                account: account, port: port, offers: offers, directory: directory, connections: connections,
                exchange: exchange,
                activities: PeerActivities(
                    directory: directory, connections: connections, policy: policy, handoffSwitch: handoffSwitch,
                    applications: applications, on: loop),
                documents: documents, handoffs: handoffs, policy: policy, applications: applications,
                handoffSwitch: handoffSwitch, files: files, deadlines: seams.handoffs, streams: budget.streams))
        await exchange.start(connections: connections, announcer: announcer)
        let accepting = accept(
            from: listener, over: loops, by: context, seams.hasGate ? gate : nil, for: account, into: connections)
        let discovering = Task { [logger] in
            await withDiscardingTaskGroup { group in
                group.addTask {
                    for await event in discovery.events {
                        await directory.handle(event)
                        switch event {
                        case .rotationDue: await announcer.rotate()
                        case .record: await connections.announced()
                        case .responder, .removed, .registered: break
                        }
                    }
                }
                group.addTask {
                    for await _ in rotations { await announcer.rotate() }
                }
                group.addTask {
                    for await device in directory.otherwiseKeyed { await exchange.inform(device) }
                }
                group.addTask {
                    await Self.announce(changes, of: offers, by: announcer)
                }
                group.addTask {
                    await announcer.publish()
                    await discovery.start()
                    logger.debug("discovery has started")
                }
            }
        }
        return Parts(
            listener: listener, control: control, discovery: discovery, directory: directory, announcer: announcer,
            offers: offers, connections: connections, handoffs: handoffs, sending: sending,
            monitor: monitor(on: loop, announcer), discovering: discovering,
            automatic: Task { await automatic.run() }, accepting: accepting)
    }

    /// Tells other devices what changes of what is offered: of something withdrawn and of what takes its place at once, so
    /// that nothing of the ration of announcements is spent on a moment in which nothing was offered.
    private static func announce(
        _ changes: AsyncStream<Offers.Change>, of offers: Offers, by announcer: Announcer
    ) async {
        var announced: UInt64 = 0
        for await change in changes {
            switch change {
            case .offered: break
            case .withdrawn: await offers.replaced()
            }
            let count = await offers.changeCount
            guard count != announced else { continue }
            announced = count
            await announcer.publish()
        }
    }

    /// A new network is a new period: what was announced on the old one must not be found on this one.
    private func monitor(on loop: EventLoop, _ announcer: Announcer) -> NetworkMonitor? {
        do {
            return try NetworkMonitor(on: loop) { _ in Task { await announcer.rotate() } }
        } catch {
            logger.warning("changes of the network will not be noticed: \(error)")
            return nil
        }
    }

    private func accept(
        from listener: Listener, over loops: EventLoopGroup, by context: TLSContext, _ gate: GateKeeper?,
        for account: CurrentAccount, into connections: PeerConnections
    ) -> Accepting {
        let (admitted, continuation) = AsyncStream<Connection>.makeStream(bufferingPolicy: .bufferingNewest(64))
        let doorkeeper = Doorkeeper(
            account, context: context, gate: gate, limits: limits, budget: connections.budget
        ) { continuation.yield($0) }
        listener.start(
            socketsOn: loops,
            onTrouble: { [logger] in logger.warning("other devices cannot connect at the moment: \($0)") },
            onAccept: { doorkeeper.receive($0) })
        Task {
            await withDiscardingTaskGroup { group in
                for await connection in admitted {
                    group.addTask { await connections.accept(connection) }
                }
            }
        }
        return Accepting(doorkeeper: doorkeeper, admitted: continuation)
    }

    private func load(
        _ store: AccountStore
    ) throws(NodeError) -> (Account, UInt64, ReplayGuard, KnownDevices) {
        do {
            let account = try store.load()
            let epoch = try store.nextEpoch(unixTime: UInt64(Date().timeIntervalSince1970))
            let known = try store.loadKnownDevices()
            do {
                return (account, epoch, try store.loadReplayGuard(), known)
            } catch {
                logger.warning("what was seen of other devices is lost: \(error)")
                return (account, epoch, ReplayGuard(), known)
            }
        } catch {
            throw .account(error)
        }
    }

    private func listen(on loop: EventLoop) throws(NodeError) -> Listener {
        do {
            return try Listener.onAllAddresses(
                port: configuration.port, on: loop, defersAccept: limits.visitDeadline)
        } catch {
            throw error.code == .addressInUse ? .portInUse(configuration.port) : .socket(error)
        }
    }

    private func prepareFolders() throws(NodeError) {
        for path in [home.configurationFolder, home.stateFolder, home.runtimeFolder] {
            do {
                try FileManager.default.createDirectory(
                    atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
                try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: path)
            } catch {
                let cause = (error as? CocoaError)?.underlying as? POSIXError
                let reason = cause.map { "\(Errno(rawValue: $0.code.rawValue))" }
                throw .folder(path: path, reason: reason ?? "\(error)")
            }
        }
    }

    private func context(_ account: CurrentAccount, _ gate: GateKeeper) throws(NodeError) -> TLSContext {
        let hasGate = seams.hasGate
        do {
            return try TLSContext(
                identity: TLSIdentity(account.value.identity), gate: { hasGate ? gate.admit($0) : 0 },
                refuses: account.isRevoked)
        } catch {
            throw .identity(error)
        }
    }

    private static func executor(_ name: String) throws(NodeError) -> BlockingExecutor {
        do {
            return try BlockingExecutor(name: name)
        } catch {
            throw .threads(error)
        }
    }
}

extension AccountStore {
    /// Where the account of a home is.
    public static func folder(in home: Home) -> FilePath {
        FilePath(home.stateFolder).appending("account")
    }
}
