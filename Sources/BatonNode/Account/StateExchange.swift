// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonDocuments
import BatonEventLoop
import BatonMessages
import BatonProtocol
import BatonTransport
import FoundationEssentials
import Logging
import SwiftProtobuf

/// Takes revocation lists over, and gives them to the other devices.
///
/// Two devices that meet compare their ``AccountState/revision`` (HELLO tells it),
/// and whoever may lack something asks. If a connection is there already, or if only an advertisement shows that the
/// other lacks something, the one that has more asks. Its request says what it has, and the other asks in turn. So
/// everything is pull, and one question is all it takes.
@ControlLoop
final class StateExchange {
    /// A device that could not be told is not tried again before.
    private static let retryInterval = Duration.seconds(20)
    /// A device that waits to be served is asked this often.
    private static let askingPause = Duration.milliseconds(500)
    /// However often a device announces that it lacks lists, it is told no more often than this.
    private static let leastInterval = Duration.seconds(1)
    /// Requests that wait for their device to catch up; one more is refused.
    nonisolated static let waiterBound = 64
    /// Those of one device, so that none uses up the places of the others.
    nonisolated static let waiterBoundPerDevice = 8
    /// How long after a question that failed it is put again on the same connection, while that lives.
    private static let questionPauses = [Duration.seconds(1), .seconds(2), .seconds(4)]

    private let account: CurrentAccount
    private let store: AccountStore
    private let directory: PeerDirectory
    private let logger: Logger
    /// See ``NodeLimits``.
    private let listsDeadline, catchUpDeadline, storingPause: Duration
    private var connections: PeerConnections?
    private var announcer: Announcer?
    private var others = MetDevices()
    /// The revision that a restart would find.
    private var stored: UInt64
    private var isToBeStoredAgain = false
    /// Requests that wait for their device to catch up.
    private let waits = WaitList<String>(bound: waiterBound, boundPerKey: waiterBoundPerDevice)

    nonisolated init(
        account: CurrentAccount, store: AccountStore, directory: PeerDirectory, limits: NodeLimits = NodeLimits(),
        logger: Logger
    ) {
        listsDeadline = limits.listsDeadline
        catchUpDeadline = limits.catchUpDeadline
        storingPause = limits.storingPause
        self.account = account
        stored = account.value.state.revision
        self.store = store
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
        note(theirs, of: device)
        await askIfNeeded(connection, of: device)
    }

    /// Forgets what a device has said. It is dialled again when it is seen again, and so proved.
    func forget(_ device: String) { others[device] = nil }

    /// Answers what this device has.
    func serve(
        _ request: WireAccountStateRequest, to device: String, on stream: BatonTransport.Stream,
        of connection: Connection
    ) async throws(HandoffError) {
        // One value: whose keys are told is who is not revoked by the lists that they come with. A list may have come
        // since the request, and the connection is ended a moment later.
        let current = account.value
        try requireMember(device, of: current)
        try await stream.answer(
            .accountState(.with { $0.revision = current.state.revision }),
            following: current.travellingLists(wrappedBy: connection.keyEncryptionKey))
        // The device says with another question that it has what it was told now.
        note(request.revision, of: device)
        await askIfNeeded(connection, of: device)
    }

    /// Refuses what a device asks that lacks revocation lists: first it takes them over, which it is given some time
    /// for.
    func requireCurrent(_ device: String) async throws(HandoffError) {
        try requireMember(device, of: account.value)
        guard isBehind(device) else { return }
        async let _: Void = informUntilCurrent(device)
        switch await waits.wait(for: device, atMost: catchUpDeadline) {
        case .woken: break
        case .ended:
            throw HandoffError(.refused, "the device has to take over this one's revocation lists first")
        case .refused:
            throw HandoffError(.limitExceeded, "too much waits for devices to take over revocation lists")
        }
    }

    /// The device may not know that it lacks something, or may not have said that it has everything. It is here now, so
    /// it is told again, even if it was told in vain a moment ago.
    private func informUntilCurrent(_ device: String) async {
        while !Task.isCancelled, isBehind(device) {
            others[device]?.told = nil
            await inform(device)
            try? await Alarm.sleep(for: Self.askingPause)
        }
    }

    /// Refuses a revoked device, also if its connection has not ended yet.
    private func requireMember(_ device: String, of account: Account) throws(HandoffError) {
        guard DeviceID(device).map(account.isRevoked) ?? false else { return }
        throw HandoffError(.refused, Cause.revoked.sentence("the device"))
    }

    /// Whether a device has lists of a lower number than this one.
    private func isBehind(_ device: String) -> Bool {
        AccountState.number(ofRevision: others[device]?.revision ?? 0) < UInt64(account.value.state.number)
    }

    private func note(_ revision: UInt64, of device: String) {
        others[device, default: MetDevices.Device()].revision = revision
        if !isBehind(device) { waits.wake(device) }
        if let id = DeviceID(device) { directory.note(revision, of: id) }
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

    /// Asks a device for its lists, and takes them over. A question that failed is put again on the same connection, a
    /// few times. The other side may only have been busy, and the next meeting may be far away.
    private func ask(_ connection: Connection, of device: String) async {
        guard await !hasAnswered(connection, device), others[device]?.isAskedAgain == false else { return }
        others[device]?.isAskedAgain = true
        Task {
            defer { others[device]?.isAskedAgain = false }
            for pause in Self.questionPauses {
                try? await Alarm.sleep(for: pause)
                guard connection.isOpen, !account.isRevoked(device),
                    others[device]?.revision != account.value.state.revision
                else { return }
                if await hasAnswered(connection, device) { return }
            }
        }
    }

    /// - Returns: whether the device told its lists, also where they could not be taken over: asking again would not
    ///   help.
    private func hasAnswered(_ connection: Connection, _ device: String) async -> Bool {
        var isAnswered = false
        do {
            let answer = try await connection.accountState(
                asking: account.value.state.revision, within: listsDeadline)
            isAnswered = true
            note(answer.revision, of: device)
            guard try await adopt(answer.lists, wrappedBy: answer.key) else { return true }
            // They are stored, which this says: until then the other side counts this device among those that lack
            // them.
            _ = try await connection.accountState(asking: account.value.state.revision, within: listsDeadline)
        } catch {
            logger.info("the revocation lists of \(device.prefix(8)) were not taken over: \(error)")
            // Lists that were told and cannot be taken are not asked for again. Otherwise two devices would ask for
            // ever.
            if !isAnswered { others[device, default: MetDevices.Device()].asked = [] }
        }
        return isAnswered
    }

    // MARK: - Taking over

    /// Takes lists over, from another device or from the user.
    ///
    /// The revoked are out before this returns: refused, forgotten, and every connection with them ended; and what was
    /// taken over is stored.
    ///
    /// - Returns: whether anything was new.
    @discardableResult
    func adopt(_ lists: [WireSignedList], wrappedBy key: KeyEncryptionKey) async throws(HandoffError) -> Bool {
        let changed: Account?
        do {
            changed = try account.take(lists.read(wrappedBy: key, by: account.value.identity.authorityKey))
        } catch {
            throw HandoffError(.invalidRequest, "\(error)")
        }
        guard let changed else {
            // Taken over before, when it could not be stored.
            guard stored != account.value.state.revision else { return false }
            try await persist()
            return true
        }
        let count = changed.state.revoked.count
        let devices = "\(HumanUnits.count(count, "device")) \(count == 1 ? "is" : "are") revoked"
        logger.notice("\(devices) (list \(changed.state.number))")
        warnIfApart(changed)
        await connections?.dropRevoked()
        // Who is connected and not announced, as far as this device can read it, is told as well.
        let met = directory.present.map(\.device.description) + (connections?.devices ?? [])
        directory.accountChanged()
        announcer?.rotate(to: account.value.currentKeys)
        // All at once, which is seldom. A revoked device can announce devices that do not exist. With a few at a time,
        // these would keep its revocation from devices that have not been met yet.
        for device in Set(met) { Task { await self.inform(device, isWanted: true) } }
        try await persist()
        return true
    }

    /// Gives this device another name, which the other devices learn by its next announcement.
    ///
    /// - Throws: `invalidRequest` if no device can have that name. `internal` if it cannot be stored.
    func rename(to name: String) async throws(HandoffError) {
        do {
            account.rename(to: try DeviceName.validated(name))
        } catch {
            throw HandoffError(.invalidRequest, "\(error)")
        }
        announcer?.publish()
        do {
            try await save()
        } catch {
            throw HandoffError(
                .internal, "the name holds until this node stops, because it cannot be stored: \(error)")
        }
    }

    /// Stores the account as it is now, which may be more than what was changed last.
    private func save() async throws(AccountError) {
        let account = account.value
        try await Self.store(account, in: store)
        stored = account.state.revision
    }

    @StorageThread
    private static func store(_ account: Account, in store: AccountStore) throws(AccountError) {
        try store.save(stateOf: account)
    }

    private func persist() async throws(HandoffError) {
        do {
            try await save()
        } catch {
            logger.error("the revocation list holds until this node stops, because it cannot be stored: \(error)")
            storeAgain()
            throw HandoffError(
                .internal,
                """
                the revoked devices are locked out only while this node runs, because the list cannot be stored: \
                \(error); the node stores the list as soon as this is fixed
                """)
        }
    }

    /// Tries to store what could not be, until that is done or the node has stopped.
    private func storeAgain() {
        guard !isToBeStoredAgain else { return }
        isToBeStoredAgain = true
        Task { [weak self, storingPause] in
            try? await Alarm.sleep(for: storingPause)
            await self?.storeNow()
        }
    }

    private func storeNow() async {
        isToBeStoredAgain = false
        guard stored != account.value.state.revision, (try? await persist()) != nil else { return }
        logger.notice("revocation list \(account.value.state.number) is stored")
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

    /// Meets a device that announces itself under other keys than this one's.
    func meet(_ heard: OtherwiseKeyed) async {
        if heard.lacksLists {
            // This counts more than what it has said: it stopped before it had stored the lists, or an older state of
            // it was restored.
            if let known = others[heard.device]?.revision, known != 0 {
                others[heard.device]?.revision = 0
                others[heard.device]?.asked = []
            }
            // It is there now, be it just after it could not be told.
            let wasToldNow = others[heard.device]?.told.map { Instant.now - $0.at < Self.leastInterval } ?? false
            if !wasToldNow { others[heard.device]?.told = nil }
        }
        await inform(heard.device)
    }

    /// Meets a device that is announced, which shows that it is of the account, and gives it the chance to take over
    /// what it lacks.
    ///
    /// - Parameter isWanted: whether a user has named it, or a list has just come; see ``DialPlaces``.
    func inform(_ device: String, isWanted: Bool = false) async {
        // Lists may have come while it was told of others.
        while await tell(device, isWanted: isWanted) {}
    }

    /// - Returns: whether there is something else to tell by now.
    private func tell(_ device: String, isWanted: Bool) async -> Bool {
        let own = account.value.state.revision
        guard let connections, others[device]?.revision != own, others[device]?.isBeingTold != true,
            !account.isRevoked(device)
        else { return false }
        if let told = others[device]?.told, told.revision == own, Instant.now - told.at < Self.retryInterval {
            return false
        }
        others[device, default: MetDevices.Device()].told = (own, .now)
        others[device]?.isBeingTold = true
        defer { others[device]?.isBeingTold = false }
        do {
            let connection = try await connections.connection(to: device, isWanted: isWanted)
            if others[device]?.revision != own { await ask(connection, of: device) }
        } catch {
            logger.info("\(device.prefix(8)) could not be met: \(error)")
        }
        // The device asks at once for what it can have now. If it does not, it is told again.
        if others[device]?.revision != account.value.state.revision { tryAgain(device) }
        return account.value.state.revision != own
    }

    /// Tells a device again that could not be told, or does not show that it has the lists. The pauses are 2 to 32 s,
    /// and the device has to be connected or announced.
    private func tryAgain(_ device: String) {
        guard others[device]?.isToBeToldAgain == false else { return }
        let attempts = others[device]?.attempts ?? 0
        guard attempts < 5 else {
            others[device]?.attempts = 0
            return
        }
        others[device]?.attempts = attempts + 1
        others[device]?.isToBeToldAgain = true
        Task {
            try? await Alarm.sleep(for: .seconds(2 << attempts))
            others[device]?.isToBeToldAgain = false
            guard others[device]?.revision != account.value.state.revision else {
                others[device]?.attempts = 0
                return
            }
            let isConnected = connections?.devices.contains(device) ?? false
            let isPresent = directory.peer(device)?.isPresent ?? false
            guard isConnected || isPresent else { return }
            others[device]?.told = nil
            await inform(device)
        }
    }
}
