// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonEventLoop
import BatonProtocol
import BatonTransport
import Logging

/// Owns the listeners that other devices dial. Each period of the advertisements has a port of its own, so that nobody
/// who scans ports, or sees connections, recognizes a device by it.
///
/// A port goes when the gate takes no token of its period any more: after ``Gate/periodGrace``, or sooner when others
/// have followed in quick succession. Connections from there stay. If no new port can be had, the last one serves
/// another period, and the log says so. A port that the user has chosen serves all periods.
@ControlLoop
final class PeerListeners {
    /// Listeners at once, a descriptor each: as many as there are periods that count. Others are
    /// closed.
    nonisolated static var bound: Int { Gate.periodBound }

    private struct Entry {
        let listener: Listener
        /// The number of the last period that it serves.
        var period: Int
        /// Where the machine could be reached when its periods began.
        var addresses: Set<NetworkAddress>
        /// Closes it some time after its last period; nil during that.
        var end: Timer?

        /// Whether the machine with these addresses is still in the network where its periods began.
        func isWhere(_ present: Set<NetworkAddress>) -> Bool {
            addresses == present || !addresses.isEmpty && addresses.isSubset(of: present)
        }
    }

    let isFixed: Bool
    private let grace: Duration
    private let logger: Logger
    private let open: @Sendable () throws(SocketError) -> Listener
    /// That of the present period comes last. None once closed.
    private var listeners: [Entry]
    /// The number of the present period.
    private var period = 0
    /// The port in the advertisements of the present period; after the end, of the last one.
    private(set) var port: UInt16
    private var onAccept: (@Sendable (Socket) -> Void)?

    /// Listens for the first period; nobody is accepted yet.
    ///
    /// - Parameters:
    ///   - isFixed: whether one port serves all periods.
    ///   - addresses: where the machine can be reached now, but for those of a link, which are the same in every
    ///     network.
    ///   - grace: how long a port outlives its period.
    ///   - open: listens on the control loop, at a port that nothing else has.
    nonisolated init(
        isFixed: Bool, at addresses: Set<NetworkAddress>, grace: Duration = Gate.periodGrace, logger: Logger,
        open: @escaping @Sendable () throws(SocketError) -> Listener
    ) throws(SocketError) {
        self.isFixed = isFixed
        self.grace = grace
        self.logger = logger
        self.open = open
        let first = try open()
        listeners = [Entry(listener: first, period: 0, addresses: addresses)]
        port = first.localAddress.port ?? 0
    }

    /// Starts accepting, now and in all periods to come.
    ///
    /// - Parameter onAccept: as ``Listener/start(onTrouble:onAccept:)`` has it.
    func start(onAccept: @escaping @Sendable (Socket) -> Void) {
        self.onAccept = onAccept
        for entry in listeners { start(entry.listener, onAccept) }
    }

    private func start(_ listener: Listener, _ onAccept: @escaping @Sendable (Socket) -> Void) {
        listener.start(
            onTrouble: { [logger] in logger.warning("other devices cannot connect at the moment: \($0)") },
            onAccept: onAccept)
    }

    /// Another period begins, and has another port. Older ones are closed if an address has gone since, or there was
    /// none before. The machine may be in another network, where nobody is to find them open.
    ///
    /// - Parameter addresses: as when it was made.
    func beginPeriod(at addresses: Set<NetworkAddress>) {
        guard !isFixed, let last = listeners.indices.last else { return }
        period += 1
        do throws(SocketError) {
            let fresh = try open()
            let old = listeners[last].listener
            let end = Timer { [weak self] in self?.close { $0.listener === old } }
            end.schedule(after: grace)
            listeners[last].end = end
            listeners.append(Entry(listener: fresh, period: period, addresses: addresses))
            port = fresh.localAddress.port ?? 0
            if let onAccept { start(fresh, onAccept) }
            close { $0.period <= period - Self.bound || !$0.isWhere(addresses) }
        } catch {
            listeners[last].period = period
            listeners[last].addresses = addresses
            logger.warning("the next period has the port of the last one, for no other can be had: \(error)")
        }
    }

    private func close(where isOver: (Entry) -> Bool) {
        for entry in listeners where isOver(entry) { entry.listener.close() }
        listeners.removeAll(where: isOver)
    }

    /// Stops listening, for good. Idempotent.
    func close() {
        close { _ in true }
    }
}
