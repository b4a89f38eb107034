// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonEventLoop
import BatonProtocol
import BatonTransport
import Logging

/// Where other devices dial, and the one owner of the listeners there: each period of the advertisements has a port of
/// its own, so that nobody who scans ports, or sees connections, knows a device again by it.
///
/// A port goes when the gate takes no token of its period any more: after ``Gate/periodGrace``, or sooner when others
/// have followed in quick succession. What was accepted there stays. Where a new port cannot be had the last one serves
/// another period, which is said in the log; one that the user has chosen serves all.
///
/// Every method is callable from anywhere.
final class PeerListeners: Sendable {
    /// Listeners at once, a descriptor each: as many as there are periods that count. What served none of these is
    /// closed.
    static var bound: Int { Gate.periodBound }

    private struct Entry {
        let listener: Listener
        /// The number of the last period that it serves.
        var period: Int
        /// Where the machine could be reached when its periods began.
        var addresses: Set<NetworkAddress>
        var until: Instant?

        /// Whether the machine with these addresses is still in the network where its periods began.
        func isWhere(_ present: Set<NetworkAddress>) -> Bool {
            addresses == present || !addresses.isEmpty && addresses.isSubset(of: present)
        }
    }

    private struct State {
        /// That of the present period comes last, and has no end yet. None once closed.
        var listeners: [Entry]
        /// The number of the present period.
        var period = 0
        /// Of the present period; after the end, of the last.
        var port: UInt16
        var onAccept: (@Sendable (Socket) -> Void)?
        /// Armed for the first listener whose time ends. Made when there is one.
        var expiry: Timer?
    }

    let loop: EventLoop
    let isFixed: Bool
    private let grace: Duration
    private let logger: Logger
    private let open: @Sendable () throws(SocketError) -> Listener
    private let state: Lock<State>

    /// Listens for the first period; nobody is accepted yet.
    ///
    /// - Parameters:
    ///   - isFixed: whether one port serves all periods.
    ///   - addresses: where the machine can be reached now, but for those of a link, which are the same in every
    ///     network.
    ///   - grace: how long a port outlives its period.
    ///   - loop: where connections are accepted.
    ///   - open: listens at a port that nothing else has, on `loop`.
    init(
        isFixed: Bool, at addresses: Set<NetworkAddress>, grace: Duration = Gate.periodGrace, on loop: EventLoop,
        logger: Logger, open: @escaping @Sendable () throws(SocketError) -> Listener
    ) throws(SocketError) {
        self.loop = loop
        self.isFixed = isFixed
        self.grace = grace
        self.logger = logger
        self.open = open
        let first = try open()
        let entry = Entry(listener: first, period: 0, addresses: addresses)
        state = Lock(State(listeners: [entry], port: first.localAddress.port ?? 0))
    }

    /// What the present period's advertisements name.
    var port: UInt16 { state.withLock { $0.port } }

    /// Starts accepting, now and in all periods to come.
    ///
    /// - Parameter onAccept: as ``Listener/start(onTrouble:onAccept:)`` has it.
    func start(onAccept: @escaping @Sendable (Socket) -> Void) {
        state.withLock { state in
            state.onAccept = onAccept
            for entry in state.listeners { start(entry.listener, onAccept) }
        }
    }

    private func start(_ listener: Listener, _ onAccept: @escaping @Sendable (Socket) -> Void) {
        listener.start(
            onTrouble: { [logger] in logger.warning("other devices cannot connect at the moment: \($0)") },
            onAccept: onAccept)
    }

    /// Another period begins, and has another port. Older ones are closed where an address has gone since, or there was
    /// none before: the machine may be in another network, where nobody is to find them open.
    ///
    /// - Parameter addresses: as when it was made.
    func beginPeriod(at addresses: Set<NetworkAddress>) {
        guard !isFixed else { return }
        do throws(SocketError) {
            // What is closed already takes in no other.
            let fresh = try open()
            let closed = state.withLock { state in add(fresh, at: addresses, to: &state) }
            for listener in closed { listener.close() }
        } catch {
            state.withLock { state in
                guard let last = state.listeners.indices.last else { return }
                state.period += 1
                state.listeners[last].period = state.period
                state.listeners[last].addresses = addresses
            }
            logger.warning("the next period has the port of the last one, for no other can be had: \(error)")
        }
    }

    /// - Returns: what has to go for it.
    private func add(_ fresh: Listener, at addresses: Set<NetworkAddress>, to state: inout State) -> [Listener] {
        guard let last = state.listeners.indices.last, let port = fresh.localAddress.port else { return [fresh] }
        state.listeners[last].until = .now + grace
        state.period += 1
        let oldest = state.period - Self.bound
        let kept = state.listeners.filter { $0.period > oldest && $0.isWhere(addresses) }
        let closed = state.listeners.map(\.listener).filter { listener in
            !kept.contains { $0.listener === listener }
        }
        state.listeners = kept + [Entry(listener: fresh, period: state.period, addresses: addresses)]
        state.port = port
        if let onAccept = state.onAccept { start(fresh, onAccept) }
        armExpiry(&state)
        return closed
    }

    private func armExpiry(_ state: inout State) {
        guard let until = state.listeners.first?.until else { return }
        let expiry = state.expiry ?? Timer(on: loop) { [weak self] in self?.expire() }
        state.expiry = expiry
        expiry.schedule(at: until.nanoseconds)
    }

    /// Closes those whose time is over.
    private func expire() {
        let now = Instant.now
        let expired = state.withLock { state in
            let expired = state.listeners.prefix { $0.until.map { $0 <= now } ?? false }
            state.listeners.removeFirst(expired.count)
            armExpiry(&state)
            return expired.map(\.listener)
        }
        for listener in expired { listener.close() }
    }

    /// Stops listening, for good. Idempotent.
    func close() {
        let (listeners, expiry) = state.withLock { state in
            defer { state = State(listeners: [], port: state.port) }
            return (state.listeners.map(\.listener), state.expiry)
        }
        expiry?.cancel()
        for listener in listeners { listener.close() }
    }
}
