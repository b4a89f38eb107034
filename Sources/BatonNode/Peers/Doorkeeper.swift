// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonEventLoop
import BatonProtocol
import BatonTLS
import BatonTransport

/// Looks at the first message of whoever connects, before anything else is spent on him.
///
/// Most of those who knock on a port are strangers, so this is cheap: a connection is read where it was accepted,
/// without a task or a source of events, and is closed there unless the gate admits it. Only one whose first message
/// has not come whole waits, in a bounded number and for a bounded time; the kernel keeps those that have said nothing
/// at all, and wakes nobody for less than what is missing of a message of which the length has come. Until he is let in
/// a visitor stays on the loop that accepted him: two that are woken for each stranger cost twice as much.
///
/// All who wait have one timer: a Dispatch timer of each would be made, armed and taken away again for every stranger
/// whose message came in two pieces, and each of that wakes a thread, which costs more than all else that is done for
/// him.
final class Doorkeeper: Sendable {
    private struct Waiting {
        var visitors: [ObjectIdentifier: (visitor: Visitor, until: Instant)] = [:]
        var byAddress: [IPAddress: Int] = [:]
        /// Armed for the first whose time is over, or for one that has gone since. Made when someone waits.
        var deadline: Timer?
    }

    private let loop: EventLoop
    private let account: CurrentAccount
    private let context: TLSContext
    private let gate: GateKeeper?
    private let loops: EventLoopGroup?
    private let limits: NodeLimits
    private let budget: ReceiveBudget?
    private let isSilent: Bool
    private let waiting = Lock(Waiting())
    private let admitted: @Sendable (Connection) -> Void

    /// - Parameters:
    ///   - context: has the gate.
    ///   - gate: the same gate, which is then told where each visitor is, and looks at most of them before TLS does;
    ///     `nil`, the default, leaves all to TLS.
    ///   - limits: how many may wait and for how long, and those of the connections.
    ///   - budget: what all connections share for what they receive.
    ///   - isSilent: says nothing to whoever is refused. Every program is; only the tests of attacks see what TLS
    ///     itself would say.
    ///   - loop: that of the listeners.
    ///   - loops: where the connections go on, in turn; `nil`, the default, leaves them on the first loop.
    ///   - admitted: gets each connection that was let in, not started yet; on any loop.
    init(
        _ account: CurrentAccount, context: TLSContext, gate: GateKeeper? = nil, limits: NodeLimits = NodeLimits(),
        budget: ReceiveBudget? = nil, isSilent: Bool = true, on loop: EventLoop,
        over loops: EventLoopGroup? = nil, admitted: @escaping @Sendable (Connection) -> Void
    ) {
        self.loop = loop
        self.loops = loops
        self.account = account
        self.context = context
        self.gate = gate
        self.limits = limits
        self.budget = budget
        self.isSilent = isSilent
        self.admitted = admitted
    }

    /// How many connections wait.
    var waitingCount: Int { waiting.withLock { $0.visitors.count } }

    /// Takes a connection that was just accepted. Never blocks.
    func receive(_ socket: Socket) {
        let visitor = Visitor(socket, context, gate, bound: limits.visitBytes)
        guard !settle(visitor) else { return }
        guard enter(visitor) else { return socket.close() }
        socket.start(onReadable: { [weak self] in _ = self?.settle(visitor) }, onWritable: {})
    }

    /// Closes those who wait.
    func close() {
        expel(waiting.withLock { $0.visitors.values.map(\.visitor) })
    }

    /// Closes those who have waited for too long, and wakes up again for the next.
    private func expelLate() {
        let now = Instant.now
        expel(
            waiting.withLock { waiting in
                let next = waiting.visitors.values.map(\.until).filter { $0 > now }.min()
                if let next { waiting.deadline?.schedule(at: next.nanoseconds) }
                return waiting.visitors.values.filter { $0.until <= now }.map(\.visitor)
            })
    }

    private func expel(_ visitors: [Visitor]) {
        guard !visitors.isEmpty else { return }
        loop.execute {
            // Who was admitted meanwhile has another owner.
            for visitor in visitors where self.waiting.withLock({ $0.visitors[ObjectIdentifier(visitor)] != nil }) {
                self.dismiss(visitor)
            }
        }
    }

    /// Lets a visitor in or out, if it is clear by now which.
    private func settle(_ visitor: Visitor) -> Bool {
        switch visitor.listen() {
        case .unclear:
            return false
        case .refused:
            if !isSilent { visitor.sayWhy() }
            dismiss(visitor)
        case .admitted(let session):
            admit(visitor, session)
        }
        return true
    }

    private func admit(_ visitor: Visitor, _ session: sending TLSSession) {
        let loop = loops?.next() ?? loop
        guard let socket = try? visitor.socket.moved(to: loop) else { return dismiss(visitor) }
        leave(visitor)
        admitted(
            Connection(
                socket: socket, channel: TLSChannel(session, isClient: false), role: .acceptor, limits: limits.session,
                revocationNumber: account.value.state.revision, budget: budget, on: loop))
    }

    private func dismiss(_ visitor: Visitor) {
        visitor.socket.close()
        leave(visitor)
    }

    private func enter(_ visitor: Visitor) -> Bool {
        waiting.withLock { waiting in
            guard waiting.visitors.count < limits.visitors else { return false }
            if let address = visitor.address {
                guard waiting.byAddress[address, default: 0] < limits.visitorsPerAddress else { return false }
                waiting.byAddress[address, default: 0] += 1
            }
            let until = Instant.now + limits.visitDeadline
            waiting.visitors[ObjectIdentifier(visitor)] = (visitor, until)
            // Who came before waits no longer than this one: an armed timer is early enough.
            let deadline = waiting.deadline ?? Timer(on: loop) { [weak self] in self?.expelLate() }
            waiting.deadline = deadline
            if !deadline.isScheduled { deadline.schedule(at: until.nanoseconds) }
            return true
        }
    }

    private func leave(_ visitor: Visitor) {
        waiting.withLock { waiting in
            guard waiting.visitors.removeValue(forKey: ObjectIdentifier(visitor)) != nil else { return }
            guard let address = visitor.address, let count = waiting.byAddress[address] else { return }
            waiting.byAddress[address] = count > 1 ? count - 1 : nil
        }
    }
}

/// A connection that has not shown yet whether it is one of the account's.
///
/// Used on the loop that accepted it.
private final class Visitor: @unchecked Sendable {  // reason: confined to one loop, as said above
    enum Verdict {
        case unclear
        case refused
        case admitted(TLSSession)
    }

    let socket: Socket
    let address: IPAddress?
    private let context: TLSContext
    private let gate: GateKeeper?
    /// Made when TLS is needed, which is for few.
    private var session: TLSSession?
    /// The most that is read of a first message, in bytes.
    private let bound: Int
    private var received = 0
    /// What came before TLS was needed, where that was not all at once.
    private var kept: [UInt8] = []

    init(_ socket: Socket, _ context: TLSContext, _ gate: GateKeeper?, bound: Int) {
        self.socket = socket
        self.context = context
        self.gate = gate
        self.bound = bound
        address = socket.remoteAddress.ipAddress
    }

    /// Reads what has come, and judges it.
    func listen() -> Verdict {
        withUnsafeTemporaryAllocation(byteCount: 2048, alignment: 16) { buffer in
            do {
                while received < bound {
                    switch try socket.read(into: buffer) {
                    case .bytes(let count):
                        received += count
                        let verdict = try hear(
                            UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(buffer)[..<count]))
                        if let verdict { return verdict }
                        // There was no more than that: to ask would be a call for each stranger.
                        if count < buffer.count, received < bound { return .unclear }
                    case .wouldBlock:
                        return .unclear
                    case .endOfFile:
                        return .refused
                    }
                }
            } catch {
                // It does not matter why: whoever it is gets no answer.
            }
            return .refused
        }
    }

    /// - Returns: `nil` while it is unclear.
    private func hear(_ bytes: UnsafeRawBufferPointer) throws(TLSError) -> Verdict? {
        guard session == nil, let gate else { return try hand(bytes) }
        if !kept.isEmpty { kept += bytes }
        let message = kept.isEmpty ? FirstMessage(bytes) : kept.withUnsafeBytes { FirstMessage($0) }
        switch message {
        case .unclear(let count):
            if kept.isEmpty { kept += bytes }
            socket.awaitBytes(min(count, bound) - received)
            return nil
        case .stranger: return .refused
        case .token(let name): guard gate.wouldAdmit(name, from: address) else { return .refused }
        case .undecided: break
        }
        guard !kept.isEmpty else { return try hand(bytes) }
        let all = kept
        kept = []
        socket.awaitBytes(1)
        return try all.withUnsafeBufferPointer { (all) throws(TLSError) in try hand(UnsafeRawBufferPointer(all)) }
    }

    /// Hands bytes to TLS.
    private func hand(_ bytes: UnsafeRawBufferPointer) throws(TLSError) -> Verdict? {
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

    /// Sends what TLS has to say to a first message that it cannot take: an alert.
    func sayWhy() {
        guard let session else { return }
        withUnsafeTemporaryAllocation(byteCount: 2048, alignment: 16) { buffer in
            let alert = UnsafeRawBufferPointer(rebasing: buffer[..<session.nextOutput(into: buffer)])
            if !alert.isEmpty { _ = try? socket.write(alert) }
        }
    }
}
