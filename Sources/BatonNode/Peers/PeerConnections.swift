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
    private var links: Links<Connection, IPAddress>
    private var dials: [String: Task<Connection, any Error>] = [:]
    /// Knows this device's addresses; nil if the network is not watched.
    var network: NetworkMonitor?
    private(set) var isStopped = false

    nonisolated init(
        context: TLSContext, account: CurrentAccount, exchange: StateExchange, directory: PeerDirectory,
        service: PeerService, offers: Offers, loops: EventLoopGroup, limits: NodeLimits, budget: ReceiveBudget,
        logger: Logger
    ) {
        self.limits = limits
        links = Links(limits.links)
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

    /// The number of live connections.
    var count: Int { links.count }

    /// The devices that a live connection leads to.
    var devices: Set<String> { links.devices }

    /// A connection to a device: a live one, or a new one to the addresses that it advertises. A caller that is
    /// cancelled waits no longer; the dial goes on for the next one.
    ///
    /// A live one that does not lead to where the device is announced now may be dead, and the kernel finds that out
    /// late. It counts only if the device cannot be reached otherwise.
    ///
    /// - Parameter isWanted: whether a user has named the device; see `LinkLimits.unprovedDials`.
    func connection(to device: String, isWanted: Bool) async throws(HandoffError) -> Connection {
        var elsewhere: Connection?
        for connection in links.lines(to: device) where connection.isOpen {
            guard !isWhereAnnounced(connection, device) else { return connection }
            elsewhere = connection
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
        let hosts = peer?.addresses.compactMap(\.ipAddress) ?? []
        let isBrief: Bool
        do throws(LinkRefusal) {
            isBrief = try links.dial(device, isProved: peer?.isProved == true, isWanted: isWanted, at: hosts)
        } catch {
            throw failure(error)
        }
        let task = dials[device] ?? begin(device, isBrief: isBrief)
        do {
            return try await task.valueUnlessCancelled
        } catch {
            let failure = HandoffError(wrapping: error)
            // It was dialled already, for somebody who waits for less long.
            guard isBrief, isWanted, failure.code == .timedOut else { throw failure }
            return try await dialled(device, isWanted: isWanted)
        }
    }

    private func begin(_ device: String, isBrief: Bool) -> Task<Connection, any Error> {
        let task = Task {
            defer {
                dials[device] = nil
                links.endDial(of: device)
            }
            guard isBrief else { return try await self.dial(device) }
            return try await withDeadline(limits.unprovedDialDeadline, "it was not reached") {
                try await self.dial(device)
            }
        }
        dials[device] = task
        return task
    }

    private func failure(_ refusal: LinkRefusal) -> HandoffError {
        let sentence =
            switch refusal {
            case .tooManyConnections: "\(limits.links.connections) connections are open already: try again later"
            case .tooManyOfDevice: "\(limits.links.connectionsPerDevice) connections with the device are open already"
            case .tooManyDials: "too many devices are being dialled: try again in a moment"
            case .tooManyUnproved: "too many devices that never were connected are being dialled: try later"
            }
        return HandoffError(.limitExceeded, sentence)
    }

    /// Whether a connection leads from an address that this device has to one that the other device has announced.
    func isWhereAnnounced(_ connection: Connection, _ device: String) -> Bool {
        if let here = connection.localAddress.ipAddress, !here.isLoopback,
            let own = try? network?.addresses ?? InterfaceAddress.current(),
            !own.contains(where: { $0.address == here })
        {
            return false
        }
        guard let address = connection.remoteAddress.ipAddress else { return true }
        return directory.peer(device)?.addresses.contains { $0.ipAddress == address } ?? true
    }

    /// Keeps a connection open while a handoff holds a claim on it, with or without streams.
    ///
    /// - Parameter previous: the connection that the handoff held until now.
    func hold(_ connection: Connection, insteadOf previous: Connection?) {
        if let previous { letGo(of: previous) }
        links.hold(connection)
    }

    /// The handoff has let its claim go.
    func letGo(of connection: Connection) { links.letGo(of: connection) }

    /// Takes a connection that another device dialled and that was let in.
    func accept(_ connection: Connection) async {
        guard let device = await admit(connection) else { return }
        await exchange.meet(connection, of: device)
    }

    /// - Returns: the device that is served from now on. Its place among the handshakes is free for another one.
    private func admit(_ connection: Connection) async -> String? {
        guard !isStopped, links.beginHandshake(on: connection, from: connection.remoteAddress.ipAddress) else {
            logger.info("a connection from \(connection.remoteAddress) was closed: too many are there")
            await connection.close()
            return nil
        }
        defer { links.endHandshake(on: connection) }
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
        for device in links.devices where account.isRevoked(device) {
            logger.notice("connections with the revoked device \(device.prefix(8)) were ended")
            await withDiscardingTaskGroup { group in
                for connection in links.lines(to: device) { group.addTask { await connection.abort() } }
            }
        }
        for (device, dial) in dials where account.isRevoked(device) { dial.cancel() }
    }

    /// Closes every connection politely.
    func stop() async {
        isStopped = true
        for dial in dials.values { dial.cancel() }
        await withDiscardingTaskGroup { group in
            for connection in links.lines { group.addTask { await connection.close() } }
        }
    }

    /// Serves what the other side asks on a connection, until it ends.
    ///
    /// - Parameter isDialled: whether this device has dialled; then it has its place already.
    /// - Throws: `limitExceeded` where others came first; the connection is closed then.
    func adopt(_ connection: Connection, of device: String, isDialled: Bool) async throws(HandoffError) {
        // The list may have come while the handshake went on, and others for the last place.
        guard !account.isRevoked(device) else { return await connection.abort() }
        let displaced: Connection?
        do throws(LinkRefusal) {
            displaced = try links.add(connection, of: device, isDialled: isDialled)
        } catch {
            await connection.close(.limitExceeded)
            throw failure(error)
        }
        // What is asked is served on the loop from the first moment on.
        ControlLoop.task {
            self.directory.prove(device)
            await withDiscardingTaskGroup { group in
                if let displaced { group.addTask { await displaced.abort() } }
                group.addTask { await self.closeWhenIdle(connection, of: device) }
                await self.serve(connection, of: device)
                self.forget(connection, of: device)
                group.cancelAll()
            }
        }
    }

    /// Serves the requests of a device on a connection until the connection ends or the task is cancelled.
    func serve(_ connection: Connection, of device: String) async {
        await withDiscardingTaskGroup { group in
            for await incoming in connection.incoming {
                group.addTask { @ControlLoop @Sendable in
                    let name = self.directory.name(of: device).name
                    let peer = PeerName(id: device, name: name, connection: connection.number)
                    await self.service.serve(incoming, from: peer, on: connection)
                }
            }
        }
    }

    /// A live connection with a device, whoever made it.
    func openConnection(with device: String) -> Connection? {
        links.lines(to: device).first(where: \.isOpen)
    }

    /// A connection has ended, also one that never was adopted.
    func forget(_ connection: Connection, of device: String) {
        links.remove(connection)
        offers.decide { $0.connectionEnded(of: PeerName(id: device, name: "", connection: connection.number)) }
    }

    /// Closes a connection when nothing has been asked on it for a while. Returns when it is cancelled.
    private func closeWhenIdle(_ connection: Connection, of device: String) async {
        while (try? await Alarm.sleep(for: limits.links.idleLife / 4)) != nil {
            let hasClaim = offers.decide { $0.holdsClaim(device) }
            let isIdle = await connection.isIdle && !hasClaim
            if links.note(connection, isIdle: isIdle, now: .now) { return await connection.close() }
        }
    }
}

extension Connection {
    /// Tells it from all other connections that live.
    nonisolated fileprivate var number: UInt { UInt(bitPattern: ObjectIdentifier(self)) }
}
