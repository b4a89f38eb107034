import BatonAccount
import BatonEventLoop
import BatonMessages
import BatonProtocol
import BatonTransport
import FoundationEssentials
import Logging
import SwiftProtobuf

/// Takes revocation lists over, and gives them to the other devices.
///
/// Lives on the node's control loop. Two devices that meet compare their ``AccountState/revision`` (HELLO tells it), and
/// whoever may lack something asks. Where a connection is there already, or only an advertisement shows that the other
/// lacks something, the one that has more asks: its request says what it has, and the other asks in turn. So everything
/// is pull, and one question is all it takes.
actor StateExchange {
    /// A device that could not be told is not tried again before.
    private static let retryInterval = Duration.seconds(20)
    /// Devices of which is remembered what they have, about 200 bytes each; beyond it anyone is forgotten.
    private static let bound = 256
    /// Requests that wait for their device to catch up; one more is refused.
    static let waiterBound = 64
    /// Those of one device, so that none uses up the places of the others.
    static let waiterBoundPerDevice = 8

    /// What is known of another device.
    private struct Other {
        /// What it said that it has.
        var revision: UInt64?
        /// What was asked of it: its revision then and this device's. Asking again would tell nothing new.
        var asked: [UInt64] = []
        /// When it was dialled to be told, and what this device had then.
        var told: (revision: UInt64, at: Instant)?
        var isBeingTold = false
        /// How often telling it has failed in a row.
        var attempts = 0
    }

    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    private let account: CurrentAccount
    private let store: AccountStore
    private let storage: BlockingExecutor
    private let directory: PeerDirectory
    private let logger: Logger
    /// See ``NodeLimits/listsDeadline`` and ``NodeLimits/catchUpDeadline``.
    private let listsDeadline, catchUpDeadline: Duration
    private var connections: PeerConnections?
    private var announcer: Announcer?
    private var others: [String: Other] = [:]
    private var waiters: [UUID: (device: String, change: AsyncStream<Void>.Continuation)] = [:]

    init(
        account: CurrentAccount, store: AccountStore, storage: BlockingExecutor, directory: PeerDirectory,
        limits: NodeLimits = NodeLimits(), on loop: EventLoop, logger: Logger
    ) {
        self.loop = loop
        listsDeadline = limits.listsDeadline
        catchUpDeadline = limits.catchUpDeadline
        self.account = account
        self.store = store
        self.storage = storage
        self.directory = directory
        self.logger = logger
    }

    /// Names those who act on a change.
    func start(connections: PeerConnections, announcer: Announcer) {
        self.connections = connections
        self.announcer = announcer
        warnIfApart(account.value)
    }

    // MARK: - Meeting

    /// A connection has been made: asks where the other side may have more.
    func meet(_ connection: Connection, of device: String) async {
        guard let theirs = await connection.peerRevocationNumber else { return }
        await note(theirs, of: device)
        await askIfNeeded(connection, of: device)
    }

    /// Answers what this device has.
    func serve(
        _ request: WireAccountStateRequest, to device: String, on stream: BatonTransport.Stream,
        of connection: Connection
    ) async throws(HandoffError) {
        let current = account.value
        try await stream.answer(
            .accountState(.with { $0.revision = current.state.revision }),
            following: current.givenLists.map(WireSignedList.init))
        await note(request.revision, of: device)
        await askIfNeeded(connection, of: device)
        // It has at least this now. What it has beyond was asked for just before.
        if isBehind(device) { await note(current.state.revision, of: device) }
    }

    /// Refuses what a device asks that lacks revocation lists: first it takes them over, which it is given some time for.
    func requireCurrent(_ device: String) async throws(HandoffError) {
        guard isBehind(device) else { return }
        guard waiters.count < Self.waiterBound,
            waiters.values.count(where: { $0.device == device }) < Self.waiterBoundPerDevice
        else {
            throw HandoffError(.limitExceeded, "too much waits for devices to take over revocation lists")
        }
        let id = UUID()
        let (changes, change) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
        waiters[id] = (device, change)
        defer { waiters[id] = nil }
        // One that does not know that it lacks anything is told.
        Task { await inform(device) }
        let isCurrent = try? await withDeadline(catchUpDeadline, "it did not take over the revocation lists") {
            for await _ in changes where await !self.isBehind(device) { return true }
            return false
        }
        guard isCurrent == true else {
            throw HandoffError(.refused, "the device has to take over this one's revocation lists first")
        }
    }

    /// Whether a device has lists of a lower number than this one.
    private func isBehind(_ device: String) -> Bool {
        AccountState.number(ofRevision: others[device]?.revision ?? 0) < UInt64(account.value.state.number)
    }

    private func note(_ revision: UInt64, of device: String) async {
        if others[device] == nil, others.count >= Self.bound, let anyone = others.keys.first { others[anyone] = nil }
        others[device, default: Other()].revision = revision
        for waiter in waiters.values { waiter.change.yield() }
        if let id = DeviceID(device) { await directory.note(revision, of: id) }
    }

    // MARK: - Asking

    private func askIfNeeded(_ connection: Connection, of device: String) async {
        let own = account.value.state
        guard let theirs = others[device]?.revision, theirs != own.revision,
            AccountState.number(ofRevision: theirs) >= UInt64(own.number),
            others[device]?.asked != [theirs, own.revision]
        else { return }
        others[device]?.asked = [theirs, own.revision]
        await ask(connection, of: device)
    }

    private func ask(_ connection: Connection, of device: String) async {
        do {
            let answer = try await connection.accountState(
                asking: account.value.state.revision, within: listsDeadline)
            await note(answer.revision, of: device)
            try await adopt(answer.lists)
        } catch {
            logger.info("the revocation lists of \(device.prefix(8)) were not taken over: \(error)")
            others[device]?.asked = []
        }
    }

    // MARK: - Taking over

    /// Takes lists over, from another device or from the user.
    ///
    /// The revoked are out before this returns: refused, forgotten, and every connection with them ended.
    func adopt(_ lists: [WireSignedList]) async throws(HandoffError) {
        let authority = account.value.identity.authorityKey
        let changed: Account?
        do {
            var given: [GivenList] = []
            for list in lists { given.append(try GivenList(list, authority: authority)) }
            changed = try account.take(given)
        } catch {
            throw HandoffError(.invalidRequest, "\(error)")
        }
        guard let changed else { return }
        logger.notice(
            "revocation list \(changed.state.number) holds from now on; \(changed.state.revoked.count) devices are revoked"
        )
        warnIfApart(changed)
        await connections?.dropRevoked()
        await directory.accountChanged()
        await announcer?.rotate(to: account.value.currentKeys)
        for peer in await directory.present { Task { await self.inform(peer.device.description) } }
        try await persist()
    }

    /// Stores the account as it is now, which may be more than what was taken last.
    private func persist() async throws(HandoffError) {
        let account = account.value
        let result: Result<Void, AccountError> = await withCheckedContinuation { continuation in
            storage.submit { [store] in
                continuation.resume(
                    returning: Result { () throws(AccountError) in try store.save(stateOf: account) })
            }
        }
        do {
            try result.get()
        } catch {
            logger.error("the revocation list holds until this node stops, because it cannot be stored: \(error)")
            throw HandoffError(.internal, "\(error)")
        }
    }

    private func warnIfApart(_ account: Account) {
        guard account.state.isApart else { return }
        logger.warning(
            """
            revocation lists were signed apart, on devices that had not met: all of them hold, and the next `baton \
            devices revoke` brings them together under new keys
            """)
    }

    // MARK: - Telling

    /// Gives a device that is seen the chance to take over what it lacks.
    func inform(_ device: String) async {
        let own = account.value.state.revision
        guard let connections, others[device]?.revision != own, others[device]?.isBeingTold != true,
            !account.isRevoked(device)
        else { return }
        if let told = others[device]?.told, told.revision == own, Instant.now - told.at < Self.retryInterval { return }
        others[device, default: Other()].told = (own, .now)
        others[device]?.isBeingTold = true
        defer { others[device]?.isBeingTold = false }
        do {
            let connection = try await connections.connection(to: device)
            others[device]?.attempts = 0
            guard others[device]?.revision != own else { return }
            await ask(connection, of: device)
        } catch {
            logger.info("\(device.prefix(8)) could not be told of the revocation lists: \(error)")
            others[device]?.told = nil
            tryAgain(device)
        }
    }

    /// Tells a device later what it could not be told now, with pauses of 2 to 32 s, for as long as it is seen.
    private func tryAgain(_ device: String) {
        let attempts = others[device]?.attempts ?? 0
        guard attempts < 5 else {
            others[device]?.attempts = 0
            return
        }
        others[device]?.attempts = attempts + 1
        Task {
            try? await Task.sleep(for: .seconds(2 << attempts))
            guard await directory.peer(device)?.isPresent == true else { return }
            await inform(device)
        }
    }
}
