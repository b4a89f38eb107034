// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonCore
import BatonEventLoop
import BatonProtocol
import BatonTLS
import BatonTransport

/// Reads the first message of each incoming connection, and admits or closes it.
///
/// Most connections to an open port come from other programs, so this is cheap. A connection is read where it was
/// accepted, without a task or an event source, and is closed there unless the gate admits it. Only a connection whose
/// first message is incomplete waits, in a bounded number and for a bounded time. The kernel keeps connections that
/// have sent nothing, and wakes the loop only when the announced rest of a message has come. A connection stays on the
/// listeners' loop until it is admitted: waking two loops for each would cost twice as much.
@ControlLoop
final class AdmissionControl {
    private let account: CurrentAccount
    private let context: TLSContext
    private let gate: GateKeeper?
    private let loops: EventLoopGroup
    private let limits: NodeLimits
    private let budget: ReceiveBudget?
    private let admitted: @ControlLoop @Sendable (Connection) -> Void
    private var pending: [ObjectIdentifier: (connection: PendingConnection, deadline: Timer)] = [:]
    private var places: Places<ObjectIdentifier, IPAddress>

    /// - Parameters:
    ///   - context: has the gate.
    ///   - gate: the same gate, which then knows each connection's address, and checks most of them before TLS does;
    ///     `nil`, the default, leaves all to TLS.
    ///   - limits: how many may wait and for how long, and those of the connections.
    ///   - budget: what all connections share for what they receive.
    ///   - loops: where the connections go on, in turn.
    ///   - admitted: gets each connection that was let in, not started yet.
    nonisolated init(
        _ account: CurrentAccount, context: TLSContext, gate: GateKeeper? = nil, limits: NodeLimits = NodeLimits(),
        budget: ReceiveBudget? = nil, over loops: EventLoopGroup,
        admitted: @escaping @ControlLoop @Sendable (Connection) -> Void
    ) {
        self.loops = loops
        self.account = account
        self.context = context
        self.gate = gate
        self.limits = limits
        self.budget = budget
        self.admitted = admitted
        places = Places(bound: limits.pendingConnections, boundPerHost: limits.pendingConnectionsPerAddress)
    }

    /// The number of pending connections.
    var waitingCount: Int { pending.count }

    /// Checks a connection that was just accepted. Never blocks.
    ///
    /// - Parameter socket: on the control loop.
    func receive(_ socket: Socket) {
        let connection = PendingConnection(socket, context, gate, bound: limits.firstMessageBytes)
        guard !decide(connection) else { return }
        guard add(connection) else { return socket.close() }
        socket.start(
            onReadable: { [weak self] in ControlLoop.assumeIsolated { _ = self?.decide(connection) } }, onWritable: {})
    }

    /// Closes all pending connections.
    func close() {
        for (connection, _) in pending.values { reject(connection) }
    }

    /// Reads what has come, and admits or closes the connection if that is enough.
    ///
    /// - Returns: `false` while more has to come.
    private func decide(_ connection: PendingConnection) -> Bool {
        switch connection.read() {
        case .unclear:
            return false
        case .refused:
            // A device of the account learns why. A stranger gets no byte.
            if connection.isOfAccount { connection.sendAlert() }
            reject(connection)
        case .admitted(let session):
            admit(connection, session)
        }
        return true
    }

    private func admit(_ connection: PendingConnection, _ session: sending TLSSession) {
        let loop = loops.next()
        guard let socket = try? connection.socket.moved(to: loop) else { return reject(connection) }
        remove(connection)
        admitted(
            Connection(
                socket: socket, channel: TLSChannel(session, isClient: false), role: .acceptor, limits: limits.session,
                revocationNumber: account.value.state.revision, budget: budget, on: loop))
    }

    private func reject(_ connection: PendingConnection) {
        connection.socket.close()
        remove(connection)
    }

    private func add(_ connection: PendingConnection) -> Bool {
        let key = ObjectIdentifier(connection)
        guard places.enter(key, of: connection.address.map { [$0] } ?? []) else { return false }
        let deadline = Timer { [weak self] in self?.reject(connection) }
        deadline.schedule(after: limits.admissionDeadline)
        pending[key] = (connection, deadline)
        return true
    }

    private func remove(_ connection: PendingConnection) {
        pending[ObjectIdentifier(connection)] = nil
        places.leave(ObjectIdentifier(connection))
    }
}

/// A connection whose first message is not complete yet.
///
/// Used only on the control loop.
private final class PendingConnection: @unchecked Sendable {  // reason: confined to one loop, as said above
    enum Verdict {
        case unclear
        case refused
        case admitted(TLSSession)
    }

    let socket: Socket
    let address: IPAddress?
    private let context: TLSContext
    private let gate: GateKeeper?
    /// Made only if the first message passes the checks before TLS.
    private var session: TLSSession?
    /// The most bytes that are read of a first message.
    private let bound: Int
    private var received = 0
    /// The start of a first message that came in several pieces.
    private var kept: [UInt8] = []

    init(_ socket: Socket, _ context: TLSContext, _ gate: GateKeeper?, bound: Int) {
        self.socket = socket
        self.context = context
        self.gate = gate
        self.bound = bound
        address = socket.remoteAddress.ipAddress
    }

    /// Reads what has come, and checks it.
    func read() -> Verdict {
        withUnsafeTemporaryAllocation(byteCount: 2048, alignment: 16) { buffer in
            do {
                while received < bound {
                    switch try socket.read(into: buffer) {
                    case .bytes(let count):
                        received += count
                        let verdict = try inspect(
                            UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(buffer)[..<count]))
                        if let verdict { return verdict }
                        // A short read has emptied the socket: another would only return EAGAIN.
                        if count < buffer.count, received < bound { return .unclear }
                    case .wouldBlock:
                        return .unclear
                    case .endOfFile:
                        return .refused
                    }
                }
            } catch {
                // Every error refuses the connection.
            }
            return .refused
        }
    }

    /// - Returns: `nil` while it is unclear.
    private func inspect(_ bytes: UnsafeRawBufferPointer) throws(TLSError) -> Verdict? {
        guard session == nil, let gate else { return try passToTLS(bytes) }
        if !kept.isEmpty { kept += bytes }
        let message = kept.isEmpty ? FirstMessage(bytes) : kept.withUnsafeBytes { FirstMessage($0) }
        switch message {
        case .unclear(let count):
            if kept.isEmpty { kept += bytes }
            socket.awaitBytes(min(count, bound) - received)
            return nil
        case .foreign: return .refused
        case .token(let name): guard gate.wouldAdmit(name, from: address) else { return .refused }
        case .undecided: break
        }
        guard !kept.isEmpty else { return try passToTLS(bytes) }
        let all = kept
        kept = []
        socket.awaitBytes(1)
        return try all.withUnsafeBufferPointer { (all) throws(TLSError) in try passToTLS(UnsafeRawBufferPointer(all)) }
    }

    private func passToTLS(_ bytes: UnsafeRawBufferPointer) throws(TLSError) -> Verdict? {
        let session: TLSSession
        if let made = self.session { session = made } else { session = try makeSession() }
        self.session = session
        try session.receive(bytes)
        _ = try session.handshake()
        return session.admission == nil ? nil : .admitted(session)
    }

    private func makeSession() throws(TLSError) -> TLSSession {
        guard let gate else { return try TLSSession(server: context) }
        return try TLSSession(server: context, gate: { [address] in gate.admit($0, from: address) })
    }

    /// Whether the gate has admitted the first message.
    var isOfAccount: Bool { session?.admission != nil }

    /// Sends the alert with which TLS answers a bad first message.
    func sendAlert() {
        guard let session else { return }
        withUnsafeTemporaryAllocation(byteCount: 2048, alignment: 16) { buffer in
            let alert = UnsafeRawBufferPointer(rebasing: buffer[..<session.nextOutput(into: buffer)])
            if !alert.isEmpty { _ = try? socket.write(alert) }
        }
    }
}
