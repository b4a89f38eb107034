// SPDX-License-Identifier: Apache-2.0

import Glibc
import SystemPackage

/// Waits for connections, on TCP or on a Unix-domain socket file, and hands each out as a ``Socket``.
///
/// It survives what accepting can fail with. When the process has only the reserve of ``DescriptorLimit`` left, or the
/// machine has no descriptor, it rests for 100 ms and tries again: the connections wait in the kernel's queue, nothing
/// spins, and nothing ends. ``close()`` or the end of the last reference stops listening and removes the socket file.
///
/// Every method is callable from anywhere. How many connections there may be is up to the owner, who closes a socket
/// or calls ``pauseAccepting(_:)``.
package final class Listener: Sendable {
    /// Where it listens; the port is the real one also where 0 was asked for.
    package let localAddress: SocketAddress
    /// The loop that the handlers run on.
    package let loop: EventLoop

    /// How long the queue of connections that were made and not accepted may grow, where nothing else is asked for.
    package static let defaultBacklog = 128

    /// How many connections one turn of the loop accepts at most, so that others have their turn.
    private static let batch = 16
    /// How long accepting rests when descriptors have run out.
    private static let rest = Duration.milliseconds(100)

    private struct Pause: OptionSet {
        let rawValue: UInt8
        static let notStarted = Pause(rawValue: 1)
        static let asked = Pause(rawValue: 2)
        static let outOfResources = Pause(rawValue: 4)
    }

    private struct State {
        /// Nil once closed.
        var descriptor: SharedDescriptor?
        var file: UnixSocketFile?
        var source: ReadinessSource?
        var recovery: Timer?
        var pauses: Pause = .notStarted
        var onAccept: (@Sendable (Socket) -> Void)?
        var onTrouble: (@Sendable (SocketError) -> Void)?
        var isInTrouble = false
    }

    private enum Attempt: Sendable {
        case accepted(Socket, @Sendable (Socket) -> Void)
        case trouble(SocketError, (@Sendable (SocketError) -> Void)?)
        case failed
        case nothing
    }

    private let poll: ReadinessPoll
    private let state: Lock<State>

    /// Listens on one address.
    ///
    /// - Parameters:
    ///   - address: an IP address with a port, 0 for any free one (`::` serves IPv4 as well); or the path of a socket
    ///     file, of any length in a folder that exists. The file gets mode 0600. One that a dead program left is
    ///     replaced.
    ///   - loop: where the handlers run.
    ///   - backlog: the kernel's queue, ``defaultBacklog`` at first; the kernel cuts it to `net.core.somaxconn`.
    /// - Throws: `addressInUse`, `addressUnavailable`, `permissionDenied` (a port below 1024, a folder), `notASocket`,
    ///   `notFound` (no such folder), `pathTooLong` (a name of more than about 85 bytes), `outOfResources`.
    package init(at address: SocketAddress, on loop: EventLoop, backlog: Int = defaultBacklog) throws(SocketError) {
        let backlog = Int32(clamping: max(backlog, 0))
        self.loop = loop
        poll = try loop.poll()
        switch address {
        case .unix(let path):
            let descriptor = try SystemCall.streamSocket(AF_UNIX)
            let file = try UnixSocketFile.listen(descriptor.rawValue, at: path, backlog: backlog)
            localAddress = address
            state = Lock(State(descriptor: SharedDescriptor(descriptor), file: file))
        case .ip(let host, _):
            let descriptor = try Self.listen(at: address, host, backlog: backlog)
            localAddress = try SocketAddress.of(descriptor.rawValue) { getsockname($0, $1, $2) }
            state = Lock(State(descriptor: SharedDescriptor(descriptor), file: nil))
        }
    }

    /// Listens on every address of this machine, over IPv6 and IPv4; over IPv4 alone where the kernel has no IPv6.
    ///
    /// - Parameters:
    ///   - port: 0 for any free one.
    ///   - loop: where the handlers run.
    ///   - backlog: as in ``init(at:on:backlog:)``.
    ///   - defersAccept: for a protocol whose clients speak first: a connection is accepted when its first bytes have
    ///     come, or after about this time without any (`TCP_DEFER_ACCEPT` of tcp(7)); nil: at once.
    /// - Throws: `addressInUse` when the port is taken on either, `permissionDenied` below 1024, `outOfResources`.
    package static func onAllAddresses(
        port: UInt16, on loop: EventLoop, backlog: Int = defaultBacklog, defersAccept: Duration? = nil
    ) throws(SocketError) -> Listener {
        let listener: Listener
        do throws(SocketError) {
            listener = try Listener(at: .ip(.ipv6Any, port: port), on: loop, backlog: backlog)
        } catch  where error.lacksIPv6 {
            listener = try Listener(at: .ip(.ipv4Any, port: port), on: loop, backlog: backlog)
        }
        if let defersAccept {
            listener.state.withLock { state in
                guard let descriptor = state.descriptor else { return }
                // Only a hint to the kernel: a listener that refuses it still works.
                _ = SystemCall.setOption(
                    descriptor.rawValue, Int32(IPPROTO_TCP), TCP_DEFER_ACCEPT,
                    Int32(clamping: defersAccept.components.seconds))
            }
        }
        return listener
    }

    deinit {
        close()
    }

    private static func listen(
        at address: SocketAddress, _ host: IPAddress, backlog: Int32
    ) throws(SocketError) -> OwnedDescriptor {
        let activity = "listening at \(address)"
        let descriptor = try SystemCall.streamSocket(host.isIPv4 ? AF_INET : AF_INET6)
        let number = descriptor.rawValue
        // Connections of the last run that linger in TIME_WAIT do not keep the port; on Linux this never lets two
        // programs listen on one.
        var result = SystemCall.setOption(number, SOL_SOCKET, SO_REUSEADDR, 1)
        if !host.isIPv4 {
            result = result.flatMap { _ in SystemCall.setOption(number, Int32(IPPROTO_IPV6), IPV6_V6ONLY, 0) }
        }
        let bound = try address.withSystemAddress { pointer, length in
            result.flatMap { _ in SystemCall.once { bind(number, pointer, length) } }
                .flatMap { _ in SystemCall.once { Glibc.listen(number, backlog) } }
        }
        if case .failure(let error) = bound { throw SocketError(error, while: activity) }
        return descriptor
    }

    // MARK: - Accepting

    /// Starts accepting. Once; a second call, or one after ``close()``, does nothing.
    ///
    /// The listener holds the handlers until it is closed.
    ///
    /// - Parameters:
    ///   - onTrouble: descriptors or memory ran out; accepting goes on by itself. Once per such time, for the log.
    ///   - onAccept: has a new socket of the listener's loop, not started yet.
    package func start(
        onTrouble: (@Sendable (SocketError) -> Void)? = nil, onAccept: @escaping @Sendable (Socket) -> Void
    ) {
        state.withLock { state in
            guard let descriptor = state.descriptor, state.onAccept == nil else { return }
            state.onAccept = onAccept
            state.onTrouble = onTrouble
            state.source = ReadinessSource(.reading, of: descriptor, in: poll) { [weak self] in
                self?.acceptBatch()
            }
            let recovery = Timer(on: loop) { [weak self] in self?.change { $0.remove(.outOfResources) } }
            // Dispatch opens a descriptor for its timers when the first of the process is armed: now, not when there
            // is none left.
            recovery.schedule(after: .zero)
            state.recovery = recovery
        }
        change { $0.remove(.notStarted) }
    }

    /// Says whether accepting rests; connections wait in the kernel's queue meanwhile. At first: no.
    package func pauseAccepting(_ paused: Bool) {
        change { if paused { $0.insert(.asked) } else { $0.remove(.asked) } }
    }

    /// Stops listening, removes the socket file, and drops the connections that nobody accepted. Idempotent.
    package func close() {
        let dropped = state.withLock { state in
            let dropped = state
            state = State(descriptor: nil, file: nil)
            return dropped
        }
        // The name goes first: who finds no file knows at once, who finds one is still answered.
        dropped.file?.remove()
        dropped.recovery?.cancel()
        dropped.source?.cancel()
    }

    private func change(_ body: (inout Pause) -> Void) {
        state.withLock { state in
            body(&state.pauses)
            if state.pauses.isEmpty { state.source?.resume() } else { state.source?.suspend() }
        }
    }

    private func acceptBatch() {
        for _ in 0..<Self.batch {
            switch acceptOne() {
            case .accepted(let socket, let onAccept): onAccept(socket)
            case .trouble(let error, let onTrouble): return onTrouble?(error) ?? ()
            case .failed: continue
            case .nothing: return
            }
        }
    }

    private func acceptOne() -> Attempt {
        state.withLock { state in
            guard let descriptor = state.descriptor, let onAccept = state.onAccept, state.pauses.isEmpty else {
                return .nothing
            }
            // Asked before, for an accepted connection cannot be put back.
            guard !DescriptorLimit.isNearlyReached else { return rest(after: .tooManyOpenFiles, &state) }
            var storage = sockaddr_storage()
            var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
            let result = withUnsafeMutablePointer(to: &storage) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                    SystemCall.retrying { accept(descriptor.rawValue, address, &length) }
                }
            }
            switch result {
            case .success(let number):
                state.isInTrouble = false
                let owned = OwnedDescriptor(takingOwnershipOf: number)
                guard case .success = SystemCall.prepareAccepted(number),
                    let remote = SocketAddress(storage, length: length),
                    let socket = try? Socket(SharedDescriptor(owned), on: loop, remote: remote)
                else { return .failed }
                return .accepted(socket, onAccept)
            case .failure(let error) where error.meansWouldBlock: return .nothing
            case .failure(let error): return rest(after: error, &state)
            }
        }
    }

    /// Rests where resources ran out. Errors of the one connection that was in front (accept(2) names eleven) concern
    /// no other.
    private func rest(after error: Errno, _ state: inout State) -> Attempt {
        let failure = SocketError(error, while: "accepting a connection at \(localAddress)")
        guard failure.code == .outOfResources else { return .failed }
        state.pauses.insert(.outOfResources)
        state.source?.suspend()
        state.recovery?.schedule(after: Self.rest)
        defer { state.isInTrouble = true }
        return .trouble(failure, state.isInTrouble ? nil : state.onTrouble)
    }
}

extension SocketError {
    /// Whether an IPv6 socket failed because this kernel or this network namespace has no IPv6.
    fileprivate var lacksIPv6: Bool {
        underlyingError == .addressFamilyNotSupported || underlyingError == .addressNotAvailable
    }
}
