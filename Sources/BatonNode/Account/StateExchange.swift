// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonCore
import BatonDocuments
import BatonEventLoop
import BatonMessages
import BatonProtocol
import BatonTransport
import FoundationEssentials
import Logging
import SwiftProtobuf

/// The driver of `Membership`: that value decides which device is asked or told next, and this actor asks, takes
/// revocation lists over, and stores them.
@ControlLoop
final class StateExchange {
    /// Requests that wait for their device to catch up; one more is refused.
    nonisolated static let waiterBound = 64
    /// Those of one device, so that none uses up the places of the others.
    nonisolated static let waiterBoundPerDevice = 8

    private var core: Membership
    private let account: CurrentAccount
    private let store: AccountStore
    private let directory: PeerDirectory
    private let logger: Logger
    private let limits: NodeLimits
    private var connections: PeerConnections?
    private var announcer: Announcer?
    private var timer = DeadlineTimer()
    /// Requests that wait for their device to catch up.
    private let waits = WaitList<String>(bound: waiterBound, boundPerKey: waiterBoundPerDevice)

    nonisolated init(
        account: CurrentAccount, store: AccountStore, directory: PeerDirectory, limits: NodeLimits = NodeLimits(),
        logger: Logger
    ) {
        core = Membership(revision: account.value.state.revision, storingPause: limits.storingPause)
        self.limits = limits
        self.account = account
        self.store = store
        self.directory = directory
        self.logger = logger
    }

    /// Names those who act on a change.
    func start(connections: PeerConnections, announcer: Announcer) {
        self.connections = connections
        self.announcer = announcer
        directory.onOtherwiseKeyed = { [weak self] heard in self?.meet(heard) }
        warnIfApart(account.value)
    }

    /// Tells the core of an event, or asks it something, and carries out what it orders.
    @discardableResult
    private func decide<Value>(_ event: (inout Membership) -> Value) -> Value {
        core.advance(to: .now)
        let value = event(&core)
        for effect in core.takeEffects() { carryOut(effect) }
        timer.schedule(at: core.nextDeadline) { [weak self] in self?.decide { _ in } }
        return value
    }

    private func carryOut(_ effect: Membership.Effect) {
        switch effect {
        case .tell, .store: ControlLoop.task { await self.perform(effect) }
        case .said(let device, let revision, let isCurrent):
            if isCurrent { waits.wake(device) }
            if let id = DeviceID(device) { directory.note(revision, of: id) }
        }
    }

    private func perform(_ effect: Membership.Effect) async {
        switch effect {
        case .tell(let device, let isNews):
            let isPresent = await tell(device, isWanted: isNews)
            decide { $0.told(device, isPresent: isPresent) }
        case .store:
            guard (try? await persist()) != nil else { return }
            logger.notice("revocation list \(account.value.state.number) is stored")
        case .said: break
        }
    }

    // MARK: - Doors

    /// A connection has been made: asks where the other side may have more.
    func meet(_ connection: Connection, of device: String) async {
        guard let theirs = await connection.peerRevocationNumber else { return }
        await meet(connection, of: device, having: theirs)
    }

    private func meet(_ connection: Connection, of device: String, having revision: UInt64) async {
        if decide({ $0.meet(device, having: revision) }) { await ask(connection, of: device) }
    }

    /// Meets a device that announces itself under other keys than this one's.
    func meet(_ heard: OtherwiseKeyed) { decide { $0.hear(heard.device, lacksLists: heard.lacksLists) } }

    /// Meets a device that is announced, which shows that it is of the account, and gives it the chance to take over
    /// what it lacks.
    func inform(_ device: String) { decide { $0.inform(device) } }

    /// Forgets what a device has said. It is dialled again when it is seen again, and so proved.
    func forget(_ device: String) { decide { $0.forget(device) } }

    /// Answers what this device has.
    func serve(
        _ request: WireAccountStateRequest, to device: String, on stream: BatonTransport.Stream,
        of connection: Connection
    ) async throws(HandoffError) {
        // One value: the lists with which the keys travel do not revoke the device that gets the keys. Another list may
        // have come since the request, and the connection ends a moment later.
        let current = account.value
        try requireMember(device, of: current)
        try await stream.answer(
            .accountState(.with { $0.revision = current.state.revision }),
            following: current.travellingLists(wrappedBy: connection.keyEncryptionKey))
        // The device says with another question that it has what it was told now.
        await meet(connection, of: device, having: request.revision)
    }

    /// Refuses requests of a device that lacks revocation lists: first it takes them over, and has some time for that.
    func requireCurrent(_ device: String) async throws(HandoffError) {
        try requireMember(device, of: account.value)
        guard decide({ $0.isToWait(device) }) else { return }
        switch await waits.wait(for: device, atMost: limits.catchUpDeadline) {
        case .woken: break
        case .ended:
            throw HandoffError(.refused, "the device has to take over this one's revocation lists first")
        case .refused:
            throw HandoffError(.limitExceeded, "too much waits for devices to take over revocation lists")
        }
    }

    /// Refuses a revoked device, also if its connection has not ended yet.
    private func requireMember(_ device: String, of account: Account) throws(HandoffError) {
        guard DeviceID(device).map(account.isRevoked) ?? false else { return }
        throw HandoffError(.refused, Cause.revoked.sentence("the device"))
    }

    // MARK: - Asking

    /// Connects to a device that may lack lists, and asks it.
    ///
    /// - Returns: whether the device is connected or announced.
    private func tell(_ device: String, isWanted: Bool) async -> Bool {
        let isAnnounced = directory.peer(device)?.isPresent ?? false
        guard let connections, isAnnounced || connections.devices.contains(device), !account.isRevoked(device) else {
            return false
        }
        do {
            let connection = try await connections.connection(to: device, isWanted: isWanted)
            // A new connection asks by itself.
            if core.lacksWord(of: device) { await ask(connection, of: device) }
        } catch {
            logger.info("\(device.prefix(8)) could not be met: \(error)")
        }
        return true
    }

    /// Asks a device for its lists, and takes them over.
    private func ask(_ connection: Connection, of device: String) async {
        var isAnswered = false
        do {
            let answer = try await question(on: connection)
            isAnswered = true
            decide { $0.say(answer.revision, of: device) }
            // Another question says that the lists are stored. Until then the device counts this one among those that
            // lack them.
            if try await adopt(answer.lists, wrappedBy: answer.key) { _ = try await question(on: connection) }
        } catch {
            logger.info("the revocation lists of \(device.prefix(8)) were not taken over: \(error)")
        }
        decide { [isAnswered] in $0.asked(device, isAnswered: isAnswered) }
    }

    private func question(on connection: Connection) async throws(HandoffError) -> ToldState {
        try await connection.accountState(asking: account.value.state.revision, within: limits.listsDeadline)
    }

    // MARK: - Taking over

    /// Takes lists over, from another device or from the user.
    ///
    /// When this returns, the revoked devices are refused, forgotten, and every connection with them has ended; and the
    /// lists are stored.
    ///
    /// - Returns: whether anything was new.
    @discardableResult
    func adopt(_ lists: [WireSignedList], wrappedBy key: SecretBytes) async throws(HandoffError) -> Bool {
        let changed: Account?
        do {
            changed = try account.take(lists.read(wrappedBy: key, by: account.value.identity.authorityKey))
        } catch {
            throw HandoffError(.invalidRequest, "\(error)")
        }
        guard let changed else {
            // Taken over before, when it could not be stored.
            guard !core.isStored else { return false }
            try await persist()
            return true
        }
        decide { $0.adopted(changed.state.revision) }
        let count = changed.state.revoked.count
        let devices = "\(HumanUnits.count(count, "device")) \(count == 1 ? "is" : "are") revoked"
        logger.notice("\(devices) (list \(changed.state.number))")
        warnIfApart(changed)
        await connections?.dropRevoked()
        // A device that is connected is told as well, if this device cannot read its announcements.
        let met = directory.present.map(\.device.description) + (connections?.devices ?? [])
        directory.accountChanged()
        announcer?.rotate(to: account.value.currentKeys)
        for device in Set(met) { decide { $0.inform(device, isNews: true) } }
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

    // MARK: - Storing

    /// Stores the account as it is now, which may be more than what was changed last.
    private func save() async throws(AccountError) {
        let account = account.value
        try await Self.store(account, in: store)
        decide { $0.stored(account.state.revision) }
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
            decide { $0.stored(nil) }
            throw HandoffError(
                .internal,
                """
                the revoked devices are locked out only while this node runs, because the list cannot be stored: \
                \(error); the node stores the list as soon as this is fixed
                """)
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
}
