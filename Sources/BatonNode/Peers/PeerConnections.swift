// SPDX-License-Identifier: Apache-2.0

import BatonCore
import BatonEventLoop
import BatonMessages
import BatonProtocol
import BatonTLS
import BatonTransport
import FoundationEssentials
import Logging

/// The live connections to other devices: dials, reuses, accepts, and closes what nobody uses.
///
/// The connections have loops of their own.
@ControlLoop
final class PeerConnections {
    private struct Live {
        let connection: Connection
        var idleSince: Instant?
        /// Handoffs of this device that hold a claim of the other's.
        var handoffs = 0
    }

    private struct Dial {
        let task: Task<Connection, any Error>
        /// See ``NodeLimits/unprovedDialDeadline``.
        let isBrief: Bool
        /// Whether a connection had shown the device before.
        let isProved: Bool
        /// Whether its connection is there, and has the place.
        var hasArrived = false
    }

    let loops: EventLoopGroup
    let dialer: PeerDialer
    let account: CurrentAccount
    let exchange: StateExchange
    let directory: PeerDirectory
    private let service: PeerService
    private let offers: Offers
    private let logger: Logger
    let limits: NodeLimits
    /// The bytes that all devices together can make this one hold.
    nonisolated let budget: ReceiveBudget
    private var live: [String: [Live]] = [:]
    private var dialing: [String: Dial] = [:]
    /// Where a device is being dialled, and the attempt.
    var connecting: [String: (addresses: [SocketAddress], attempt: Task<Socket, any Error>)] = [:]
    private var dialPlaces: DialPlaces
    private var handshakes = 0
    private var handshakesByAddress: [IPAddress: Int] = [:]
    private var sweep: BatonEventLoop.Timer?
    /// `nil` where the network is not watched.
    private var network: NetworkMonitor?
    var isStopped = false

    nonisolated init(
        context: TLSContext, account: CurrentAccount, exchange: StateExchange, directory: PeerDirectory,
        service: PeerService, offers: Offers, loops: EventLoopGroup, limits: NodeLimits, budget: ReceiveBudget,
        logger: Logger
    ) {
        self.limits = limits
        dialPlaces = DialPlaces(bound: limits.unprovedDials)
        self.budget = budget
        self.loops = loops
        dialer = PeerDialer(context: context, account: account, limits: limits, loops: loops, budget: budget)
        self.account = account
        self.exchange = exchange
        self.directory = directory
        self.service = service
        self.offers = offers
        self.logger = logger
    }

    /// How many connections are live.
    var count: Int { live.values.reduce(0) { $0 + $1.count } }

    /// How many there are or will be: a dial takes the place of its connection.
    private var places: Int { count + dialing.values.count { !$0.hasArrived } }

    /// The devices that a live connection leads to.
    var devices: [String] { Array(live.keys) }

    /// A connection to a device: a live one, or a new one to the addresses that it advertises. Who is cancelled waits
    /// no longer; the dialling goes on for whoever comes next.
    ///
    /// A live one that does not lead to where the device is announced now may be dead, and the kernel finds that out
    /// late. It counts only if the device cannot be reached otherwise.
    ///
    /// - Parameter isWanted: whether a user has named the device; see ``DialPlaces``.
    func connection(to device: String, isWanted: Bool) async throws(HandoffError) -> Connection {
        var elsewhere: Connection?
        for entry in live[device] ?? [] where entry.connection.isOpen {
            guard !isWhereAnnounced(entry.connection, device) else { return entry.connection }
            elsewhere = entry.connection
        }
        do {
            return try await dialled(device, isWanted: isWanted)
        } catch {
            guard error.code != .cancelled, let elsewhere, elsewhere.isOpen else { throw error }
            return elsewhere
        }
    }

    private func dialled(_ device: String, isWanted: Bool) async throws(HandoffError) -> Connection {
        let peer = directory.peer(device)
        let isBrief = peer?.isProved != true && !isWanted
        let dial: Dial
        if let running = dialing[device] {
            dial = running
        } else {
            dial = try begin(device, isProved: peer?.isProved == true, at: isBrief ? peer?.addresses ?? [] : nil)
        }
        do {
            return try await dial.task.valueUnlessCancelled
        } catch {
            let failure = HandoffError(wrapping: error)
            // Who is named by the user has more time than the dial that was under way.
            guard dial.isBrief, !isBrief, failure.code == .timedOut else { throw failure }
            return try await dialled(device, isWanted: isWanted)
        }
    }

    /// - Parameter addresses: of a device that is dialled in brief.
    private func begin(_ device: String, isProved: Bool, at addresses: [SocketAddress]?) throws(HandoffError) -> Dial {
        guard places < limits.connections else { throw tooMany }
        // Half of them for those that a connection has shown, whatever somebody invents.
        let unproved = dialing.values.count { !$0.isProved }
        guard dialing.count < limits.dials, isProved || unproved < limits.dials / 2 else {
            throw HandoffError(.limitExceeded, "too many devices are being dialled: try again in a moment")
        }
        if let addresses, !dialPlaces.enter(device, at: addresses.compactMap(\.ipAddress)) {
            throw HandoffError(
                .limitExceeded, "too many devices that never were connected are being dialled: try later")
        }
        let isBrief = addresses != nil
        let task = Task {
            defer {
                dialing[device] = nil
                dialPlaces.leave(device)
            }
            guard isBrief else { return try await self.dial(device) }
            return try await withDeadline(limits.unprovedDialDeadline, "it was not reached") {
                try await self.dial(device)
            }
        }
        let dial = Dial(task: task, isBrief: isBrief, isProved: isProved)
        dialing[device] = dial
        return dial
    }

    /// Waits until a device announces itself, at most for a time.
    func awaitAnnouncement(of device: String, atMost pause: Duration) async {
        await directory.awaitAnnouncement(of: device, atMost: pause)
    }

    /// Whether a connection leads from an address that this device has to one that the other device has announced.
    func isWhereAnnounced(_ connection: Connection, _ device: String) -> Bool {
        if let here = connection.localAddress.ipAddress, !here.isLoopback,
            let own = network?.addresses ?? (try? InterfaceAddress.current()),
            !own.contains(where: { $0.address == here })
        {
            return false
        }
        guard let address = connection.remoteAddress.ipAddress else { return true }
        return directory.peer(device)?.addresses.contains { $0.ipAddress == address } ?? true
    }

    /// Knows from now on by whom this device's addresses are watched.
    func follow(_ network: NetworkMonitor?) {
        self.network = network
    }

    /// Something was announced: who is dialled where it is no longer is dialled where it is.
    func announced() {
        for (device, dial) in connecting {
            let addresses = directory.peer(device)?.addresses ?? []
            if !addresses.isEmpty, addresses != dial.addresses { dial.attempt.cancel() }
        }
    }

    /// Keeps a connection open while a handoff holds a claim on it, with or without streams.
    ///
    /// - Parameter previous: the connection that the handoff held until now.
    func hold(_ connection: Connection, insteadOf previous: Connection?) {
        if let previous { letGo(of: previous) }
        change(connection) { $0.handoffs += 1 }
    }

    /// The handoff has let its claim go.
    func letGo(of connection: Connection) {
        change(connection) { $0.handoffs -= 1 }
    }

    private func change(_ connection: Connection, _ body: (inout Live) -> Void) {
        for device in live.keys {
            guard let index = live[device]?.firstIndex(where: { $0.connection === connection }) else { continue }
            body(&live[device, default: []][index])
        }
    }

    /// Takes a connection that another device dialled and that was let in.
    func accept(_ connection: Connection) async {
        guard let device = await admit(connection) else { return }
        await exchange.meet(connection, of: device)
    }

    /// - Returns: the device that is served from now on. Its place among the handshakes is free for another one.
    private func admit(_ connection: Connection) async -> String? {
        let address = connection.remoteAddress.ipAddress
        guard !isStopped, places < limits.connections, handshakes < limits.handshakes,
            address.map({ handshakesByAddress[$0, default: 0] < limits.handshakesPerAddress }) ?? true
        else {
            logger.info("a connection from \(connection.remoteAddress) was closed: too many are there")
            await connection.close()
            return nil
        }
        handshakes += 1
        if let address { handshakesByAddress[address, default: 0] += 1 }
        defer {
            handshakes -= 1
            if let address, let count = handshakesByAddress[address] {
                handshakesByAddress[address] = count > 1 ? count - 1 : nil
            }
        }
        do {
            let device = try await connection.establish(within: limits.handshakeDeadline)
            try await adopt(connection, of: device, isDialled: false)
            return device
        } catch {
            logger.info("a connection from \(connection.remoteAddress) ended: \(error)")
            return nil
        }
    }

    /// Ends every connection with devices that are of the account no more, in the middle of whatever it carries.
    func dropRevoked() async {
        for (device, entries) in live where account.isRevoked(device) {
            logger.notice("connections with the revoked device \(device.prefix(8)) were ended")
            await withDiscardingTaskGroup { group in
                for entry in entries { group.addTask { await entry.connection.abort() } }
            }
        }
        for (device, dial) in dialing where account.isRevoked(device) { dial.task.cancel() }
    }

    /// Closes every connection politely.
    func stop() async {
        isStopped = true
        sweep?.cancel()
        for dial in dialing.values { dial.task.cancel() }
        let connections = live.values.flatMap { $0.map(\.connection) }
        await withTaskGroup { group in
            for connection in connections {
                group.addTask { await connection.close() }
            }
        }
    }

    /// Serves what the other side asks on a connection, until it ends.
    ///
    /// - Parameter isDialled: whether this device has dialled; then it has its place already.
    /// - Throws: `limitExceeded` where others came first; the connection is closed then.
    func adopt(_ connection: Connection, of device: String, isDialled: Bool) async throws(HandoffError) {
        // The list may have come while the handshake went on, and others for the last place.
        guard !account.isRevoked(device) else { return await connection.abort() }
        let isOneTooMany = places - (isDialled ? 1 : 0) >= limits.connections
        if isDialled, live[device, default: []].count >= limits.connectionsPerDevice,
            let entries = live[device],
            let old = live[device]?.remove(at: entries.firstIndex { $0.handoffs == 0 } ?? 0)
        {
            // None leads to where the device is, or it had not been dialled.
            Task { await old.connection.abort() }
        }
        guard !isOneTooMany, live[device, default: []].count < limits.connectionsPerDevice else {
            await connection.close(.limitExceeded)
            throw isOneTooMany
                ? tooMany
                : HandoffError(
                    .limitExceeded, "\(limits.connectionsPerDevice) connections with the device are open already")
        }
        live[device, default: []].append(Live(connection: connection))
        if isDialled { dialing[device]?.hasArrived = true }
        armSweep()
        // What is asked is served on the loop from the first moment on.
        ControlLoop.task {
            self.directory.prove(device)
            await self.serve(connection, of: device)
            self.forget(connection, of: device)
        }
    }

    /// Serves the requests of a device on a connection until the connection ends or the task is cancelled.
    func serve(_ connection: Connection, of device: String) async {
        await withDiscardingTaskGroup { group in
            for await incoming in connection.incoming {
                group.addTask { @ControlLoop @Sendable in
                    let name = self.directory.name(of: device)
                    await self.service.serve(incoming, from: name, on: connection)
                }
            }
        }
    }

    /// A live connection with a device, whoever made it.
    func openConnection(with device: String) -> Connection? {
        live[device]?.first { $0.connection.isOpen }?.connection
    }

    var tooMany: HandoffError {
        HandoffError(.limitExceeded, "\(limits.connections) connections are open already: try again later")
    }

    /// A connection has ended, also one that never was adopted. A device with no other one may hold claims.
    func forget(_ connection: Connection, of device: String) {
        live[device]?.removeAll { $0.connection === connection }
        guard live[device]?.isEmpty != false else { return }
        live[device] = nil
        offers.decide { $0.connectionsEnded(of: device) }
    }

    private func armSweep() {
        if sweep == nil {
            sweep = BatonEventLoop.Timer { [weak self] in Task { await self?.closeIdle() } }
        }
        if sweep?.isScheduled == false { sweep?.schedule(after: limits.idleLife / 4) }
    }

    /// Closes connections on which nothing has been asked for a while.
    private func closeIdle() async {
        for (device, entries) in live {
            for entry in entries {
                let hasClaim = offers.decide { $0.holdsClaim(device) }
                let isIdle = await entry.connection.isIdle && !hasClaim
                guard let index = live[device]?.firstIndex(where: { $0.connection === entry.connection }) else {
                    continue
                }
                if !isIdle || live[device]?[index].handoffs != 0 {
                    live[device]?[index].idleSince = nil
                } else if let since = live[device]?[index].idleSince {
                    if Instant.now - since >= limits.idleLife { Task { await entry.connection.close() } }
                } else {
                    live[device]?[index].idleSince = .now
                }
            }
        }
        if !live.isEmpty, !isStopped { armSweep() }
    }
}
